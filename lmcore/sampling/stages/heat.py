"""Temperature: what the logits are divided by, fixed or following the entropy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from lmcore.sampling.candidates import Candidates
from lmcore.sampling.falling import Falling
from lmcore.sampling.stage import NOTHING, Context, Field, Note, Range, Stage, span

if TYPE_CHECKING:
    from lmcore.sampling.settings import SamplingSettings

__all__ = ["GREEDY", "GREEDY_TIE", "TEMPERATURE"]

GREEDY = "temperature {temperature:g} is greedy: the most probable token is kept"
GREEDY_TIE = (
    "temperature {temperature:g} is greedy: of {count} equally probable tokens the one with the lowest id is kept"
)
DYNAMIC = "the entropy makes the temperature {temperature:.4f}"


def temperature(tokens: Candidates, context: Context) -> tuple[Candidates, Note]:
    """Divide the logits; 0, or less than the engine's least, keeps the most probable token alone."""
    settings = context.settings
    t, note = settings.temperature, NOTHING
    if settings.dynatemp_range > 0:
        if len(tokens) == 1:
            return tokens, NOTHING
        t = _dynamic(tokens, t, settings.dynatemp_range, settings.dynatemp_exponent)
        note = Note(DYNAMIC, temperature=t)
    if t > 0 and t >= settings.rules.greedy_below:
        return tokens.heated(max(t, settings.rules.least_temperature)), note
    best = tokens.logits.argmax()  # the first of equal maxima, which is the lowest id
    equal = int((tokens.logits == tokens.logits[best]).sum())
    note = Note(GREEDY, temperature=t) if equal == 1 else Note(GREEDY_TIE, temperature=t, count=equal)
    return tokens.keep(best.unsqueeze(0)), note


def _dynamic(tokens: Candidates, middle: float, reach: float, exponent: float) -> float:
    low, high = max(middle - reach, 0.0), middle + reach
    share = min(max(tokens.entropy_nats / math.log(len(tokens)), 0.0), 1.0)
    return low + (high - low) * share**exponent


def _falling(tokens: Falling, settings: SamplingSettings) -> Falling:
    given = torch.full_like(tokens.temperature, settings.temperature)
    if dynamic := settings.dynatemp_range > 0:
        low = max(settings.temperature - settings.dynatemp_range, 0.0)
        high = settings.temperature + settings.dynatemp_range
        share = (tokens.entropy_nats / tokens.count.double().log()).clamp(0, 1)
        given = torch.where(tokens.count == 1, 1.0, low + (high - low) * share**settings.dynatemp_exponent)
    greedy = (given <= 0) | (given < settings.rules.greedy_below)
    heated = tokens.heated(torch.where(greedy, 1.0, given.clamp_min(settings.rules.least_temperature)))
    near = (given - settings.rules.greedy_below).abs() < 1e-6  # where rounding decides what is greedy
    return heated.keep(torch.where(greedy, 1, tokens.count)).unsure(given.isnan() | (near & dynamic))


TEMPERATURE = Stage(
    name="temperature",
    title="Temperature",
    help="Divides the logits by T: below 1 sharper, above 1 flatter, 0 greedy.",
    kind="temperature",
    formula="z / T; with a range r: T' = lo + (hi - lo) * (H / ln n)^e, lo = max(0, T - r), hi = T + r",
    source="dynamic temperature: llama.cpp, llama_sampler_temp_ext",
    fields=(
        Field(
            name="temperature",
            off=1.0,
            range=Range(0),
            on=0.8,
            stops=lambda vocab_size: (*span(0, 2, 0.01), *span(2.1, 5, 0.1)),
        ),
        Field(
            name="dynatemp_range",
            title="Range around T, by entropy",
            range=Range(0),
            on=0.5,
            stops=lambda vocab_size: span(0, 2, 0.05),
        ),
        Field(
            name="dynatemp_exponent",
            title="Exponent of the entropy",
            off=1.0,
            range=Range(0, low_open=True),
            stops=lambda vocab_size: span(0.1, 3, 0.1),
        ),
    ),
    switches=("temperature", "dynatemp_range"),
    run=temperature,
    falling=_falling,
    notes=(GREEDY, GREEDY_TIE, DYNAMIC),
    rare=False,
)
