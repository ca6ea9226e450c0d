"""The shape of a model: every size and choice that decides which tensors exist."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

Norm = Literal["rmsnorm", "layernorm"]
Activation = Literal["silu", "gelu", "gelu_tanh", "gelu_sigmoid", "relu"]
PositionEncodingName = Literal["rope", "learned", "sinusoidal", "alibi", "relative", "none"]
RopeLayout = Literal["half_split", "interleaved"]
RopeScalingKind = Literal["linear", "ntk", "yarn", "llama3", "longrope"]
QKNormOver = Literal["head", "all_heads"]
ExpertWeightsOver = Literal["chosen", "all"]

_CHOICES: dict[str, tuple[str, ...]] = {
    "norm": get_args(Norm),
    "activation": get_args(Activation),
    "position_encoding": get_args(PositionEncodingName),
    "rope_layout": get_args(RopeLayout),
    "qk_norm_over": get_args(QKNormOver),
    "expert_weights_over": get_args(ExpertWeightsOver),
}
_COUNTS = (
    "vocab_size",
    "d_model",
    "n_layers",
    "n_heads",
    "context_length",
    "n_kv_heads",
    "d_head",
    "d_mlp",
    "relative_buckets",
    "relative_max_distance",
)
_POSITIVE_REALS = ("norm_eps", "rope_base", "embedding_scale", "residual_scale", "logit_scale", "init_std")
_OPTIONAL_REALS = ("rope_base_local", "attention_scale", "attention_softcap", "logit_softcap", "mlp_limit")
_SWITCHES = (
    "gated_mlp",
    "tie_embeddings",
    "attention_bias",
    "attention_out_bias",
    "mlp_bias",
    "head_bias",
    "norm_bias",
    "norm_unit_offset",
    "qk_norm",
    "pre_norm",
    "sandwich_norm",
    "parallel_residual",
    "attention_sinks",
    "router_bias",
    "int8_cache",
)


@dataclass(frozen=True, kw_only=True)
class RopeScaling:
    """How RoPE's frequencies are stretched for contexts longer than the trained one.

    "linear" divides every frequency by `factor` (Chen et al. 2023, "Extending Context Window").
    "ntk" raises the base instead, so that the fastest pair keeps its frequency and the slowest is divided by `factor`
    (Peng et al. 2023, "YaRN", section 3.1, definition 1: NTK-aware interpolation).
    "yarn" keeps pairs that turn more than `high_frequency_factor` times within original_context_length, divides those
    that turn less than `low_frequency_factor` times, and blends the pairs between by their index (section 3.2, beta and
    alpha, and the ramp of its reference code); the ramp's ends are whole numbers where `whole_pairs`.
    "llama3" leaves fast dimensions alone, divides slow ones by `factor`, and blends between; fast and
    slow are those whose wavelength is below original_context_length / high_frequency_factor and above
    original_context_length / low_frequency_factor (apply_scaling in the Llama 3.1 reference code).
    "longrope" divides each frequency by a number of its own: one of `short_factors` in texts of up to
    original_context_length tokens, one of `long_factors` in longer ones (Ding et al. 2024, "LongRoPE", section 3).

    Rotated queries and keys are also multiplied by `attention_factor`, so that the softmax is sharper. `magnitude` sets
    it; None follows the kind's rule.

    Raises:
        ValueError: for a field out of its range, naming the field and the value.
    """

    kind: RopeScalingKind
    factor: float
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = None  # type: ignore[assignment]  # resolved below: 32 for "yarn", else 4
    original_context_length: int = 8192
    whole_pairs: bool = True
    short_factors: tuple[float, ...] = ()
    long_factors: tuple[float, ...] = ()
    magnitude: float | None = None

    def __post_init__(self) -> None:
        for name in ("short_factors", "long_factors"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            for factor in getattr(self, name):
                _require_positive(f"rope_scaling.{name}", factor)
        if self.magnitude is not None:
            _require_positive("rope_scaling.magnitude", self.magnitude)
        if self.kind == "longrope" and not len(self.short_factors) == len(self.long_factors) > 0:
            raise ValueError(
                "rope_scaling of kind 'longrope' needs as many short_factors as long_factors, one for each pair, got "
                f"{len(self.short_factors)} and {len(self.long_factors)}."
            )
        if self.high_frequency_factor is None:
            object.__setattr__(self, "high_frequency_factor", 32.0 if self.kind == "yarn" else 4.0)
        if self.kind not in get_args(RopeScalingKind):
            raise ValueError(
                f"rope_scaling.kind must be one of {', '.join(get_args(RopeScalingKind))}, got {self.kind!r}."
            )
        for name in ("factor", "low_frequency_factor", "high_frequency_factor", "original_context_length"):
            _require_positive(f"rope_scaling.{name}", getattr(self, name))
        if self.high_frequency_factor <= self.low_frequency_factor:
            raise ValueError(
                f"rope_scaling.high_frequency_factor = {self.high_frequency_factor} must be above "
                f"low_frequency_factor = {self.low_frequency_factor}."
            )

    @property
    def attention_factor(self) -> float:
        """What rotated queries and keys are multiplied by: `magnitude`, or what the kind's rule says.

        YaRN: 0.1 ln(factor) + 1 (section 3.4). LongRoPE: sqrt(1 + ln(factor) / ln(original_context_length)). Others: 1.

        >>> round(RopeScaling(kind="yarn", factor=4.0).attention_factor, 4)
        1.1386
        """
        if self.magnitude is not None:
            return self.magnitude
        if self.kind == "yarn" and self.factor > 1:
            return 0.1 * math.log(self.factor) + 1
        if self.kind == "longrope" and self.factor > 1:
            return math.sqrt(1 + math.log(self.factor) / math.log(self.original_context_length))
        return 1.0


def _require_positive(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}.")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Every size and choice of a decoder-only transformer.

    `n_kv_heads`, `d_head` and `d_mlp` may be left out; they then become `n_heads`,
    `d_model // n_heads` and `4 * d_model`. `attention_scale` None means 1 / sqrt(d_head).
    The blocks of `local_layers` see only the last `sliding_window` positions, and rotate with
    `rope_base_local` when that is given; `rope_scaling` then applies to the other blocks only. RoPE turns the first
    `rope_dims` components of each head, all where that is None, and none in the blocks of `unrotated_layers`.

    With `n_experts`, each block has so many MLPs of width d_mlp and a router that sends each token to `n_experts_used`
    of them; their weights are a softmax over the router's logits of the chosen, or over those of all experts.

    With `int8_cache`, attention reads keys and values as a KV cache of 8-bit numbers keeps them (`kv_cache.py`), with
    a cache and without one.

    Raises:
        ValueError: for a field out of its range, naming the field and the value.

    >>> ModelConfig(vocab_size=50257, d_model=768, n_layers=12, n_heads=12, context_length=1024).d_head
    64
    """

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    context_length: int
    n_kv_heads: int = None  # type: ignore[assignment]  # resolved below, so that readers always see an int
    d_head: int = None  # type: ignore[assignment]
    d_mlp: int = None  # type: ignore[assignment]
    norm: Norm = "rmsnorm"
    norm_eps: float = 1e-5
    norm_bias: bool = False
    norm_unit_offset: bool = False
    qk_norm: bool = False
    qk_norm_over: QKNormOver = "head"
    pre_norm: bool = True
    sandwich_norm: bool = False
    parallel_residual: bool = False
    activation: Activation = "silu"
    gated_mlp: bool = True
    mlp_limit: float | None = None
    mlp_up_offset: float = 0.0
    n_experts: int | None = None
    n_experts_used: int | None = None
    expert_weights_over: ExpertWeightsOver = "chosen"
    router_bias: bool = False
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    position_encoding: PositionEncodingName = "rope"
    rope_layout: RopeLayout = "half_split"
    rope_base: float = 10_000.0
    rope_base_local: float | None = None
    rope_scaling: RopeScaling | None = None
    rope_dims: int | None = None
    unrotated_layers: tuple[int, ...] = ()
    sliding_window: int | None = None
    local_layers: tuple[int, ...] = ()
    attention_sinks: bool = False
    attention_scale: float | None = None
    attention_softcap: float | None = None
    logit_softcap: float | None = None
    relative_buckets: int = 32
    relative_max_distance: int = 128
    tie_embeddings: bool = True
    attention_bias: bool = False
    attention_out_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    init_std: float = 0.02
    int8_cache: bool = False

    def __post_init__(self) -> None:
        for name in ("vocab_size", "d_model", "n_layers", "n_heads", "context_length"):
            self._require_count(name)
        defaults = {
            "n_kv_heads": self.n_heads,
            "d_head": self.d_model // self.n_heads,
            "d_mlp": 4 * self.d_model,
        }
        if self.d_head is None and self.d_model % self.n_heads:
            raise ValueError(
                f"d_model = {self.d_model} is not a multiple of n_heads = {self.n_heads}; "
                "choose a multiple or give d_head explicitly."
            )
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        for name in _COUNTS:
            self._require_count(name)
        for name in _POSITIVE_REALS:
            _require_positive(name, getattr(self, name))
        for name in _OPTIONAL_REALS:
            if getattr(self, name) is not None:
                _require_positive(name, getattr(self, name))
        for name in _SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}.")
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"n_heads = {self.n_heads} is not a multiple of n_kv_heads = {self.n_kv_heads}; "
                "each key/value head must serve the same number of query heads."
            )
        if self.position_encoding == "rope" and self.d_head % 2 and self.rope_dims is None:
            raise ValueError(f"d_head = {self.d_head} is odd; RoPE rotates pairs and needs an even d_head.")
        if self.rope_dims is not None:
            self._require_count("rope_dims")
            if self.rope_dims % 2 or self.rope_dims > self.d_head:
                raise ValueError(
                    f"rope_dims = {self.rope_dims} must be even and at most d_head = {self.d_head}; RoPE rotates pairs."
                )
        if self.position_encoding == "relative" and self.relative_buckets < 2:
            raise ValueError(f"relative_buckets must be at least 2, got {self.relative_buckets}.")
        if self.norm == "rmsnorm" and self.norm_bias:
            raise ValueError("norm_bias = True needs norm = 'layernorm'; RMSNorm has no bias.")
        if self.norm == "layernorm" and self.norm_unit_offset:
            raise ValueError("norm_unit_offset = True needs norm = 'rmsnorm'.")
        self._require_experts()
        for name in ("local_layers", "unrotated_layers"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            if not all(0 <= layer < self.n_layers for layer in getattr(self, name)):
                raise ValueError(
                    f"{name} must be indices from 0 to {self.n_layers - 1}, got {list(getattr(self, name))}."
                )
        if isinstance(self.rope_scaling, dict):
            object.__setattr__(self, "rope_scaling", RopeScaling(**self.rope_scaling))
        if self.local_layers:
            self._require_count("sliding_window")

    @property
    def score_scale(self) -> float:
        """What attention multiplies q·k by: `attention_scale`, or 1 / sqrt(d_head) where that is None."""
        return 1 / math.sqrt(self.d_head) if self.attention_scale is None else self.attention_scale

    @property
    def n_local_layers(self) -> int:
        """Blocks that see a sliding window only."""
        return len(self.local_layers)

    @property
    def n_global_layers(self) -> int:
        """Blocks whose queries see every earlier position."""
        return self.n_layers - self.n_local_layers

    @property
    def n_rotated(self) -> int:
        """Components of each head that RoPE turns: `rope_dims`, or d_head where that is None."""
        return self.d_head if self.rope_dims is None else self.rope_dims

    def turns_anew(self, cached: int, length: int) -> bool:
        """Return whether a text of this length turns its keys otherwise than the cached ones were turned.

        LongRoPE turns the keys of short and of long texts by two tables, so a cache serves texts of one kind.
        """
        scaling = self.rope_scaling
        if scaling is None or scaling.kind != "longrope" or cached == 0:
            return False
        return (cached <= scaling.original_context_length) != (length <= scaling.original_context_length)

    @property
    def attn_added(self) -> str:
        """The name within a block of what attention adds to the residual stream: the last of attn.out, the norm after
        it and the scaled."""
        return "attn_scaled" if self.residual_scale != 1 else "attn_post_norm.out" if self.sandwich_norm else "attn.out"

    @property
    def mlp_added(self) -> str:
        """The name within a block of what the MLP adds to the residual stream."""
        return "mlp_scaled" if self.residual_scale != 1 else "mlp_post_norm.out" if self.sandwich_norm else "mlp.out"

    def _require_experts(self) -> None:
        if self.n_experts is None and self.n_experts_used is None:
            return
        for name in ("n_experts", "n_experts_used"):
            self._require_count(name)
        assert self.n_experts is not None and self.n_experts_used is not None
        if self.n_experts_used > self.n_experts:
            raise ValueError(f"n_experts_used = {self.n_experts_used} is more than n_experts = {self.n_experts}.")
        if not self.gated_mlp:
            raise ValueError("n_experts needs gated_mlp = True; experts without a gate are not supported.")

    def _require_count(self, name: str) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ModelConfig:
        """Build a config from plain values, refusing a field that is not understood.

        Raises:
            ValueError: naming the unknown or missing field.
        """
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise ValueError(f"config field {unknown[0]!r} = {values[unknown[0]]!r} is not understood.")
        try:
            return cls(**values)
        except TypeError as error:
            raise ValueError(f"config is incomplete: {error}.") from error
