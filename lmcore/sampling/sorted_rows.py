"""Logits of many positions, each row sorted once: then a sum over any stretch of a row costs little at any temperature.

A row is cut into bins by depth, d = max z - z. Over the tokens of a bin with the middle c,

    sum e^(-d / T) = e^(-c / T) * sum over k of m_k / (T^k k!),    m_k = sum (c - d)^k,

and the moments m_k know of no temperature. A bin is a fiftieth as wide as it is deep: where tokens weigh anything, a
few times T deep, eight terms leave out less than float64 rounds. So a sum over V tokens takes as many exponentials
as there are bins, and only the bin that a boundary falls into is looked into, token by token.

All values are `z - max z` of the row as it was given, float64, 0 or less: its negative depth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = ["Change", "EditedRows", "Reached", "SortedRows"]

_FIRST, _GROWTH, _DEEPEST = 1e-3, 1.02, 400.0
_N = math.ceil(math.log(_DEEPEST / _FIRST) / math.log(_GROWTH))
_EDGES = np.array([0.0, *_FIRST * _GROWTH ** np.arange(_N + 1), np.inf])
_MIDDLES = np.array([*(_EDGES[:-2] + _EDGES[1:-1]) / 2, _EDGES[-2]])
"""Of each bin; the last one holds what is deeper than all others, and its tokens weigh nothing."""
EDGES, MIDDLES = torch.from_numpy(_EDGES), torch.from_numpy(_MIDDLES)
_TERMS = 8
_FACTORIALS = torch.tensor([float(math.factorial(k)) for k in range(_TERMS)], dtype=torch.float64)
_KEPT = 8  # temperatures whose sums are kept
LEAST_TEMPERATURE, MOST_TEMPERATURE = 5e-3, 8.0
"""Between these the terms suffice, and what is deeper than every bin weighs nothing."""
_MOST_IN_A_BIN = 4096  # or a quarter of the vocabulary: more are not looked into


class Bins(NamedTuple):
    """What the tokens of each bin weigh, `[N, B]`: the sum of `w = e^(value / T)`, and of `w * value / T`."""

    weights: Tensor
    terms: Tensor


class Reached(NamedTuple):
    """Where running sums of weights reach a goal.

    Attributes:
        n_tokens: `[N]` int64, tokens up to and with the one that reaches it.
        before: `[N]` float64, the sum before that one.
        weight: `[N]` float64, its own weight.
        near: `[N]` bool, whether a goal a little further or nearer would give another count.
    """

    n_tokens: Tensor
    before: Tensor
    weight: Tensor
    near: Tensor


@dataclass(frozen=True, eq=False)
class SortedRows:
    """Rows of logits, each sorted, with the moments of its bins.

    Attributes:
        falling: `[N, V]`, the logits, the largest first.
        largest: `[N]` float64.
        begins: `[N, B + 1]` int64, at which place each bin begins; the last is the number of possible tokens.
        moments: `[N, B, K]` float64.
        fits: `[N]` bool; where not, nearly all logits are alike, or one has no bin or is NaN: the row counts as empty.
    """

    falling: Tensor
    largest: Tensor
    begins: Tensor
    moments: Tensor
    fits: Tensor
    _bins: dict[float, Bins] = field(default_factory=dict)

    @classmethod
    def of(cls, logits: Tensor) -> SortedRows:
        """Sort rows `[N, V]`; a logit of -inf is an impossible token."""
        n = len(logits)
        falling = torch.empty_like(logits)
        begins = np.empty((n, len(_EDGES)), dtype=np.int64)
        moments = np.zeros((n, len(_MIDDLES), _TERMS + 1))
        fits = np.ones(n, dtype=bool)
        for place, row in enumerate(logits.numpy()):  # a row at a time: in float64 a whole text would be large
            values = -row
            values.sort()  # numpy sorts values several times faster than torch
            np.negative(values, out=falling[place].numpy())
            if not np.isfinite(values[0]) or np.isnan(values[-1]):  # NaN is sorted last
                begins[place], fits[place] = 0, False
                continue
            depths = values.astype(np.float64) - np.float64(values[0])
            begins[place] = np.searchsorted(depths, _EDGES)
            filled = np.flatnonzero(np.diff(begins[place]))
            depths = depths[: begins[place, -1]]
            off = np.repeat(_MIDDLES[filled], np.diff(begins[place])[filled]) - depths
            power = np.ones_like(off)
            for k in range(_TERMS + 1):
                moments[place, filled, k] = np.add.reduceat(power, begins[place][filled])
                power *= off
        fits &= np.diff(begins).max(axis=1) <= max(_MOST_IN_A_BIN, falling.shape[1] // 4)
        begins[~fits] = moments[~fits] = 0
        told = torch.from_numpy(begins), torch.from_numpy(moments), torch.from_numpy(fits)
        return cls(falling, falling[:, 0].double(), *told)

    def __len__(self) -> int:
        """Return N."""
        return len(self.falling)

    @property
    def size(self) -> Tensor:
        """`[N]` int64, how many tokens are possible."""
        return self.begins[:, -1]

    def bins(self, temperature: Tensor) -> Bins:
        """Sum the weights in each bin at temperatures `[N]`; kept for the latest temperatures."""
        alike = float(temperature[0]) if len(temperature) and bool((temperature == temperature[0]).all()) else None
        if alike in self._bins:
            return self._bins[alike]
        powers = temperature[:, None] ** -torch.arange(_TERMS, dtype=torch.float64) / _FACTORIALS
        sums = torch.bmm(self.moments[..., :-1], powers[..., None]).squeeze(2)
        offs = torch.bmm(self.moments[..., 1:], powers[..., None]).squeeze(2)
        scale = (MIDDLES / (-temperature[:, None])).exp_()
        scale[:, -1] = 0
        found = Bins(sums * scale, (offs - MIDDLES * sums).mul_(scale).div_(temperature[:, None]))
        if alike is not None:
            self._bins[alike] = found
            for old in list(self._bins)[:-_KEPT]:
                self._bins.pop(old, None)
        return found

    def inside(self, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        """Return the tokens of the bins from one to another, `[N, P]`, falling and then -inf; and their first place."""
        begin = self.begins.gather(1, first[:, None])
        count = self.begins.gather(1, last[:, None] + 1) - begin
        places = torch.arange(max(int(count.max()), 1))
        values = self.falling.gather(1, (begin + places).clamp_max(self.falling.shape[1] - 1)).double()
        return torch.where(places < count, values.sub_(self.largest[:, None]), -torch.inf), begin.squeeze(1)

    def bin_at(self, place: Tensor) -> Tensor:
        """Return the bin of the token at each place `[N]`; of one behind the end the last."""
        found = torch.searchsorted(self.begins, place.contiguous()[:, None], right=True).squeeze(1) - 1
        return found.clamp(0, len(MIDDLES) - 1)

    def stretch(self, first: Tensor, n: int) -> Tensor:
        """Return n values from places `[N]` on, `[N, n]`; -inf behind the end."""
        values, begin = self.inside(self.bin_at(first), self.bin_at(first + n - 1))
        places = (first - begin)[:, None] + torch.arange(n)
        beyond = (places >= values.shape[1]) | ((first[:, None] + torch.arange(n)) >= self.size[:, None])
        return values.gather(1, places.clamp_max(values.shape[1] - 1)).masked_fill(beyond, -torch.inf)

    def value(self, place: Tensor) -> Tensor:
        """Return the value at each place `[N]`; -inf behind the end."""
        return self.stretch(place, 1).squeeze(1)

    def count(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """Return how many tokens are more than a value `[N]`, and how many at least as much."""
        place = (torch.searchsorted(EDGES, -value.nan_to_num(nan=0.0), right=True) - 1).clamp(0, len(MIDDLES) - 1)
        values, begin = self.inside(place, place)
        more = begin + (values > value[:, None]).sum(1)
        return more, more + ((values == value[:, None]) & values.isfinite()).sum(1)

    def sums(self, temperature: Tensor, place: Tensor) -> Bins:
        """Sum over the tokens in front of a place `[N]`: weights, and weights times value / T, `[N]` each."""
        at = self.bin_at(place)
        values, begin = self.inside(at, at)
        ahead = values.where(torch.arange(values.shape[1]) < (place - begin)[:, None], -torch.inf)
        ahead.div_(temperature[:, None])
        weights = ahead.exp()
        here = Bins(weights.sum(1), (weights * ahead.clamp_min_(-1e6)).sum(1))
        return Bins(*(_in_front(of, at) + own for of, own in zip(self.bins(temperature), here, strict=True)))

    def powers(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """Sum the values, and their squares, in front of a place `[N]`."""
        zeroth, first, second = self.moments[..., :3].unbind(-1)
        of_bins = first - MIDDLES * zeroth, second - 2 * MIDDLES * first + MIDDLES**2 * zeroth
        at = self.bin_at(place)
        values, begin = self.inside(at, at)
        ahead = values.where(torch.arange(values.shape[1]) < (place - begin)[:, None], 0.0)
        return _in_front(of_bins[0], at) + ahead.sum(1), _in_front(of_bins[1], at) + ahead.square().sum(1)

    def reach(self, temperature: Tensor, goal: Tensor, guard: Tensor, exceeds: bool = False) -> Reached:
        """Find the token whose running sum of weights, from the largest on, reaches a goal `[N]`, or is more.

        Args:
            temperature: `[N]`.
            goal: `[N]`, in weights.
            guard: `[N]`, how much nearer or further the goal may be with the same count; else it is `near`.
            exceeds: Whether the sum has to be more.
        """
        running = self.bins(temperature).weights.cumsum(1)
        at = (
            torch.searchsorted(running, goal.contiguous()[:, None], right=exceeds)
            .squeeze(1)
            .clamp_max(len(MIDDLES) - 1)
        )
        at = at.clamp(self.bin_at(torch.zeros_like(self.size)), self.bin_at(self.size - 1))
        before = _before(running, at)
        values, begin = self.inside(at, at)
        weights = (values / temperature[:, None]).exp_()
        sums = before[:, None] + weights.cumsum(1)
        goals = torch.stack([goal - guard, goal, goal + guard], dim=1)
        fewest, found, most = torch.searchsorted(sums, goals, right=exceeds).unbind(1)
        end = running.gather(1, at[:, None]).squeeze(1)
        near = (fewest != most) | ((before - goal).abs() <= guard) | ((end - goal).abs() <= guard)
        inner = found.clamp_max(weights.shape[1] - 1)
        weight = weights.gather(1, inner[:, None]).squeeze(1)
        return Reached(begin + found + 1, sums.gather(1, inner[:, None]).squeeze(1) - weight, weight, near)


class Change(NamedTuple):
    """What edits did at a position: the logits of some tokens as they were, and as they are; -inf for a ban."""

    before: np.ndarray
    after: np.ndarray


@dataclass(frozen=True, eq=False)
class EditedRows(SortedRows):
    """Rows some of whose tokens have other logits: a token is taken out of its bin and put into another.

    Attributes:
        base: The rows as they were.
        before, after: `[N, M]` float64, the values of those tokens; -inf beyond their number, and after a ban.
    """

    base: SortedRows = field(kw_only=True)
    before: Tensor = field(kw_only=True)
    after: Tensor = field(kw_only=True)

    @classmethod
    def edited(cls, base: SortedRows, changes: Sequence[Change]) -> EditedRows:
        """Change rows: one change for each of them."""
        most = max(max((len(change.before) for change in changes), default=1), 1)
        before, after = np.full((2, len(base), most), -np.inf)
        for place, (old, new) in enumerate(changes):
            before[place, : len(old)], after[place, : len(new)] = old, new
        largest = base.largest.numpy()[:, None]
        before -= largest
        after -= largest
        sides = torch.from_numpy(before), torch.from_numpy(after)
        moments, counts = base.moments.clone(), base.begins.diff(dim=1)
        for sign, side in zip((-1, 1), sides, strict=True):
            row, at = (side.isfinite() & (side <= 0)).nonzero().unbind(1)
            values = side[row, at]
            bins = torch.searchsorted(EDGES, -values, right=True) - 1
            powers = torch.full((len(bins), _TERMS + 1), float(sign), dtype=torch.float64)
            powers[:, 1:] = (MIDDLES[bins] + values)[:, None]
            powers = powers.cumprod(1)
            flat = row * len(MIDDLES) + bins
            moments.view(-1, _TERMS + 1).index_add_(0, flat, powers)
            counts.view(-1).index_add_(0, flat, torch.full_like(flat, sign))
        fits = base.fits & (sides[1] <= 0).all(1)
        counts[~fits] = 0
        moments[counts <= 0] = 0  # without the dust of what was taken out
        begins = torch.cat([torch.zeros_like(counts[:, :1]), counts.cumsum(1)], dim=1)
        return cls(base.falling, base.largest, begins, moments, fits, base=base, before=sides[0], after=sides[1])

    def inside(self, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
        """See `SortedRows.inside`."""
        values, _ = self.base.inside(first, last)
        taken, put = (self._between(side, first, last) for side in (self.before, self.after))
        if taken.shape[1]:
            rising = taken.neg().sort(dim=1).values
            turn = torch.arange(rising.shape[1]) - torch.searchsorted(rising, rising)  # of equal ones each another
            at = torch.searchsorted(values.neg(), rising) + turn
            row, column = rising.isfinite().nonzero().unbind(1)
            values[row, at[row, column]] = -torch.inf
        if put.shape[1]:
            values = torch.cat([values, put], dim=1)
        if put.shape[1] or taken.shape[1]:
            values.neg_().numpy().sort(axis=1, kind="stable")  # two sorted runs and a little, which this sort merges
            values.neg_()
        return values, self.begins.gather(1, first[:, None]).squeeze(1)

    def _between(self, side: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """Return those of `[N, M]` values that lie in the bins from one to another, in as few columns as they need."""
        low, high = -EDGES[last + 1][:, None], -EDGES[first][:, None]
        here = (side > low) & (side <= high)
        column = here.cumsum(1)
        found = torch.full((len(side), int(column[:, -1].max())), -torch.inf, dtype=torch.float64)
        row, at = here.nonzero().unbind(1)
        found[row, column[row, at] - 1] = side[row, at]
        return found


def _in_front(of_bins: Tensor, at: Tensor) -> Tensor:
    """Sum what bins hold in front of one, `[N]`."""
    return _before(of_bins.cumsum(1), at)


def _before(running: Tensor, at: Tensor) -> Tensor:
    """Return a running sum up to the bin in front, `[N]`; 0 in front of the first."""
    found = running.gather(1, (at - 1).clamp_min(0)[:, None]).squeeze(1)
    return torch.where(at > 0, found, 0.0)
