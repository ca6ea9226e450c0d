"""The log-probabilities that engines report beside a token: before the sampler, in the middle of it, or after it.

Under one name, "logprobs", engines report different numbers. Which one an engine reports is data of its preset
(`Preset.reports`); the numbers are made here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lmcore.distribution import loss_nats
from lmcore.sampling import History, Reshaped, SamplingSettings, State, registry, reshape

__all__ = ["LogProbs", "log_probs", "of_result"]


@dataclass(frozen=True)
class LogProbs:
    """ln P of one token, in nats; -inf where it cannot be drawn.

    Attributes:
        raw: Under the model's own softmax.
        edited: After bias and penalties.
        heated: After these and the temperature, before anything is taken away; as `edited` at temperature 0.
        final: After every stage.
        kept: The share of the probability that the filters kept, each of the distribution it was given; what is left
            was divided by it. Where they run on one distribution, and nothing after them changes it, `final` is the
            log-probability there less ln kept.
    """

    raw: float
    edited: float
    heated: float
    final: float
    kept: float


def log_probs(
    logits: Tensor,
    token_id: int,
    settings: SamplingSettings,
    history: History | Sequence[int] = (),
    state: State | None = None,
) -> LogProbs:
    """Measure a token under settings.

    Args:
        logits: `[V]`, of one position.
        token_id: The token.
        settings, history, state: As `reshape`.

    Raises:
        ValueError: as `reshape`.

    >>> found = log_probs(torch.tensor([0.0, 0.0, 0.0, 0.0]), 1, SamplingSettings(top_k=2))
    >>> round(found.final - found.raw, 6), round(-math.log(found.kept), 6)
    (0.693147, 0.693147)
    """
    return of_result(reshape(logits, settings, history, state), token_id, history)


def of_result(result: Reshaped, token_id: int, history: History | Sequence[int] = ()) -> LogProbs:
    """Measure a token of which the reshaped distribution is known already."""
    start = result.start
    logits = start.logits
    if start.ids is not None:  # some were impossible from the beginning
        logits = torch.full((start.vocab_size,), -math.inf, dtype=logits.dtype).scatter_(0, start.ids, logits)
    return LogProbs(
        raw=-float(loss_nats(logits, token_id)),
        edited=_log(reshape(logits, without_filters(result.settings, heat=False), history), token_id),
        heated=_log(reshape(logits, without_filters(result.settings), history), token_id),
        final=_log(result, token_id),
        kept=math.prod(1 - step.removed_mass for step in result.steps if step.kept < len(step.before)),
    )


def without_filters(settings: SamplingSettings, heat: bool = True) -> SamplingSettings:
    """Return the same bias and penalties, and the temperature where asked, without any other stage.

    A greedy temperature is left out: it takes all tokens but one away.
    """
    greedy = settings.temperature == 0 or settings.temperature < settings.rules.greedy_below
    stays = set()
    for stage in map(registry.get, settings.active):
        if stage.kind == "edit" and stage.start is None or stage.kind == "temperature" and heat and not greedy:
            stays |= {field.name for field in stage.fields}
    values = [(name, value) for name, value in settings.values if name in stays]
    return SamplingSettings(values=values, order=settings.order, rules=settings.rules, engine=settings.engine)


def _log(result: Reshaped, token_id: int) -> float:
    p = float(result.probs[token_id])
    return math.log(p) if p > 0 else -math.inf
