"""Many positions at once, each by the falling order of its logits: for a whole text under a slider.

Most filters keep a stretch of that order, as a rule its beginning, so of each position two numbers tell what survives.
`SortedRows` gives sums over such a stretch and the places where a threshold falls; a stage that needs no more says so
by `Stage.falling`, and does for N positions together what `Stage.run` does for one.

A position is `certain` while this gives the same survivors as the chain. It is not where a number lies so near its
threshold that rounding decides, or where sums lose their digits: there the chain is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from lmcore.sampling.sorted_rows import LEAST_TEMPERATURE, MOST_TEMPERATURE, Bins, SortedRows

__all__ = ["GUARD", "Falling"]

GUARD = 1e-11
"""How near a number may come to its threshold, as a share, before its position is left to the chain: far more than
sums of float64 in another order differ by, far less than most tokens weigh."""
_LEAST_LEFT = 1e-4  # of a sum, once its beginning was taken away: less would be what rounding left
_DEEPEST = 12.0  # temperatures below the largest: survivors further down have too few terms


@dataclass(frozen=True, eq=False)
class Falling:
    """The survivors of N positions: of each, `count` tokens of the falling order, from its place `first` on.

    Attributes:
        rows: All tokens of each position, whose values count from the largest one.
        vocab_size: V.
        first, count: `[N]` int64.
        temperature: `[N]` float64, more than 0.
        certain: `[N]` bool.
        tolerance: As `Context.tolerance`.
        entered: What entered each stage that ran, by the stage's name.
    """

    rows: SortedRows
    vocab_size: int
    first: Tensor
    count: Tensor
    temperature: Tensor
    certain: Tensor
    tolerance: float
    entered: Mapping[str, Falling] = field(default_factory=dict)

    @classmethod
    def start(cls, rows: SortedRows, vocab_size: int, tolerance: float) -> Falling:
        """All tokens of each position, at T = 1."""
        ones = torch.ones(len(rows), dtype=torch.float64)
        first = torch.zeros(len(rows), dtype=torch.int64)
        return cls(rows, vocab_size, first, rows.size, ones, rows.fits & (rows.size > 0), tolerance)

    @property
    def end(self) -> Tensor:
        """`[N]` int64, the place behind the last survivor."""
        return self.first + self.count

    @cached_property
    def largest(self) -> Tensor:
        """`[N]` float64, the value of the most probable survivor."""
        return self.rows.value(self.first)

    @cached_property
    def ahead(self) -> Bins:
        """`[N]` each, the sums over what is more probable than all survivors."""
        if not bool(self.first.any()):
            nothing = torch.zeros_like(self.temperature)
            return Bins(nothing, nothing)
        return self.rows.sums(self.temperature, self.first)

    @cached_property
    def sums(self) -> Bins:
        """`[N]` each, over the survivors: of `w = e^(value / T)`, and of `w * value / T`; NaN where too few digits."""
        until, ahead = self.rows.sums(self.temperature, self.end), self.ahead
        left = until.weights - ahead.weights
        lost = left < _LEAST_LEFT * until.weights
        lost |= (self.largest < -_DEEPEST * self.temperature) | (self.temperature < LEAST_TEMPERATURE)
        lost |= self.temperature > MOST_TEMPERATURE
        return Bins(left.masked_fill(lost, torch.nan), until.terms - ahead.terms)

    @property
    def total(self) -> Tensor:
        """`[N]` float64, the sum of the survivors' weights."""
        return self.sums.weights

    @cached_property
    def entropy_nats(self) -> Tensor:
        """`[N]` float64; one survivor has none, to the last digit."""
        found = self.total.log() - self.sums.terms / self.total
        return torch.where(self.count == 1, 0.0, found)

    def spread(self, correction: int) -> Tensor:
        """`[N]` float64, the standard deviation of the survivors' logits."""
        n = self.count.double()
        ends, begins = self.rows.powers(self.end), self.rows.powers(self.first)
        values, squares = (end - begin for end, begin in zip(ends, begins, strict=True))
        return ((squares - values**2 / n).clamp_min(0) / (n - correction)).sqrt()

    def after(self, stage: str, before: Falling) -> Falling:
        """The same, with what entered the stage that left them."""
        return replace(self, entered={**before.entered, stage: before})

    def unsure(self, where: Tensor) -> Falling:
        """The same, no longer certain where told."""
        return replace(self, certain=self.certain & ~where)

    def heated(self, temperature: Tensor) -> Falling:
        """The same survivors with their logits divided by temperatures `[N]`."""
        return replace(self, temperature=self.temperature * temperature)

    def keep(self, count: Tensor, first: Tensor | None = None) -> Falling:
        """The first `count` survivors, `[N]`, at least 1 each; or as many from the place `first` on."""
        begin = self.first if first is None else first
        return replace(self, first=begin, count=torch.minimum(count, self.end - begin).clamp_min(1))

    def keep_from(self, value: Tensor, guard: Tensor | None = None) -> Falling:
        """Those whose value is at least a cutoff `[N]`; where none is, the largest with its equals.

        Args:
            value: The cutoff.
            guard: `[N]`, how near to it a value may come with the position certain; by itself as near as `GUARD` of a
                probability is.
        """
        if guard is None:
            guard = GUARD * (self.temperature + value.abs().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0))
        sure, possible = (self.rows.count(value + side * guard)[1] - self.first for side in (1, -1))
        equals = self.rows.count(self.largest)[1] - self.first
        count = torch.minimum(sure, self.count)
        near = count != torch.minimum(possible, self.count)
        return self.keep(torch.where(count <= 0, equals, count)).unsure(near | value.isnan())

    def keep_probable(self, probability: Tensor) -> Falling:
        """Those of at least a probability `[N]`; where none is, the largest with its equals."""
        return self.keep_from(self.temperature * (probability * self.total).log())
