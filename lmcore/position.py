"""Position encodings: what tells a model where a token stands.

Each encoding acts at one of three points of the model: it is added to the token vectors
(learned, sinusoidal), rotates queries and keys (RoPE), or is added to the attention scores
(ALiBi, relative bias). `PositionEncoding` is the common face; what an encoding does not use
stays `None`, and the encoding "none" uses nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lmcore.config import ModelConfig, RopeLayout, RopeScaling

_HERE = "cpu"  # tables have their numbers also in a model that is made on the meta device and filled later


def sinusoidal_table(length: int, d_model: int, base: float = 10_000.0) -> Tensor:
    """Return the fixed table of sines and cosines, PE [length, d_model].

    PE[pos, 2i] = sin(pos / base^(2i / d_model)), PE[pos, 2i + 1] = cos(same); with an odd d_model
    the last column is a sine without its cosine. Vaswani et al. 2017, section 3.5.

    >>> [round(v, 4) for v in sinusoidal_table(2, 4)[1].tolist()]
    [0.8415, 0.5403, 0.01, 0.9999]
    """
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64, device=_HERE) / d_model
    angles = torch.arange(length, dtype=torch.float64, device=_HERE)[:, None] * base**-exponents
    table = torch.empty(length, d_model, dtype=torch.float64, device=_HERE)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : d_model // 2]
    return table.float()


def rope_frequencies(
    d_head: int, base: float = 10_000.0, scaling: RopeScaling | None = None, long: bool = False
) -> Tensor:
    """Return the rotation per position of each pair in radians, float64 [d_head / 2].

    theta_i = base^(-2i / d_head). Su et al. 2021, "RoFormer", section 3.2.2. `scaling` makes them slower; `long` texts
    have other frequencies under LongRoPE.

    >>> rope_frequencies(4).tolist()
    [1.0, 0.01]
    """
    if scaling is not None and scaling.kind == "ntk" and d_head > 2:
        base *= scaling.factor ** (d_head / (d_head - 2))
    frequencies = base ** -(torch.arange(0, d_head, 2, dtype=torch.float64, device=_HERE) / d_head)
    if scaling is None or scaling.kind == "ntk":
        return frequencies
    if scaling.kind == "longrope":
        factors = scaling.long_factors if long else scaling.short_factors
        if len(factors) != len(frequencies):
            raise ValueError(f"rope_scaling has {len(factors)} factors for {len(frequencies)} pairs.")
        return frequencies / torch.tensor(factors, dtype=torch.float64, device=_HERE)
    slowed = frequencies / scaling.factor
    if scaling.kind == "linear":
        return slowed
    kept = _kept_by_index(d_head, base, scaling) if scaling.kind == "yarn" else _kept_by_turns(frequencies, scaling)
    return kept * frequencies + (1 - kept) * slowed


def _kept_by_turns(frequencies: Tensor, scaling: RopeScaling) -> Tensor:
    """Return how much of each frequency is kept, 0 to 1: the more turns within the context trained first, the more."""
    turns = scaling.original_context_length * frequencies / (2 * math.pi)
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    return ((turns - low) / (high - low)).clamp(0, 1)


def _kept_by_index(d_head: int, base: float, scaling: RopeScaling) -> Tensor:
    """Return the same by a ramp over the pairs, from the one that turns often to the one that hardly turns."""

    def pair_that_turns(times: float) -> float:
        return d_head * math.log(scaling.original_context_length / (times * 2 * math.pi)) / (2 * math.log(base))

    first, last = pair_that_turns(scaling.high_frequency_factor), pair_that_turns(scaling.low_frequency_factor)
    if scaling.whole_pairs:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, d_head - 1)
    ramp = (torch.arange(d_head // 2, dtype=torch.float64, device=_HERE) - first) / (last - first or 0.001)
    return 1 - ramp.clamp(0, 1)


@dataclass(frozen=True)
class Rotation:
    """The rotation of the pairs of a query or key at S positions.

    Attributes:
        cos: [S, n_rotated], the cosine of each component's angle.
        signed_sin: [S, n_rotated], the sine, negative at the first component of each pair.
        layout: which components form a pair.
    """

    cos: Tensor
    signed_sin: Tensor
    layout: RopeLayout

    def __call__(self, x: Tensor) -> Tensor:
        """Rotate x [..., S, d_head]: a pair (a, b) becomes (a cos - b sin, b cos + a sin).

        Components after the first n_rotated stay as they are.
        """
        if x.shape[-1] > (n_rotated := self.cos.shape[-1]):
            return torch.cat((self(x[..., :n_rotated]), x[..., n_rotated:]), -1)
        return torch.addcmul(x * self.cos, swap_pairs(x, self.layout), self.signed_sin).to(x.dtype)


def swap_pairs(x: Tensor, layout: RopeLayout) -> Tensor:
    """Exchange the two components of each pair of the last axis.

    The pairs are (0, d/2), (1, d/2 + 1), ... in the half-split layout (GPT-NeoX, LLaMA files of
    Hugging Face) and (0, 1), (2, 3), ... in the interleaved one (RoFormer, GPT-J).

    >>> swap_pairs(torch.tensor([1.0, 2.0, 3.0, 4.0]), "half_split").tolist()
    [3.0, 4.0, 1.0, 2.0]
    >>> swap_pairs(torch.tensor([1.0, 2.0, 3.0, 4.0]), "interleaved").tolist()
    [2.0, 1.0, 4.0, 3.0]
    """
    if layout == "half_split":
        return x.roll(x.shape[-1] // 2, -1)
    return x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)


def make_rotation(
    positions: Tensor, frequencies: Tensor, layout: RopeLayout = "half_split", magnitude: float = 1.0
) -> Rotation:
    """Return the rotation for positions [S] (any real numbers) at these frequencies [n_rotated / 2].

    What is rotated also grows by `magnitude`, see `RopeScaling.attention_factor`.

    Angles are taken in float64 and stored as float32: half-precision tables merge positions.
    """
    angles = positions.double()[:, None] * frequencies
    cos, sin = (magnitude * angles.cos()).float(), (magnitude * angles.sin()).float()
    if layout == "half_split":
        return Rotation(torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1), layout)
    return Rotation(cos.repeat_interleave(2, -1), torch.stack((-sin, sin), -1).flatten(-2), layout)


def alibi_slopes(n_heads: int) -> Tensor:
    """Return the slope of each head, float32 [n_heads].

    For n a power of two: 2^(-8/n), 2^(-16/n), ... Otherwise the slopes of the next lower power of
    two, followed by every other slope of the next higher one. Press et al. 2022, "Train Short,
    Test Long", section 3 and the rule of its reference code.

    >>> alibi_slopes(6).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]
    """

    def geometric(n: int) -> list[float]:
        return [2 ** (-8 * (head + 1) / n) for head in range(n)]

    power = 2 ** math.floor(math.log2(n_heads))
    return torch.tensor(geometric(power) + geometric(2 * power)[0::2][: n_heads - power], device=_HERE)


def relative_bucket(distance: Tensor, n_buckets: int, max_distance: int) -> Tensor:
    """Return the bucket [..., same shape] of each distance query - key >= 0.

    Half of the buckets hold one distance each, the others grow logarithmically up to
    `max_distance`; all that is farther shares the last. Raffel et al. 2020 (T5), section 2.1,
    and the causal branch of its reference code.

    >>> relative_bucket(torch.tensor([0, 1, 15, 16, 31, 127, 500]), 32, 128).tolist()
    [0, 1, 15, 16, 21, 31, 31]
    """
    distance = distance.clamp(min=0)
    n_exact = n_buckets // 2
    if max_distance <= n_exact:
        return distance.clamp(max=n_buckets - 1)
    growth = torch.log(distance.clamp(min=1).float() / n_exact) / math.log(max_distance / n_exact)
    far = (n_exact + (growth * (n_buckets - n_exact)).long()).clamp(max=n_buckets - 1)
    return torch.where(distance < n_exact, distance, far)


class PositionEncoding(nn.Module):
    """No position information: the common face of all encodings, and the encoding "none"."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config

    def added(self, start: int, length: int) -> Tensor | None:
        """Return what is added to the token vectors at positions start ... start + length - 1, [length, d_model]."""
        return None

    def rotation(self, start: int, length: int, local: bool = False) -> Rotation | None:
        """Return the rotation of queries and keys at these positions, in local blocks or in the others."""
        return None

    def score_bias(self, start: int, length: int) -> Tensor | None:
        """Return what is added to the scores, [n_heads, length, start + length]."""
        return None

    def reset_parameters(self, std: float) -> None:
        """Draw learned tables from N(0, std^2), when there are any."""


class LearnedPosition(PositionEncoding):
    """One learned vector for each position up to context_length (GPT-2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.weight = nn.Parameter(torch.empty(config.context_length, config.d_model))

    def added(self, start: int, length: int) -> Tensor:
        """Return the rows of the learned table, [length, d_model]."""
        return self.weight[start : start + length]

    def reset_parameters(self, std: float) -> None:
        """Draw the table from N(0, std^2)."""
        nn.init.normal_(self.weight, std=std)


class SinusoidalPosition(PositionEncoding):
    """The fixed table of sines and cosines; Vaswani et al. 2017 set embedding_scale to sqrt(d_model) beside it."""

    table: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.register_buffer("table", sinusoidal_table(config.context_length, config.d_model), persistent=False)

    def added(self, start: int, length: int) -> Tensor:
        """Return the rows of the fixed table, [length, d_model]."""
        return self.table[start : start + length]


class RotaryPosition(PositionEncoding):
    """RoPE: rotate pairs of q and k by position times frequency; v is left alone."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        turned, base, scaling = config.n_rotated, config.rope_base, config.rope_scaling
        magnitude = 1.0 if scaling is None else scaling.attention_factor
        self._everywhere = _RotationTable(rope_frequencies(turned, base, scaling), config, magnitude)
        self._long = self._everywhere
        self._short_texts = config.context_length
        if scaling is not None and scaling.kind == "longrope":
            self._long = _RotationTable(rope_frequencies(turned, base, scaling, long=True), config, magnitude)
            self._short_texts = scaling.original_context_length
        self._local: _RotationTable | None = None
        if config.rope_base_local is not None:
            self._local = _RotationTable(rope_frequencies(turned, config.rope_base_local), config)

    def rotation(self, start: int, length: int, local: bool = False) -> Rotation:
        """Return the rotation for these positions.

        Raises:
            ValueError: when keys in the cache were turned as LongRoPE turns short texts and the text is now a long one.
        """
        if 0 < start <= self._short_texts < start + length:
            raise ValueError(
                f"this model turns the keys of texts over {self._short_texts:,} tokens otherwise, and the cache "
                "holds keys of a shorter text; begin again with the whole text and an empty cache."
            )
        table = self._everywhere if start + length <= self._short_texts else self._long
        return (self._local if local and self._local is not None else table).rows(start, length)


class _RotationTable:
    """The rotations of positions 0, 1, 2, ..., as far as they were asked for.

    A context of 32,768 positions with heads of 256 would fill 67 MB, most of them for texts that never come.
    """

    def __init__(self, frequencies: Tensor, config: ModelConfig, magnitude: float = 1.0) -> None:
        self._magnitude = magnitude
        self._frequencies, self._layout, self._limit = frequencies, config.rope_layout, config.context_length
        self._table = self._computed(min(512, self._limit))

    def rows(self, start: int, length: int) -> Rotation:
        table, stop = self._table, start + length
        if stop > len(table.cos):
            table = self._table = self._computed(min(max(stop, 2 * len(table.cos)), self._limit))
        return Rotation(table.cos[start:stop], table.signed_sin[start:stop], self._layout)

    def _computed(self, length: int) -> Rotation:
        with torch.inference_mode(False):  # a table first needed for looking serves learning too
            return make_rotation(torch.arange(length, device=_HERE), self._frequencies, self._layout, self._magnitude)


class AlibiPosition(PositionEncoding):
    """ALiBi: -slope_h * (query - key) on the scores of head h."""

    slopes: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.register_buffer("slopes", alibi_slopes(config.n_heads), persistent=False)

    def score_bias(self, start: int, length: int) -> Tensor:
        """Return the linear bias [n_heads, length, start + length]."""
        return -self.slopes[:, None, None] * query_key_distance(start, length)


class RelativePosition(PositionEncoding):
    """A learned bias for each head and distance bucket, shared by all layers (T5)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.weight = nn.Parameter(torch.empty(config.relative_buckets, config.n_heads))

    def score_bias(self, start: int, length: int) -> Tensor:
        """Return the learned bias [n_heads, length, start + length]."""
        buckets = relative_bucket(
            query_key_distance(start, length), self.config.relative_buckets, self.config.relative_max_distance
        )
        return self.weight[buckets].permute(2, 0, 1)

    def reset_parameters(self, std: float) -> None:
        """Draw the biases from N(0, std^2)."""
        nn.init.normal_(self.weight, std=std)


def query_key_distance(start: int, length: int) -> Tensor:
    """Return query - key [length, start + length]; negative where the key lies ahead.

    >>> query_key_distance(1, 2).tolist()
    [[1, 0, -1], [2, 1, 0]]
    """
    return torch.arange(start, start + length)[:, None] - torch.arange(start + length)


POSITION_ENCODINGS: dict[str, type[PositionEncoding]] = {
    "none": PositionEncoding,
    "learned": LearnedPosition,
    "sinusoidal": SinusoidalPosition,
    "rope": RotaryPosition,
    "alibi": AlibiPosition,
    "relative": RelativePosition,
}
