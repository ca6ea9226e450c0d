"""Stages that steer: what was drawn before changes what they do next. Each draws last."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from lmcore.distribution import largest, top
from lmcore.sampling.candidates import Candidates
from lmcore.sampling.stage import Context, Field, Note, Range, Stage, span

if TYPE_CHECKING:
    from lmcore.sampling.settings import SamplingSettings

__all__ = ["ADAPTIVE_P", "MIROSTAT"]

MU = "mu is {mu:.4f} bits"
TARGET = "the probability aimed at is {target:.4f}"
_FITTED = 100  # tokens that mirostat 1 fits Zipf's law to
_WIDTH = 0.3  # of adaptive-p's hump
_PEAK = 5.0


def mirostat(tokens: Candidates, context: Context) -> tuple[Candidates, Note]:
    """Drop the tokens more surprising than mu (2), or keep as many as Zipf's law gives that surprise (1)."""
    mu = context.state
    note = Note(MU, mu=mu)
    if len(tokens) == 1:
        return tokens, note
    if context.settings.mirostat == 2:
        count = int((-tokens.probs.log2() <= mu).sum())
    else:
        count = _zipf_count(top(tokens.probs, _FITTED).values, mu, tokens.vocab_size)
    return (tokens if count >= len(tokens) else tokens.keep(largest(tokens.logits, max(count, 1)))), note


def _zipf_count(probs: torch.Tensor, mu: float, vocab_size: int) -> int:
    """How many tokens to keep for a surprise of mu bits, from the slope of the most probable ones."""
    places = torch.arange(1, len(probs), dtype=torch.float64)
    steps, falls = ((places + 1) / places).log(), (probs[:-1] / probs[1:]).log()
    slope = float((steps * falls).sum() / (steps * steps).sum())
    if not math.isfinite(slope) or slope <= 0:
        return vocab_size  # equal probabilities: every token has the same surprise
    e = slope - 1
    spread = math.log(vocab_size) if e == 0 else (1 - vocab_size**-e) / e
    exponent = (mu * math.log(2) - math.log(spread)) / slope
    return vocab_size if exponent > math.log(vocab_size) else int(math.exp(exponent))


def _next_mu(mu: float, token_id: int, before: Candidates, after: Candidates, settings: SamplingSettings) -> float:
    q = float(after.dense()[token_id])
    return mu if q == 0 else mu - settings.mirostat_eta * (-math.log2(q) - settings.mirostat_tau)


def adaptive_p(tokens: Candidates, context: Context) -> tuple[Candidates, Note]:
    """Give most to the tokens whose probability is near a target that makes up for those drawn before."""
    total, count = context.state
    target = min(max(2 * context.settings.adaptive_target - total / count, 0.0), 1.0)
    distance = (tokens.probs - target).abs() / _WIDTH
    logits = _PEAK - 2 * _PEAK * distance**2 / (1 + distance)
    return tokens.with_logits(logits), Note(TARGET, target=target)


def _first_average(settings: SamplingSettings) -> tuple[float, float]:
    count = 1 / (1 - settings.adaptive_decay)
    return settings.adaptive_target * count, count


def _next_average(
    average: tuple[float, float], token_id: int, before: Candidates, after: Candidates, settings: SamplingSettings
) -> tuple[float, float]:
    total, count = average
    decay = settings.adaptive_decay
    return float(before.dense()[token_id]) + decay * total, 1 + decay * count


MIROSTAT = Stage(
    name="mirostat",
    title="Mirostat",
    help="Cuts where tokens become too surprising, and moves the cut so that the text keeps a surprise of tau bits.",
    kind="filter",
    formula="2: -log2 p <= mu; 1: the k most probable, k from Zipf's law; then mu -= eta * (-log2 q(x) - tau)",
    source="Basu et al. 2021 (arXiv 2007.14966); the surprise after truncation, as llama.cpp takes it",
    fields=(
        Field(name="mirostat", off=0, range=Range(0, 2), whole=True, on=2, stops=lambda vocab_size: (0, 1, 2)),
        Field(
            name="mirostat_tau",
            title="Target surprise in bits",
            off=5.0,
            range=Range(0),
            stops=lambda vocab_size: span(0, 10, 0.1),
        ),
        Field(
            name="mirostat_eta",
            title="Rate",
            off=0.1,
            range=Range(0, 1),
            stops=lambda vocab_size: span(0, 1, 0.01),
        ),
    ),
    run=mirostat,
    start=lambda settings: 2 * settings.mirostat_tau,
    after=_next_mu,
    notes=(MU,),
)
ADAPTIVE_P = Stage(
    name="adaptive_p",
    title="Adaptive-p",
    help="Prefers tokens whose probability is near a target, and corrects the target by what was drawn.",
    kind="edit",
    formula="5 - 10 D^2 / (1 + D), D = |p - a| / 0.3, a = clamp(2 g - W / N, 0, 1); then W = p(x) + d W, N = 1 + d N",
    source="llama.cpp, llama_sampler_adaptive_p",
    fields=(
        Field(
            name="adaptive_target",
            off=-1.0,
            range=Range(-1, 1),
            on=0.3,
            stops=lambda vocab_size: (-1.0, *span(0, 1, 0.01)),
        ),
        Field(
            name="adaptive_decay",
            title="Decay",
            off=0.9,
            range=Range(0, 0.99),
            stops=lambda vocab_size: span(0, 0.99, 0.01),
        ),
    ),
    run=adaptive_p,
    start=_first_average,
    after=_next_average,
    notes=(TARGET,),
)
