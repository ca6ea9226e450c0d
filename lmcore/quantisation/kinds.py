"""The kinds of quantisation: how a block of weights becomes whole numbers, and how many bytes these take.

All but int8 are types of GGUF files. Their rules are those of llama.cpp's reference code (ggml-quants.c), which the
package gguf follows too; the tests hold every kind to that package, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_FP4 = (0, 1, 2, 3, 4, 6, 8, 12)  # the magnitudes of an e2m1 float, doubled so that they are whole
_FP4_MIDDLES = (0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0)


@dataclass(frozen=True)
class Blocks:
    """Quantised weights, a row a block.

    Attributes:
        scale: d, float32 [n, 1].
        minimum: m, float32 [n, 1]; None in kinds that have none, which are those whose q may be negative.
        codes: q, int8 [n, block].
    """

    scale: Tensor
    minimum: Tensor | None
    codes: Tensor

    @property
    def values(self) -> Tensor:
        """What the weights are read back as: d q + m, float32 [n, block]."""
        products = self.scale * self.codes
        return products if self.minimum is None else products.add_(self.minimum)


@dataclass(frozen=True)
class Kind:
    """A kind of quantisation.

    Attributes:
        name: what stands after a model's name: "smollm2-135m-instruct:q4_0".
        levels: the values that q can have, ascending.
        block: weights that share a scale; None for those of a whole row.
        block_bytes: bytes of a block in a file; for a whole row, those besides one for each weight.
        quantise: float32 [n, block] -> Blocks.
        fallback: the kind that llama.cpp takes for a matrix whose rows are no multiple of the block.
        rule: d and m of a block, as an equation.
    """

    name: str
    levels: tuple[int, ...]
    block: int | None
    block_bytes: int
    quantise: Callable[[Tensor], Blocks]
    rule: str
    fallback: str | None = None

    @property
    def has_minimum(self) -> bool:
        """Whether a block keeps a minimum beside its scale."""
        return self.levels[0] == 0

    def fits(self, row: int) -> bool:
        """Whether rows of so many weights are whole blocks."""
        return self.block is None or row % self.block == 0

    def n_bytes(self, shape: tuple[int, ...]) -> int:
        """Return the bytes of a matrix [..., row] in a file.

        >>> KINDS["q4_0"].n_bytes((10, 64)), KINDS["int8"].n_bytes((10, 64))
        (360, 680)
        """
        rows, row = torch.Size(shape[:-1]).numel(), shape[-1]
        return rows * (row + self.block_bytes if self.block is None else row // self.block * self.block_bytes)

    def bits_per_weight(self, row: int) -> float:
        """Return the bits of a weight in rows of this length, its share of the scale and minimum included.

        >>> KINDS["q4_0"].bits_per_weight(64), KINDS["q8_0"].bits_per_weight(64), KINDS["int8"].bits_per_weight(64)
        (4.5, 8.5, 8.5)
        """
        return 8 * self.n_bytes((row,)) / row

    def blocks_of(self, matrix: Tensor) -> Blocks:
        """Quantise a matrix [..., row]; the blocks follow one another along its rows.

        Raises:
            ValueError: for rows that are no multiple of the block.
        """
        row = matrix.shape[-1]
        if not self.fits(row):
            raise ValueError(f"{self.name} takes {self.block} weights at a time; rows of {row} are no multiple of it.")
        return self.quantise(matrix.detach().float().reshape(-1, self.block or row))


def _rounded_away(x: Tensor) -> Tensor:
    """Round to the nearest whole number, halves away from 0, as C's roundf does."""
    whole = x.trunc()
    return whole.add_((2 * (x - whole)).trunc_())


def _inverse(scale: Tensor) -> Tensor:
    """Return 1 / d, and 0 where that cannot be said: in a block of zeros."""
    inverse = 1 / scale
    return inverse.where(inverse.isfinite(), torch.zeros(()))


def _kept(scale: Tensor) -> Tensor:
    """Return a scale or minimum as the file keeps it, in float16."""
    return scale.half().float()


def _by_largest_magnitude(top: int) -> Callable[[Tensor], Blocks]:
    """q from -top to top, and the largest magnitude becomes top: d = max |w| / top."""

    def quantise(blocks: Tensor) -> Blocks:
        scale = blocks.abs().amax(-1, keepdim=True) / top
        return Blocks(_kept(scale), None, _rounded_away(blocks * _inverse(scale)).to(torch.int8))

    return quantise


def _by_largest(top: int) -> Callable[[Tensor], Blocks]:
    """q from -top to top - 1, and the weight of the largest magnitude becomes -top: d = -w / top."""

    def quantise(blocks: Tensor) -> Blocks:
        largest = blocks.gather(-1, blocks.abs().argmax(-1, keepdim=True))
        scale = largest / -top
        stored = (blocks * _inverse(scale) + (top + 0.5)).trunc().clamp_(0, 2 * top - 1)
        return Blocks(_kept(scale), None, (stored - top).to(torch.int8))

    return quantise


def _by_range(top: int) -> Callable[[Tensor], Blocks]:
    """q from 0 to top, from the smallest weight to the largest: m = min w, d = (max w - min w) / top."""

    def quantise(blocks: Tensor) -> Blocks:
        low, high = blocks.aminmax(dim=-1, keepdim=True)
        scale = (high - low) / top
        codes = ((blocks - low) * _inverse(scale) + 0.5).trunc().clamp_(0, top)
        return Blocks(_kept(scale), _kept(low), codes.to(torch.int8))

    return quantise


def _by_power_of_two(blocks: Tensor) -> Blocks:
    """q among 0, ±1, ±2, ±3, ±4, ±6, ±8, ±12, the nearest; d is a power of two, so that max |w| / d lies in [8, 16).

    MXFP4 of the OCP Microscaling Formats specification 1.0: d is kept as an exponent, a weight as a 4-bit float.
    """
    largest = blocks.abs().amax(-1, keepdim=True)
    above = torch.frexp(largest).exponent  # largest < 2^above <= 2 largest
    scale = torch.ldexp(torch.ones_like(largest), above - 4)
    step = torch.bucketize(blocks.abs() / scale, torch.tensor(_FP4_MIDDLES))
    magnitudes = torch.tensor(_FP4, dtype=torch.int8)[step]
    scale = scale.where(largest > 0, torch.full((), 2.0**-128))  # the least exponent, as the file has it
    return Blocks(scale, None, magnitudes * blocks.sign().to(torch.int8))


def _by_row(blocks: Tensor) -> Blocks:
    """q from -127 to 127, d = max |w| / 127 of a whole row, kept in float32; halves go to the even number.

    "Absmax" quantisation, one scale a row of the matrix (Dettmers et al. 2022, "LLM.int8()", section 2.1).
    """
    scale = blocks.abs().amax(-1, keepdim=True) / 127
    return Blocks(scale, None, (blocks / scale.where(scale > 0, torch.ones(()))).round_().to(torch.int8))


_MAGNITUDE, _LARGEST, _RANGE = (
    r"d = \frac{{\max |w|}}{{{top}}}",
    r"d = \frac{{-\,w_{{\max |w|}}}}{{{top}}}",
    r"m = \min w, \quad d = \frac{{\max w - \min w}}{{{top}}}",
)


def _levels(low: int, high: int) -> tuple[int, ...]:
    return tuple(range(low, high + 1))


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("q8_0", _levels(-127, 127), 32, 34, _by_largest_magnitude(127), _MAGNITUDE.format(top=127)),
        Kind("q5_1", _levels(0, 31), 32, 24, _by_range(31), _RANGE.format(top=31)),
        Kind("q5_0", _levels(-16, 15), 32, 22, _by_largest(16), _LARGEST.format(top=16)),
        Kind("q4_1", _levels(0, 15), 32, 20, _by_range(15), _RANGE.format(top=15)),
        Kind("q4_0", _levels(-8, 7), 32, 18, _by_largest(8), _LARGEST.format(top=8)),
        Kind(
            "mxfp4",
            (*(-level for level in _FP4[:0:-1]), *_FP4),
            32,
            17,
            _by_power_of_two,
            r"d = 2^{\lfloor \log_2 \max |w| \rfloor - 3}",
        ),
        Kind("tq2_0", (-1, 0, 1), 256, 66, _by_largest_magnitude(1), r"d = \max |w|", fallback="q4_0"),
        Kind("tq1_0", (-1, 0, 1), 256, 54, _by_largest_magnitude(1), r"d = \max |w|", fallback="q4_0"),
        Kind("int8", _levels(-127, 127), None, 4, _by_row, _MAGNITUDE.format(top=127)),
    )
}
"""The kinds by name: the types that the package gguf can write, and int8 by row."""


def kind_named(name: str) -> Kind:
    """Return a kind by name.

    Raises:
        ValueError: for a name that is not in KINDS.
    """
    if name not in KINDS:
        raise ValueError(f"no kind of quantisation is called {name!r}; choose one of {', '.join(KINDS)}.")
    return KINDS[name]
