"""Settings at all positions of a text together: the same numbers as position by position, in a fraction of the time.

The W largest logits of each position tell most of it (`lmcore.sampling.falling`). Stages in front that edit logits by
the tokens before (penalties, DRY, a bias) run as ever, a position at a time. What is not certain from W logits is tried
again with all of them, and what rounding decides is left to the caller, who asks `reshape`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lmcore.sampling import Candidates, Falling, History, SamplingSettings, Stage, registry, reshape

if TYPE_CHECKING:
    from lmcore.analysis.sampling.through import TextLogits

__all__ = ["Measured", "WholeRows", "at_once", "in_falling_order"]

WIDTH = 1024
_MIDDLE = 8192  # looked at where WIDTH are too few, and before all V
_BLOCK = 1 << 19  # numbers that are gone through together: few enough to stay in a processor's cache
_ROWS = 8  # of all V logits, summed together
_TEMPERATURES = 8  # whose sums over the vocabulary are kept


@dataclass(frozen=True, eq=False)
class Measured:
    """Of each position: how many can be drawn, the entropy and the surprisal in bits, the mass removed at T = 1.

    All `[S - 1]`; `certain` says of which position they hold.
    """

    certain: Tensor
    candidates: Tensor
    entropy_bits: Tensor
    removed_mass: Tensor
    bits: Tensor

    @classmethod
    def nothing(cls, n: int) -> Measured:
        """No position is certain yet."""
        numbers = torch.full((3, n), torch.nan, dtype=torch.float64)
        return cls(torch.zeros(n, dtype=torch.bool), torch.zeros(n, dtype=torch.int64), *numbers)

    def take(self, places: Tensor, other: Measured) -> None:
        """Put another's numbers at these places, where they are certain."""
        sure = other.certain
        for name in ("candidates", "entropy_bits", "removed_mass", "bits", "certain"):
            getattr(self, name)[places[sure]] = getattr(other, name)[sure]


def in_falling_order(row: Tensor) -> Tensor:
    """Sort logits `[V]`, the largest first; numpy sorts values several times faster than torch."""
    values = -row.numpy()
    values.sort()
    return torch.from_numpy(np.negative(values, out=values))


class WholeRows:
    """Sums over all tokens of positions; kept for the temperatures that were asked last.

    Args:
        row: Gives the logits of a position, all of them, in any order.
        largest: `[N]` float64, the largest of each.

    Attributes:
        at_hand: Rows that need not be asked for again, by position.
    """

    def __init__(self, row: Callable[[int], Tensor], largest: Tensor) -> None:
        self._row, self._largest = row, largest
        self._places = torch.arange(len(largest))
        self._kept: dict[float, Tensor] = {}
        self.at_hand: dict[int, Tensor] = {}

    def at(self, places: Tensor) -> WholeRows:
        """Those of some positions; what is kept is shared."""
        part = copy(self)
        part._places = self._places[places]
        return part

    def weights(self, temperature: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
        """See `lmcore.sampling.falling.Sums`."""
        untold = torch.full((2, len(self._largest)), torch.nan, dtype=torch.float64)
        if len(temperature) and bool((temperature == temperature[0]).all()):
            found = self._kept.setdefault(float(temperature[0]), untold)
            for old in list(self._kept)[:-_TEMPERATURES]:
                self._kept.pop(old, None)
        else:
            found = untold
        asked = (where & found[0, self._places].isnan()).nonzero().squeeze(1)
        # A few rows at a time: on a busy machine each operation that torch shares among threads waits for all of them.
        for some in asked.split(_ROWS) if len(asked) else ():
            places = self._places[some]
            rows = pad_sequence([self._whole(place) for place in places.tolist()], True, -math.inf)
            below = rows.double().sub_(self._largest[places, None]).div_(temperature[some, None])
            weights = below.exp()
            found[0, places] = weights.sum(1)
            found[1, places] = (weights * below.clamp_min_(-1e6)).sum(1)
        return found[0, self._places], found[1, self._places]

    def spread(self, correction: int) -> Tensor:
        """See `lmcore.sampling.falling.Sums`."""
        spreads = [self._whole(place).double().std(correction=correction) for place in self._places.tolist()]
        return torch.stack(spreads)

    def _whole(self, place: int) -> Tensor:
        return self.at_hand[place] if place in self.at_hand else self._row(place)


def at_once(text: TextLogits, settings: SamplingSettings, width: int = WIDTH) -> Measured | None:
    """Measure every position; None where a stage can only be run a position at a time.

    Args:
        text: The text.
        settings: The settings.
        width: How many of each position's largest logits are looked at before all of them.

    Raises:
        ValueError: as `reshape`.
    """
    stages = [registry.get(name) for name in settings.active]
    n_edits = next((place for place, stage in enumerate(stages) if not _edits(stage)), len(stages))
    edits, rest = stages[:n_edits], stages[n_edits:]
    measured = Measured.nothing(len(text))
    tolerance = settings.rules.boundary_ulps * torch.finfo(text.logits.dtype).eps
    vocab_size = text.logits.shape[1]
    # To edit a position again costs as much as the chain there: then one look has to do.
    looks = [4 * width] if edits else [width, _MIDDLE, vocab_size]
    for seen in sorted({min(look, vocab_size) for look in looks}):
        # A row with impossible tokens is left to the chain.
        left = (~measured.certain & text.falling[:, -1].isfinite()).nonzero().squeeze(1)
        for start in _edited(text, left, settings, edits, seen) if edits else _plain(text, left, seen):
            tokens = start.falling(vocab_size, tolerance)
            for stage in rest:
                left_by = stage.falling and stage.falling(tokens, settings)
                if left_by is None:
                    return None
                tokens = left_by.after(stage.name, tokens)
            measured.take(start.places, start.measure(text, tokens))
            start.sums.at_hand.clear()
    return measured


def _edits(stage: Stage) -> bool:
    return stage.falling is None and stage.kind == "edit" and not stage.by_chance and stage.start is None


@dataclass(frozen=True, eq=False)
class _Start:
    """Some positions of a text as the first filter, or the temperature, finds them.

    Attributes:
        places: `[n]`, which they are.
        largest: `[n, W]` float64, the largest logits, falling.
        own: `[n, W]`, what these were before they were edited.
        sums: Over all tokens.
        began: `[n]`, how many tokens a bias left possible.
        mass: `[n]` float64, the probability of these at T = 1.
        came: `[n]` float64, the logit of the token that came; -inf where a bias banned it.
        rank: `[n]`, its place in the falling order.
    """

    places: Tensor
    largest: Tensor
    own: Tensor
    sums: WholeRows
    began: Tensor
    mass: Tensor
    came: Tensor
    rank: Tensor

    def falling(self, vocab_size: int, tolerance: float) -> Falling:
        """All of their tokens."""
        ones = torch.ones(len(self.places), dtype=torch.float64)
        return Falling.start(self.largest - self.largest[:, :1], vocab_size, self.began, self.sums, ones, tolerance)

    def measure(self, text: TextLogits, tokens: Falling) -> Measured:
        """Return the numbers of what survived."""
        drawn = (self.rank >= tokens.first) & (self.rank < tokens.first + tokens.count)
        first = tokens.logits.gather(1, tokens.first[:, None]).squeeze(1)
        below = (self.came - self.largest[:, 0] - first) / tokens.temperature
        bits = torch.where(drawn, (tokens.total.log() - below) / math.log(2), math.inf)
        bits = bits.where(bits < 1074, math.inf)  # less than the smallest number of float64: it cannot be drawn
        end = int((tokens.first + tokens.count).clamp_max(tokens.width).max())
        masses = (self.own[:, :end].double() - text.totals[self.places, None]).exp_()
        kept = masses.where(tokens.alive[:, :end], 0.0).sum(1).where(~tokens.is_whole, self.mass)
        removed = torch.where(tokens.count == text.logits.shape[1], 0.0, (1 - kept).clamp_min(0))
        certain = tokens.certain & (tokens.at_hand | tokens.is_whole) & ~tokens.total.isnan()
        return Measured(certain, tokens.count, tokens.entropy_nats / math.log(2), removed, bits.clamp_min(0) + 0.0)


def _blocks(places: Tensor, width: int) -> Iterator[Tensor]:
    return (block for block in places.split(max(_BLOCK // width, 1)) if len(block))


def _plain(text: TextLogits, left: Tensor, width: int) -> Iterator[_Start]:
    """Give positions as the model left them."""
    for places in _blocks(left, width):
        largest = text.falling[places, :width].double()
        began = torch.full_like(places, text.logits.shape[1])
        came = text.logits[places, torch.tensor(text.ids)[places + 1]].double()
        ones = torch.ones(len(places), dtype=torch.float64)
        yield _Start(places, largest, largest, text.sums.at(places), began, ones, came, text.ranks[places])


def _edited(
    text: TextLogits, left: Tensor, settings: SamplingSettings, edits: Sequence[Stage], width: int
) -> Iterator[_Start]:
    """Run the first stages at positions, and keep what they left of the largest logits for the next settings."""
    fields = {field.name for stage in edits for field in stage.fields}
    values = [(name, value) for name, value in settings.values if name in fields]
    only = SamplingSettings(values=values, order=settings.order, rules=settings.rules, engine=settings.engine)
    kept = text.edited.get((only, width))
    if kept is not None:
        yield from kept
        return
    made = []
    for places in _blocks(left, text.logits.shape[1]):
        made.append(_edit(text, places, only, width))
        yield made[-1]
    text.edited.clear()
    text.edited[only, width] = made


def _edit(text: TextLogits, places: Tensor, only: SamplingSettings, width: int) -> _Start:
    rows, ids_of_text = text.logits, text.ids  # not the text itself: it keeps what is made here

    def edit(row: int) -> Candidates:
        place = int(places[row])
        return reshape(rows[place], only, History(prompt=ids_of_text[: place + 1])).final

    size, n = text.logits.shape[1], len(places)
    largest = torch.full((n, width), -math.inf, dtype=torch.float64)
    own = torch.full((n, width), -math.inf, dtype=text.logits.dtype)
    came, mass = torch.full((2, n), -math.inf, dtype=torch.float64)
    began, rank = torch.full((2, n), size)
    sums = WholeRows(lambda row: edit(row).tempered(), largest[:, 0])
    for row, place in enumerate(places.tolist()):
        tokens = edit(row)
        logits, ids, token = tokens.tempered(), tokens.token_ids, text.ids[place + 1]
        began[row], sums.at_hand[row] = len(ids), logits
        at = int(torch.searchsorted(ids, token))
        if at < len(ids) and int(ids[at]) == token:
            came[row] = logits[at]
            rank[row] = (logits > logits[at]).sum() + (logits[:at] == logits[at]).sum()
        inside = _first(logits, width)
        largest[row, : len(inside)] = logits[inside]
        own[row, : len(inside)] = text.logits[place, ids[inside]]
        everything = len(ids) == size
        mass[row] = 1 if everything else (text.logits[place, ids].double() - text.totals[place]).exp().sum()
    return _Start(places, largest, own, sums, began, mass, came, rank)


def _first(logits: Tensor, n: int) -> Tensor:
    """Positions of the n largest of `[V]`, falling, equal ones by position; a sort of few in place of one of all."""
    positions = torch.arange(len(logits))
    if n < len(logits):
        rounded = logits.numpy().astype(np.float32)  # of half the bytes, and in the same order but for new ties
        least = np.partition(rounded, len(rounded) - n)[len(rounded) - n]
        positions = torch.from_numpy(np.flatnonzero(rounded >= least))
    return positions[torch.sort(logits[positions], descending=True, stable=True).indices[:n]]
