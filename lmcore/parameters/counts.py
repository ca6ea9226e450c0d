"""Parameter counts: one row for each kind of tensor, from a config; and the count of a model as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from torch import nn

from lmcore.config import ModelConfig
from lmcore.parameters.formula import product
from lmcore.parameters.memory import bytes_per_number
from lmcore.parameters.published import Group, Part, PublishedConfig

GROUPS: tuple[Group, ...] = get_args(Group)


@dataclass(frozen=True)
class TensorCount:
    """One kind of tensor, over all layers.

    Attributes:
        name: such as "token_embedding" or, for all layers together, "blocks.attn.q".
        group: one of GROUPS.
        symbols: the size as a product of config fields.
        formula: the same product in numbers.
        size: its value.
        tied_to: the row that this one shares storage with whenever embeddings are tied, or None.
        shared: whether it does so here; a shared row adds no parameters.
    """

    name: str
    group: Group
    symbols: str
    formula: str
    size: int
    tied_to: str | None = None
    shared: bool = False

    @property
    def count(self) -> int:
        """Parameters that this row adds: its size, or 0 where the storage is counted in another row."""
        return 0 if self.shared else self.size


@dataclass(frozen=True)
class ParameterCount:
    """The rows of a model's parameters and the totals that follow from them."""

    rows: tuple[TensorCount, ...]
    tied: bool

    @property
    def total(self) -> int:
        """All parameters, shared storage counted once."""
        return sum(row.count for row in self.rows)

    @property
    def untied_total(self) -> int:
        """The total had every matrix its own storage."""
        return sum(row.size for row in self.rows)

    @property
    def tied_total(self) -> int:
        """The total were every matrix that can be tied to the token embedding tied."""
        return sum(row.size for row in self.rows if row.tied_to is None)

    @property
    def tying_saves(self) -> int:
        """What tying saves, or would save, in parameters."""
        return self.untied_total - self.tied_total

    @property
    def group_totals(self) -> dict[Group, int]:
        """Parameters of each group that has a row, in the order of GROUPS."""
        present = {row.group for row in self.rows}
        return {
            group: sum(row.count for row in self.rows if row.group == group) for group in GROUPS if group in present
        }

    def share(self, group: Group) -> float:
        """Return the group's part of the total, between 0 and 1. A tied head has none of its own: see head_share.

        Raises:
            ValueError: for a name that is no group.
        """
        if group not in GROUPS:
            raise ValueError(f"group must be one of {', '.join(GROUPS)}, got {group!r}.")
        return self.group_totals.get(group, 0) / self.total

    @property
    def head_size(self) -> int:
        """Numbers in the output matrix [vocab_size, d_model], wherever they are stored."""
        return next(row.size for row in self.rows if row.name == "head")

    @property
    def head_share(self) -> float:
        """head_size / total: the share of the output matrix, tied or not."""
        return self.head_size / self.total

    def memory_bytes(self, dtype: str = "float32") -> int:
        """Return the bytes of the parameters alone in this dtype (for int8 without the scales of a scheme).

        Raises:
            ValueError: for a dtype that is not in BYTES_PER_NUMBER.
        """
        return self.total * bytes_per_number(dtype)


def count(config: ModelConfig, tie_embeddings: bool | None = None) -> ParameterCount:
    """Count the parameters of a model from its config.

    Args:
        config: a ModelConfig, or a PublishedConfig with parts beyond it.
        tie_embeddings: count as if tied or untied; None follows the config.

    Returns:
        The rows in the model's order and their totals.

    >>> config = ModelConfig(vocab_size=10, d_model=4, n_layers=1, n_heads=2, context_length=8, gated_mlp=False)
    >>> count(config).total, count(config, tie_embeddings=False).total
    (244, 284)
    >>> count(config).rows[1]
    TensorCount(name='blocks.attn_norm', group='norm', symbols='n_layers * d_model', formula='1 x 4', size=4, \
tied_to=None, shared=False)
    """
    tied = config.tie_embeddings if tie_embeddings is None else tie_embeddings
    rows = tuple(
        TensorCount(
            part.name, part.group, *product(part.symbols, config), part.tied_to, tied and part.tied_to is not None
        )
        for part in parts(config)
    )
    return ParameterCount(rows, tied)


def parts(config: ModelConfig) -> Iterator[Part]:
    """Yield the parts that ModelConfig describes in the order in which a token meets them, then any others."""
    if isinstance(config, PublishedConfig):
        yield from (part for part in _model_parts(config) if part.name not in config.absent_parts)
        yield from config.extra_parts
    else:
        yield from _model_parts(config)


def _model_parts(config: ModelConfig) -> Iterator[Part]:
    yield Part("token_embedding", "embedding", "vocab_size * d_model")
    if config.position_encoding == "learned":
        yield Part("position_embedding", "position", "context_length * d_model")
    elif config.position_encoding == "relative":  # one table for all layers
        yield Part("position_bias", "position", "relative_buckets * n_heads")

    if config.pre_norm:
        yield from _norm("blocks.attn_norm", "n_layers * d_model", config.norm_bias)
    for name, heads in ("q", "n_heads"), ("k", "n_kv_heads"), ("v", "n_kv_heads"):
        yield Part(f"blocks.attn.{name}", "attention", f"n_layers * d_model * ({heads} * d_head)")
        if config.attention_bias:
            yield Part(f"blocks.attn.{name}.bias", "attention", f"n_layers * ({heads} * d_head)")
    if config.qk_norm:
        apart = config.qk_norm_over == "head"
        yield Part("blocks.attn.q_norm", "norm", "n_layers * d_head" if apart else "n_layers * (n_heads * d_head)")
        yield Part("blocks.attn.k_norm", "norm", "n_layers * d_head" if apart else "n_layers * (n_kv_heads * d_head)")
    if config.attention_sinks:
        yield Part("blocks.attn.sinks", "attention", "n_layers * n_heads")
    yield Part("blocks.attn.out", "attention", "n_layers * (n_heads * d_head) * d_model")
    if config.attention_out_bias:
        yield Part("blocks.attn.out.bias", "attention", "n_layers * d_model")
    if config.sandwich_norm:
        yield from _norm("blocks.attn_post_norm", "n_layers * d_model", config.norm_bias)

    if config.pre_norm:
        yield from _norm("blocks.mlp_norm", "n_layers * d_model", config.norm_bias)
    mlps = "n_layers"
    if config.n_experts is not None:
        mlps = "n_layers * n_experts"
        yield Part("blocks.mlp.router", "mlp", "n_layers * d_model * n_experts")
        if config.router_bias:
            yield Part("blocks.mlp.router.bias", "mlp", "n_layers * n_experts")
    for name in ("gate", "up") if config.gated_mlp else ("up",):
        yield Part(f"blocks.mlp.{name}", "mlp", f"{mlps} * d_model * d_mlp")
        if config.mlp_bias:
            yield Part(f"blocks.mlp.{name}.bias", "mlp", f"{mlps} * d_mlp")
    yield Part("blocks.mlp.down", "mlp", f"{mlps} * d_mlp * d_model")
    if config.mlp_bias:
        yield Part("blocks.mlp.down.bias", "mlp", f"{mlps} * d_model")
    if config.sandwich_norm:
        yield from _norm("blocks.mlp_post_norm", "n_layers * d_model", config.norm_bias)

    yield from _norm("final_norm", "d_model", config.norm_bias)
    yield Part("head", "head", "vocab_size * d_model", tied_to="token_embedding")
    if config.head_bias:  # stays beside a tied matrix
        yield Part("head.bias", "head", "vocab_size")


def _norm(name: str, symbols: str, bias: bool) -> Iterator[Part]:
    yield Part(name, "norm", symbols)
    if bias:
        yield Part(f"{name}.bias", "norm", symbols)


def used_by_a_token(config: ModelConfig) -> int:
    """Return how many parameters one token's pass uses: of the experts, those that it goes to; else all.

    >>> config = ModelConfig(vocab_size=10, d_model=4, n_layers=1, n_heads=2, context_length=8, d_mlp=8,
    ...     n_experts=4, n_experts_used=1)
    >>> count(config).total - used_by_a_token(config) == 3 * 3 * 4 * 8
    True
    """
    rows = count(config).rows
    if config.n_experts is None or config.n_experts_used is None:
        return sum(row.count for row in rows)
    of_experts = sum(row.count for row in rows if row.symbols.startswith("n_layers * n_experts *"))
    return sum(row.count for row in rows) - of_experts // config.n_experts * (config.n_experts - config.n_experts_used)


def count_model(module: nn.Module) -> int:
    """Count a module's parameters by storage: tensors that are the same memory count once.

    Equal values in separate memory are counted separately, and two Parameter objects over one
    storage are counted once.

    >>> table, head = nn.Embedding(5, 2), nn.Linear(2, 5, bias=False)
    >>> count_model(nn.ModuleList([table, head]))
    20
    >>> head.weight = table.weight
    >>> count_model(nn.ModuleList([table, head]))
    10
    """
    # The address of the storage object, not of its data, which is 0 for everything on the meta device.
    return sum(
        {(p.untyped_storage()._cdata, p.storage_offset(), p.numel()): p.numel() for p in module.parameters()}.values()
    )
