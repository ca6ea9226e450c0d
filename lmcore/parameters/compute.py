"""Compute of a forward pass: multiply-accumulates (MACs) of every matrix product; 1 MAC = 2 FLOPs.

Counted are matrix products alone, as is usual. A lookup, norms, softmax, activations, rotations,
biases and residual sums multiply no matrices and grow with d_model, not with its square.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lmcore.config import ModelConfig
from lmcore.parameters.counts import GROUPS
from lmcore.parameters.formula import product
from lmcore.parameters.published import Group, LayerKind, layer_kinds, require_positions


@dataclass(frozen=True)
class ComputeRow:
    """One kind of matrix product, over all layers and new tokens: a product and its value in MACs."""

    name: str
    group: Group
    symbols: str
    formula: str
    macs: int

    @property
    def flops(self) -> int:
        """Floating-point operations: a multiplication and an addition for each MAC."""
        return 2 * self.macs


@dataclass(frozen=True)
class ComputeCount:
    """The matrix products of one forward pass over `new_tokens` tokens after `past_tokens` cached ones."""

    rows: tuple[ComputeRow, ...]
    past_tokens: int
    new_tokens: int

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the pass."""
        return sum(row.macs for row in self.rows)

    @property
    def flops(self) -> int:
        """Floating-point operations of the pass, 2 x MACs."""
        return 2 * self.macs

    @property
    def macs_per_token(self) -> float:
        """MACs for each new token, on average over the pass."""
        return self.macs / self.new_tokens

    @property
    def flops_per_token(self) -> float:
        """FLOPs for each new token, on average over the pass."""
        return self.flops / self.new_tokens

    @property
    def group_macs(self) -> dict[Group, int]:
        """MACs of each group that has a row, in the order of GROUPS."""
        present = {row.group for row in self.rows}
        return {group: sum(row.macs for row in self.rows if row.group == group) for group in GROUPS if group in present}


def compute(
    config: ModelConfig,
    past_tokens: int = 0,
    new_tokens: int = 1,
    *,
    skip_masked: bool = False,
    last_logits_only: bool = False,
) -> ComputeCount:
    """Count the MACs of one forward pass.

    Decoding one token after P others is `compute(config, past_tokens=P)`; prefilling a prompt of S
    tokens is `compute(config, new_tokens=S)`.

    Args:
        config: a causal decoder's config.
        past_tokens: tokens whose keys and values are in the cache.
        new_tokens: tokens that go through the model now.
        skip_masked: leave out pairs of query and key that the mask hides. The model here computes and
            then masks them; a fused kernel can skip them.
        last_logits_only: logits at the last position alone, all that generation needs of a prompt.

    Returns:
        The rows in the model's order and their totals.

    Raises:
        ValueError: for past_tokens below 0, new_tokens below 1, more tokens than context_length, or a
            published model that is not a decoder.

    >>> config = ModelConfig(vocab_size=32000, d_model=4096, n_layers=32, n_heads=32, context_length=2048, d_mlp=11008)
    >>> head = compute(config).rows[-1]
    >>> head.formula, head.macs, head.flops
    ('1 x 4096 x 32000', 131072000, 262144000)
    """
    if past_tokens < 0:
        raise ValueError(f"past_tokens must be at least 0, got {past_tokens}.")
    if new_tokens < 1:
        raise ValueError(f"new_tokens must be at least 1, got {new_tokens}.")
    require_positions(config, past_tokens + new_tokens)

    def row(name: str, group: Group, symbols: str, **quantities: int) -> ComputeRow:
        return ComputeRow(name, group, *product(symbols, config, new_tokens=new_tokens, **quantities))

    def rows() -> Iterator[ComputeRow]:
        kinds = layer_kinds(config)
        for name, heads in ("q", "n_heads"), ("k", "n_kv_heads"), ("v", "n_kv_heads"):
            yield row(f"blocks.attn.{name}", "attention", f"new_tokens * n_layers * d_model * ({heads} * d_head)")
        for name in "scores", "z":
            for kind in kinds:
                pairs, n_pairs = _pairs(kind, past_tokens, new_tokens, skip_masked)
                symbols = f"{pairs} * {kind.symbol} * (n_heads * d_head)"
                yield row(f"blocks.attn.{name}{kind.suffix}", "attention", symbols, **n_pairs)
        yield row("blocks.attn.out", "attention", "new_tokens * n_layers * (n_heads * d_head) * d_model")
        mlps = "new_tokens * n_layers"
        if config.n_experts is not None:
            yield row("blocks.mlp.router", "mlp", "new_tokens * n_layers * d_model * n_experts")
            mlps = "new_tokens * n_layers * n_experts_used"
        for name in ("gate", "up") if config.gated_mlp else ("up",):
            yield row(f"blocks.mlp.{name}", "mlp", f"{mlps} * d_model * d_mlp")
        yield row("blocks.mlp.down", "mlp", f"{mlps} * d_mlp * d_model")
        yield row("head", "head", f"{'1' if last_logits_only else 'new_tokens'} * d_model * vocab_size")

    return ComputeCount(tuple(rows()), past_tokens, new_tokens)


def _pairs(kind: LayerKind, past: int, new: int, skip_masked: bool) -> tuple[str, dict[str, int]]:
    """Return how many (query, key) pairs a layer computes: symbols, and the value of the name in them."""
    window = past + new if kind.window is None else kind.window
    if not skip_masked:  # a local layer's cache holds the window less the query itself
        return "new_tokens * n_keys", {"n_keys": min(past, window - 1) + new}
    growing = min(max(window - past, 0), new)  # queries whose view is not yet cut by the window
    seen = growing * past + growing * (growing + 1) // 2 + (new - growing) * window
    return "n_pairs", {"n_pairs": seen}
