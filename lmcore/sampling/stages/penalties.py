"""Penalties on the tokens that were seen, however long ago within a window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lmcore.sampling.candidates import Candidates
from lmcore.sampling.stage import NOTHING, Context, Edit, Field, History, Note, Range, Stage, span

if TYPE_CHECKING:
    from lmcore.sampling.settings import SamplingSettings

__all__ = ["FREQUENCY", "NOTHING_SEEN", "PRESENCE", "REPETITION"]

NOTHING_SEEN = "no token has been seen yet, so there is nothing to penalise"

_WINDOW = Field(
    name="penalty_last_n",
    title="Only the latest n tokens",
    off=None,
    range=Range(0),
    whole=True,
)


def repetition_penalty(settings: SamplingSettings, history: History) -> Edit:
    """Make every token seen less likely, whatever the sign of its logit."""
    ids, counts = _seen(settings, history, settings.rules.repetition_penalty_counts)
    return Edit(ids, "penalise", torch.full_like(counts, settings.repetition_penalty))


def frequency_penalty(settings: SamplingSettings, history: History) -> Edit:
    """Lower each token seen in proportion to how often."""
    ids, counts = _seen(settings, history, settings.rules.additive_penalties_count)
    return Edit(ids, "add", counts * -settings.frequency_penalty)


def presence_penalty(settings: SamplingSettings, history: History) -> Edit:
    """Lower each token seen by the same amount."""
    ids, counts = _seen(settings, history, settings.rules.additive_penalties_count)
    return Edit(ids, "add", torch.full_like(counts, -settings.presence_penalty))


def _seen(settings: SamplingSettings, history: History, which: str) -> tuple[Tensor, Tensor]:
    """Distinct tokens among the latest `penalty_last_n`, and how often each came, `[m]` int64 and float64."""
    window = settings.penalty_last_n
    seen = [int(token) for token in history.generated] if which == "generated" else history.all
    counts = Counter(seen if window is None else seen[max(len(seen) - window, 0) :])
    # numpy reads a few hundred numbers several times faster than torch.
    ids, times = np.fromiter(counts, np.int64, len(counts)), np.fromiter(counts.values(), np.float64, len(counts))
    return torch.from_numpy(ids), torch.from_numpy(times)


def _run(edit: Callable[[SamplingSettings, History], Edit]) -> Callable:
    def run(tokens: Candidates, context: Context) -> tuple[Candidates, Note]:
        what = edit(context.settings, context.history)
        tokens.check_ids(what.token_ids, "history")
        return tokens.edited(*what), NOTHING if len(what.token_ids) else Note(NOTHING_SEEN)

    return run


def _additive(
    name: str, title: str, help: str, formula: str, edit: Callable[[SamplingSettings, History], Edit]
) -> Stage:
    amount = Field(name=name, on=0.5, stops=lambda vocab_size: span(-2, 2, 0.05))
    return Stage(
        name=name,
        title=title,
        help=help,
        kind="edit",
        formula=formula,
        source="OpenAI API reference",
        fields=(amount, _WINDOW),
        run=_run(edit),
        edit=edit,
        notes=(NOTHING_SEEN,),
        needs_history=True,
        rare=False,
    )


REPETITION = Stage(
    name="repetition_penalty",
    title="Repetition penalty",
    help="Divides positive logits of tokens already seen by r, multiplies negative ones by r.",
    kind="edit",
    formula="z / r if z > 0 else z * r, once for each distinct token seen",
    source="Keskar et al. 2019, CTRL; multiplying the negative ones is the engines' correction",
    fields=(
        Field(
            name="repetition_penalty",
            off=1.0,
            range=Range(0, low_open=True),
            on=1.2,
            stops=lambda vocab_size: span(0.5, 2, 0.01),
        ),
        _WINDOW,
    ),
    run=_run(repetition_penalty),
    edit=repetition_penalty,
    notes=(NOTHING_SEEN,),
    needs_history=True,
    rare=False,
)
FREQUENCY = _additive(
    "frequency_penalty",
    "Frequency penalty",
    "Subtracts an amount from a token's logit for each time it was seen.",
    "z - a * count",
    frequency_penalty,
)
PRESENCE = _additive(
    "presence_penalty",
    "Presence penalty",
    "Subtracts an amount once from the logit of every token already seen.",
    "z - a * (count > 0)",
    presence_penalty,
)
