"""Stages that follow the shape of the distribution: its tail, its gaps, its entropy, its collision probability."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lmcore.distribution import largest
from lmcore.sampling.candidates import Candidates
from lmcore.sampling.falling import GUARD, Falling
from lmcore.sampling.stage import NOTHING, Context, Field, Note, Range, Stage, span
from lmcore.sampling.stages.relative import at_least, falling_at_least

if TYPE_CHECKING:
    from lmcore.sampling.settings import SamplingSettings

__all__ = ["MIN_K", "P_LESS", "QUADRATIC", "TAIL_FREE", "TOP_A", "TOP_H"]

_TOP_H_LOOKS_AT = 100


def quadratic(tokens: Candidates, context: Context) -> Candidates:
    """Bend the logits: a parabola, with a curve beyond 1 partly a cubic, that touches the largest logit."""
    factor, curve = context.settings.smoothing_factor, context.settings.smoothing_curve
    logits = tokens.tempered()
    below = logits - logits.max()
    square, cube = (3 - curve) / 2 * factor, (curve - 1) / 2 * factor
    return tokens.with_logits(logits.max() - square * below**2 + cube * below**3)


def top_a(tokens: Candidates, context: Context) -> Candidates:
    """Keep the tokens of at least a share of the squared largest probability."""
    return at_least(tokens, context.settings.top_a * float(tokens.probs.max()) ** 2, context)[0]


def tail_free(tokens: Candidates, context: Context) -> Candidates:
    """Keep tokens until the curvature of the sorted probabilities is used up."""
    if len(tokens) <= 2:
        return tokens
    order = _falling(tokens)
    curvature = tokens.probs[order].diff().diff().abs()
    total = curvature.sum()
    share = curvature / total if total > 1e-6 else torch.full_like(curvature, 1 / len(curvature))
    beyond = (share.cumsum(0) > context.settings.tfs_z).nonzero()
    count = len(tokens) if not len(beyond) else max(int(beyond[0]), 1)
    return tokens.keep(order[:count].sort().values)


def top_h(tokens: Candidates, context: Context) -> Candidates:
    """Keep the most probable tokens while their part of the entropy is at most a share of the whole."""
    order = _largest(tokens, _TOP_H_LOOKS_AT)
    probs = tokens.probs[order] / tokens.probs[order].sum()
    terms = -torch.xlogy(probs, probs)
    within = terms.cumsum(0) <= terms.sum() * context.settings.top_h
    within[0] = True
    return tokens.keep(order[within].sort().values)


def min_k(tokens: Candidates, context: Context) -> Candidates:
    """Keep the tokens in front of the largest relative gap between sorted logits; of a narrow range, more."""
    if len(tokens) == 1:
        return tokens
    logits = tokens.tempered()
    falling = logits.sort(descending=True).values
    width = float(falling[0] - falling[-1])
    if width == 0:
        return tokens
    places = torch.arange(1, len(falling), dtype=torch.float64)
    gaps = -falling.diff() / (width * places)
    k = min(max(int(gaps.argmax()) + 1, math.floor(context.settings.min_k / width)), len(tokens))
    return tokens.keep_where(logits >= falling[k - 1])


def p_less(tokens: Candidates, context: Context) -> tuple[Candidates, Note]:
    """Keep the tokens at least as probable as two draws are to agree; the normed form is corrected for chance."""
    settings, size = context.settings, tokens.vocab_size
    if len(tokens) == 1:
        return tokens, NOTHING
    order = settings.p_less_order if settings.p_less == 1 else 2.0
    cutoff = float((tokens.probs**order).sum() ** (1 / (order - 1)))
    if settings.p_less == 2:
        cutoff = (size * cutoff - 1) / (size - 1)
    return at_least(tokens, cutoff, context)


def _falling(tokens: Candidates) -> Tensor:
    """Positions by falling probability, of equal ones the lower id first."""
    return torch.sort(tokens.logits, descending=True, stable=True).indices


def _largest(tokens: Candidates, n: int) -> Tensor:
    """The first n positions of `_falling`."""
    if n >= len(tokens):
        return _falling(tokens)
    positions = largest(tokens.logits, n)
    return positions[torch.sort(tokens.logits[positions], descending=True, stable=True).indices]


def _top_a_falling(tokens: Falling, settings: SamplingSettings) -> Falling:
    largest = (tokens.largest / tokens.temperature).exp() / tokens.total
    return falling_at_least(tokens, settings.top_a * largest**2)


def _top_h_falling(tokens: Falling, settings: SamplingSettings) -> Falling:
    values = tokens.rows.stretch(tokens.first, _TOP_H_LOOKS_AT)
    alive = torch.arange(_TOP_H_LOOKS_AT) < tokens.count[:, None]
    heated = (values - tokens.largest[:, None]) / tokens.temperature[:, None]
    weights = heated.masked_fill(~alive, -torch.inf).exp()
    probs = weights / weights.sum(1, keepdim=True)
    sums = -torch.xlogy(probs, probs).cumsum(1)
    limit = sums[:, -1:] * settings.top_h
    # Beyond the survivors the sums stay as they are, and so would be within: `keep` counts survivors only.
    within = (sums <= limit).sum(1)
    near = ((sums - limit).abs() < GUARD).any(1)
    return tokens.keep(within.clamp_min(1)).unsure(near)


def _p_less_falling(tokens: Falling, settings: SamplingSettings) -> Falling:
    order = settings.p_less_order if settings.p_less == 1 else 2.0
    powers = replace(tokens, temperature=tokens.temperature / order).total / tokens.total**order
    cutoff = powers ** (1 / (order - 1))
    if settings.p_less == 2:
        cutoff = (tokens.vocab_size * cutoff - 1) / (tokens.vocab_size - 1)
    kept = falling_at_least(tokens, cutoff)
    return kept.unsure(cutoff < 1e-9)  # (V sum p^2 - 1) may be 0 or less by rounding


QUADRATIC = Stage(
    name="smoothing_factor",
    title="Quadratic",
    help="Bends the logits: those near the largest come closer to it, those far from it fall further.",
    kind="edit",
    formula="M - k f (M - z)^2 - s f (M - z)^3, M = max z, k = (3 - c) / 2, s = (c - 1) / 2",
    source="text-generation-webui, smoothing_factor and smoothing_curve",
    fields=(
        Field(name="smoothing_factor", range=Range(0), on=0.2, stops=lambda vocab_size: span(0, 3, 0.02)),
        Field(
            name="smoothing_curve",
            title="Curve",
            off=1.0,
            range=Range(1),
            stops=lambda vocab_size: span(1, 5, 0.05),
        ),
    ),
    run=quadratic,
)
TOP_A = Stage(
    name="top_a",
    title="Top-a",
    help="Keeps tokens of at least a times the square of the largest probability.",
    kind="filter",
    formula="p >= a * max p ^ 2",
    source="BlinkDL, RWKV; koboldcpp, exllamav2, text-generation-webui",
    fields=(Field(name="top_a", range=Range(0, 1), on=0.2, stops=lambda vocab_size: span(0, 1, 0.01)),),
    run=top_a,
    falling=_top_a_falling,
)
TAIL_FREE = Stage(
    name="tfs_z",
    title="Tail-free",
    help="Cuts the tail where the curve of the sorted probabilities becomes straight.",
    kind="filter",
    formula="the first i for which the normalised |second differences| of sorted p add up to more than z",
    source="Phénix and Egan 2019; koboldcpp",
    fields=(Field(name="tfs_z", off=1.0, range=Range(0, 1), on=0.95, stops=lambda vocab_size: span(0, 1, 0.01)),),
    run=tail_free,
)
TOP_H = Stage(
    name="top_h",
    title="Top-H",
    help="Keeps the most probable tokens while their part of the entropy is at most h of the whole.",
    kind="filter",
    formula="the most probable while the sum of -p log p is at most h * H, over the 100 most probable",
    source="Potraghloo et al. 2025 (arXiv 2509.02510); transformers, TopHLogitsWarper",
    fields=(
        Field(
            name="top_h",
            off=None,
            range=Range(0, 1),
            zero_is_off=True,
            on=0.4,
            stops=lambda vocab_size: (*span(0.01, 1, 0.01), 0.0),
        ),
    ),
    run=top_h,
    falling=_top_h_falling,
)
MIN_K = Stage(
    name="min_k",
    title="Min-k",
    help="Cuts at the largest relative gap between sorted logits; where they lie close together, keeps more.",
    kind="filter",
    formula="the k largest; k = max(arg max_i (l_i - l_(i+1)) / (R i), floor(tau / R)), R = l_1 - l_n",
    source="arXiv 2604.11012",
    fields=(
        Field(
            name="min_k",
            off=None,
            range=Range(0),
            zero_is_off=True,
            on=3.0,
            stops=lambda vocab_size: (*span(0.1, 20, 0.1), 0.0),
        ),
    ),
    run=min_k,
)
P_LESS = Stage(
    name="p_less",
    title="P-less",
    help="Keeps tokens at least as probable as two draws are to be equal. 1 is p-less, 2 its normed form.",
    kind="filter",
    formula="1: p >= (sum p^j)^(1 / (j - 1)); 2: p >= (V sum p^2 - 1) / (V - 1)",
    source="arXiv 2509.23234",
    fields=(
        Field(name="p_less", off=0, range=Range(0, 2), whole=True, on=1, stops=lambda vocab_size: (0, 1, 2)),
        Field(
            name="p_less_order",
            title="Order j of form 1",
            off=2.0,
            range=Range(1, low_open=True),
            stops=lambda vocab_size: span(1.1, 5, 0.1),
        ),
    ),
    run=p_less,
    falling=_p_less_falling,
    notes=("no token qualifies, so the most probable is kept",),
)
