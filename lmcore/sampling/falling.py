"""Many positions at once, each by the falling order of its logits: for a whole text under a slider.

Most filters keep a stretch of that order, as a rule its beginning, so of each position two numbers tell what survives,
and one comparison over the `[N, W]` largest logits does for N positions what `Stage.run` does for one. A stage that
can says so by `Stage.falling`.

A position is `certain` while this gives the same survivors as the chain. It is not where more than W tokens survive
but not all of them, or where a number lies so near its threshold that rounding decides: there the chain is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["GUARD", "Falling", "Sums"]

GUARD = 1e-11
"""How near a number may come to its threshold, as a share, before its position is left to the chain: far more than
sums of float64 in another order differ by, far less than most tokens weigh."""


class Sums(Protocol):
    """Sums over all V tokens of positions, which the W largest alone do not tell."""

    def weights(self, temperature: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
        """Sum `w` and `w * x` where asked, `[N]` each: `x = (z - max z) / T`, `w = e^x`; NaN elsewhere."""

    def spread(self, correction: int) -> Tensor:
        """`[N]`, the standard deviation of the logits."""


@dataclass(frozen=True, eq=False)
class Falling:
    """The survivors of N positions: of each, `count` tokens of the falling order, from its place `first` on.

    Attributes:
        logits: `[N, W]` float64, the W largest of each position less the largest: falling, and 0 at first.
        vocab_size: V.
        began: `[N]` int64, how many tokens were possible before any stage.
        sums: Over all of these.
        first, count: `[N]` int64.
        temperature: `[N]` float64, more than 0.
        certain: `[N]` bool.
        tolerance: As `Context.tolerance`.
        entered: What entered each stage that ran, by the stage's name.
    """

    logits: Tensor
    vocab_size: int
    began: Tensor
    sums: Sums
    first: Tensor
    count: Tensor
    temperature: Tensor
    certain: Tensor
    tolerance: float
    entered: Mapping[str, Falling] = field(default_factory=dict)

    @classmethod
    def start(
        cls, logits: Tensor, vocab_size: int, began: Tensor, sums: Sums, temperature: Tensor, tolerance: float
    ) -> Falling:
        """All tokens of each position. A position whose logits are not finite is not certain."""
        finite = torch.isfinite(logits[:, 0]) & torch.isfinite(logits[:, -1])
        first = torch.zeros(len(logits), dtype=torch.int64)
        return cls(logits, vocab_size, began, sums, first, began, temperature, finite, tolerance)

    @property
    def width(self) -> int:
        """W, how many of each position's largest logits are at hand."""
        return self.logits.shape[1]

    @cached_property
    def is_whole(self) -> Tensor:
        """`[N]` bool, where all tokens survive."""
        return self.count == self.began

    @cached_property
    def at_hand(self) -> Tensor:
        """`[N]` bool, where every survivor is among the W."""
        return self.first + self.count <= self.width

    @cached_property
    def below_max(self) -> Tensor:
        """`[N, W]` float64, `(z - max z) / T`, the maximum over the survivors."""
        largest = self.logits.gather(1, self.first[:, None])
        return (self.logits - largest).div_(self.temperature[:, None])

    @cached_property
    def alive(self) -> Tensor:
        """`[N, W]` bool, whether a token survives."""
        places = torch.arange(self.width)
        return (places >= self.first[:, None]) & (places < (self.first + self.count)[:, None])

    @cached_property
    def weights(self) -> Tensor:
        """`[N, W]` float64, in proportion to the probabilities; 0 where a token does not survive."""
        return torch.where(self.alive, self.below_max, -torch.inf).exp_()

    @cached_property
    def _whole(self) -> tuple[Tensor, Tensor]:
        return self.sums.weights(self.temperature, ~self.at_hand & self.is_whole & self.certain)

    @cached_property
    def total(self) -> Tensor:
        """`[N]` float64, the sum of the weights of all survivors; NaN where it cannot be told."""
        here = self.weights.sum(1)
        return here if bool(self.at_hand.all()) else here.where(self.at_hand, self._whole[0])

    @cached_property
    def entropy_nats(self) -> Tensor:
        """`[N]` float64; NaN where it cannot be told."""
        terms = (self.weights * self.below_max.clamp_min(-1e6)).sum(1)  # 0 * -inf; at -1e6 a weight is 0
        if not bool(self.at_hand.all()):
            terms = terms.where(self.at_hand, self._whole[1])
        return self.total.log() - terms / self.total

    @cached_property
    def probs(self) -> Tensor:
        """`[N, W]` float64."""
        return self.weights / self.total[:, None]

    def spread(self, correction: int) -> Tensor:
        """`[N]` float64, the standard deviation of the survivors' logits; NaN where it cannot be told."""
        n = self.count.double()
        mean = self.logits.where(self.alive, 0.0).sum(1) / n
        squares = (self.logits - mean[:, None]).square_().where(self.alive, 0.0).sum(1)
        found = (squares / (n - correction)).sqrt()
        if bool(self.at_hand.all()):
            return found
        return torch.where(self.at_hand, found, self.sums.spread(correction).where(self.is_whole, torch.nan))

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
        """The first `count` survivors, `[N]`, at least 1 each; or as many from the place `first` on.

        Not certain where that is more than are at hand and yet not all.
        """
        begin, count = self.first if first is None else first, torch.minimum(count, self.count).clamp_min(1)
        unknown = (begin + count >= self.width) & (count < self.count)  # the next one tells of ties
        end = int((begin + count).max())  # nobody asks for what lies behind all survivors
        kept = replace(self, logits=self.logits[:, :end], first=begin, count=count, certain=self.certain & ~unknown)
        if first is None and "weights" in vars(self):  # the same numbers, which cost most to make
            vars(kept).update(below_max=self.below_max[:, :end], weights=self.weights[:, :end].where(kept.alive, 0.0))
        return kept

    def keep_at_least(self, values: Tensor, cutoff: Tensor, guard: Tensor | None = None) -> Falling:
        """Those of at least a value; where none is, the largest with its equals.

        Args:
            values: `[N, W]`, falling along the survivors.
            cutoff: `[N]`.
            guard: `[N]`, how near to the cutoff a value may be with the position certain; `GUARD` of it if left out.
        """
        guard = GUARD * cutoff.abs() if guard is None else guard
        sure, possible = ((self.alive & (values >= (cutoff + side * guard)[:, None])).sum(1) for side in (1, -1))
        equals = (self.alive & (self.logits == self.logits.gather(1, self.first[:, None]))).sum(1)
        count = torch.where(sure == 0, equals, sure)
        goes_on = ~self.at_hand & (self.first + count >= self.width)
        untold = cutoff.isnan() | values.gather(1, self.first[:, None]).squeeze(1).isnan()
        return self.keep(count).unsure((sure != possible) | goes_on | untold)
