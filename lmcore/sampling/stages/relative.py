"""Filters with a threshold: a probability or a logit, held against the largest, the entropy or a constant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from lmcore.sampling.candidates import Candidates
from lmcore.sampling.falling import GUARD, Falling
from lmcore.sampling.stage import NOTHING, Context, Field, Note, Range, Stage, span

if TYPE_CHECKING:
    from lmcore.sampling.settings import SamplingSettings

__all__ = ["EPSILON", "ETA", "MIN_P", "ONE_KEPT", "TOP_N_SIGMA"]

ONE_KEPT = "no token qualifies, so the most probable is kept"
_CUTOFF_STOPS = (0.0, *(float(f"{m}e{e}") for e in (-5, -4, -3, -2, -1) for m in (1, 1.5, 2, 3, 5, 7)))


def top_n_sigma(tokens: Candidates, context: Context) -> Candidates:
    """Keep the logits within n standard deviations of the largest; the temperature cancels out."""
    logits = tokens.logits.double()
    correction = int(context.settings.rules.top_n_sigma_divisor == "n - 1" and len(tokens) > 1)
    return tokens.keep_where(logits >= logits.max() - context.settings.top_n_sigma * logits.std(correction=correction))


def min_p(tokens: Candidates, context: Context) -> Candidates:
    """Keep the tokens at least m times as probable as the most probable."""
    return tokens.keep_where(tokens.weights() >= context.settings.min_p * (1 - context.tolerance))  # the largest is 1


def epsilon_cutoff(tokens: Candidates, context: Context) -> tuple[Candidates, Note]:
    """Keep the tokens with at least a fixed probability."""
    return at_least(tokens, context.settings.epsilon_cutoff, context)


def eta_cutoff(tokens: Candidates, context: Context) -> tuple[Candidates, Note]:
    """Keep the tokens with at least a probability that falls as the entropy rises."""
    epsilon = context.settings.eta_cutoff
    return at_least(tokens, min(epsilon, math.sqrt(epsilon) * math.exp(-tokens.entropy_nats)), context)


def at_least(tokens: Candidates, cutoff: float, context: Context) -> tuple[Candidates, Note]:
    """Keep the tokens of at least a probability; the most probable, with its equals, where there is none."""
    mask = tokens.probs >= cutoff * (1 - context.tolerance)
    if bool(mask.any()):
        return tokens.keep_where(mask), NOTHING
    return tokens.keep_where(tokens.logits == tokens.logits.max()), Note(ONE_KEPT)


def falling_at_least(tokens: Falling, cutoff: float | torch.Tensor) -> Falling:
    """Do what `at_least` does, for many positions."""
    return tokens.keep_probable(cutoff * (1 - tokens.tolerance) * torch.ones_like(tokens.temperature))


def _top_n_sigma_falling(tokens: Falling, settings: SamplingSettings) -> Falling:
    is_less_one = settings.rules.top_n_sigma_divisor == "n - 1"
    if is_less_one and bool((tokens.count == 1).any()):
        tokens = tokens.unsure(tokens.count == 1)
    cutoff = tokens.largest - settings.top_n_sigma * tokens.spread(int(is_less_one))
    return tokens.keep_from(cutoff, GUARD * (1 + cutoff.abs()))


def _min_p_falling(tokens: Falling, settings: SamplingSettings) -> Falling:
    return tokens.keep_from(tokens.largest + tokens.temperature * math.log(settings.min_p * (1 - tokens.tolerance)))


def _epsilon_falling(tokens: Falling, settings: SamplingSettings) -> Falling:
    return falling_at_least(tokens, settings.epsilon_cutoff)


def _eta_falling(tokens: Falling, settings: SamplingSettings) -> Falling:
    epsilon = settings.eta_cutoff
    return falling_at_least(tokens, (math.sqrt(epsilon) * (-tokens.entropy_nats).exp()).clamp_max(epsilon))


TOP_N_SIGMA = Stage(
    name="top_n_sigma",
    title="Top-nσ",
    help="Keeps logits within n standard deviations of the largest.",
    kind="filter",
    formula="z >= max z - n * std(z)",
    source="Tang et al. 2024",
    fields=(
        Field(
            name="top_n_sigma",
            off=None,
            range=Range(0),
            zero_is_off=True,
            on=1.0,
            stops=lambda vocab_size: (*span(0.1, 5, 0.05), 0.0),
        ),
    ),
    run=top_n_sigma,
    falling=_top_n_sigma_falling,
    rare=False,
)
MIN_P = Stage(
    name="min_p",
    title="Min-p",
    help="Keeps tokens at least m times as probable as the most probable one.",
    kind="filter",
    formula="p >= m * max p",
    source="Nguyen et al. 2024",
    fields=(
        Field(
            name="min_p",
            range=Range(0, 1),
            on=0.05,
            stops=lambda vocab_size: (*span(0, 0.2, 0.005), *span(0.21, 1, 0.01)),
        ),
    ),
    run=min_p,
    falling=_min_p_falling,
    rare=False,
)
EPSILON = Stage(
    name="epsilon_cutoff",
    title="Epsilon",
    help="Keeps tokens of at least this probability.",
    kind="filter",
    formula="p >= e",
    source="Hewitt et al. 2022",
    fields=(
        Field(
            name="epsilon_cutoff",
            range=Range(0, 1, high_open=True),
            on=0.001,
            stops=lambda vocab_size: _CUTOFF_STOPS,
        ),
    ),
    run=epsilon_cutoff,
    falling=_epsilon_falling,
    notes=(ONE_KEPT,),
)
ETA = Stage(
    name="eta_cutoff",
    title="Eta",
    help="Keeps tokens above a cutoff that falls as the entropy rises.",
    kind="filter",
    formula="p >= min(e, sqrt(e) * exp(-H))",
    source="Hewitt et al. 2022",
    fields=(
        Field(
            name="eta_cutoff",
            range=Range(0, 1, high_open=True),
            on=0.001,
            stops=lambda vocab_size: _CUTOFF_STOPS,
        ),
    ),
    run=eta_cutoff,
    falling=_eta_falling,
    notes=(ONE_KEPT,),
)
