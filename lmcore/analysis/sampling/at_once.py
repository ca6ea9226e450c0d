"""Settings at all positions of a text together: the same numbers as position by position, in a fraction of the time.

Rows that are sorted once tell most of it (`lmcore.sampling.falling`). Stages in front that edit a few logits
(penalties, DRY, a bias) say which and by how much, a position at a time. What rounding decides is left to the caller,
who asks `reshape`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lmcore.sampling import Falling, History, SamplingSettings, Stage, registry
from lmcore.sampling.sorted_rows import Change, EditedRows

if TYPE_CHECKING:
    from lmcore.analysis.sampling.through import TextLogits

__all__ = ["Measured", "at_once"]


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


def at_once(text: TextLogits, settings: SamplingSettings) -> Measured | None:
    """Measure every position; None where a stage can only be run a position at a time.

    Args:
        text: The text.
        settings: The settings.

    Raises:
        ValueError: a token of the text that is none of the vocabulary.
    """
    stages = [registry.get(name) for name in settings.active]
    n_edits = next((place for place, stage in enumerate(stages) if stage.edit is None), len(stages))
    edits, rest = stages[:n_edits], stages[n_edits:]
    if any(stage.falling is None for stage in rest):
        return None
    rows, came = _edited(text, settings, edits) if edits else (text.rows, text.came)
    tolerance = settings.rules.boundary_ulps * torch.finfo(text.logits.dtype).eps
    tokens = Falling.start(rows, text.logits.shape[1], tolerance)
    for stage in rest:
        left_by = stage.falling and stage.falling(tokens, settings)
        if left_by is None:
            return None
        tokens = left_by.after(stage.name, tokens)
    return _measure(text, tokens, came)


def _measure(text: TextLogits, tokens: Falling, came: Tensor) -> Measured:
    """Return the numbers of what survived."""
    more, as_much = tokens.rows.count(came)
    drawn = (more >= tokens.first) & (as_much <= tokens.end) & (came > -torch.inf)
    gone = (more >= tokens.end) | (as_much <= tokens.first)
    bits = torch.where(drawn, (tokens.total.log() - came / tokens.temperature) / math.log(2), math.inf)
    bits = bits.where(bits < 1074, math.inf)  # less than the smallest number of float64: it cannot be drawn
    kept, is_told = _kept_mass(text, tokens)
    removed = torch.where(tokens.count == text.logits.shape[1], 0.0, (1 - kept).clamp_min(0))
    certain = tokens.certain & (drawn | gone) & ~tokens.total.isnan() & is_told
    bits = torch.where(tokens.count == 1, torch.where(drawn, 0.0, math.inf), bits.clamp_min(0)) + 0.0
    return Measured(certain, tokens.count, tokens.entropy_nats.clamp_min(0) / math.log(2), removed, bits)


def _kept_mass(text: TextLogits, tokens: Falling) -> tuple[Tensor, Tensor]:
    """Return what the survivors weigh at T = 1 as the model left them, and where that is certain, `[N]` each."""
    rows, ones = tokens.rows, torch.ones_like(tokens.temperature)
    total = (text.totals - text.rows.largest).exp()
    if not isinstance(rows, EditedRows):
        until, ahead = text.rows.sums(ones, tokens.end), text.rows.sums(ones, tokens.first)
        return (until.weights - ahead.weights) / total, ones > 0
    # Untouched tokens survive from the least survivor's value to the largest one's; those that were touched, by what
    # they are now.
    low, high = rows.value(tokens.end - 1), tokens.largest
    splits = (rows.count(low)[1] > tokens.end) | (rows.count(high)[0] < tokens.first)
    until, ahead = text.rows.sums(ones, text.rows.count(low)[1]), text.rows.sums(ones, text.rows.count(high)[0])
    weights = rows.before.exp()
    taken, put = ((side >= low[:, None]) & (side <= high[:, None]) for side in (rows.before, rows.after))
    changed = (weights * put).sum(1) - (weights * taken).sum(1)
    return (until.weights - ahead.weights + changed) / total, ~splits


def _edited(text: TextLogits, settings: SamplingSettings, edits: Sequence[Stage]) -> tuple[EditedRows, Tensor]:
    """Return the rows as the first stages leave them, and the values of the tokens that came, -inf of a banned one.

    The latest ones are kept for the next settings.
    """
    fields = {field.name for stage in edits for field in stage.fields}
    values = [(name, value) for name, value in settings.values if name in fields]
    only = SamplingSettings(values=values, order=settings.order, rules=settings.rules, engine=settings.engine)
    if only not in text.edited:
        changes, came = zip(*(_change(text, place, only, edits) for place in range(len(text))), strict=True)
        rows = EditedRows.edited(text.rows, changes)
        text.edited.clear()
        text.edited[only] = rows, torch.tensor(came, dtype=torch.float64) - rows.largest
    return text.edited[only]


def _change(text: TextLogits, place: int, only: SamplingSettings, stages: Sequence[Stage]) -> tuple[Change, float]:
    """Edit the logits of a position; return what changed, and the logit of the token that came."""
    history, token = History(prompt=text.ids[: place + 1]), text.ids[place + 1]
    edits = [stage.edit(only, history) for stage in stages if stage.edit is not None]
    changed = np.unique(np.concatenate([[token], *(edit.token_ids.numpy() for edit in edits)]))
    if changed[-1] >= text.logits.shape[1]:
        nowhere = np.array([math.inf])  # the chain says what is wrong
        return Change(text.logits[place, :1].numpy(), nowhere), math.inf
    old = text.logits[place, torch.from_numpy(changed)].numpy()
    new = old.astype(np.float64)
    for edit in edits:
        at, by = np.searchsorted(changed, edit.token_ids.numpy()), edit.amounts.numpy()
        was = new[at]
        new[at] = was + by if edit.change == "add" else np.where(was > 0, was / by, was * by)
    return Change(old, new), float(new[np.searchsorted(changed, token)])
