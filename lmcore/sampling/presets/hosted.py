"""APIs whose code nobody outside reads."""

from __future__ import annotations

from lmcore.sampling.presets.declaration import Preset
from lmcore.sampling.rules import Rules
from lmcore.sampling.stage import Range

__all__ = ["OPENAI"]

OPENAI = Preset(
    name="openai",
    title="OpenAI API (assumed)",
    version="API description f85dbe223",
    date="2026-08-21",
    order=("logit_bias", "frequency_penalty", "presence_penalty", "temperature", "top_p"),
    rules=Rules(additive_penalties_count="generated", boundary_ulps=0.0),
    does=(
        "Order and boundary are not documented: temperature before top-p, and the crossing token kept, are assumed.",
        "There is no top-k, min-p or repetition penalty.",
        "Presence and frequency count only what was generated, as its guide says.",
        "Temperature 0 is allowed; what it means is not documented, and greedy is assumed.",
        "Temperatures go up to 2 and penalties from -2 to 2; others are refused.",
        "A bias goes from -100 to 100 there; wider ones are computed here.",
    ),
    source="assumed: the API reference names the knobs and their ranges, not the order or the boundary",
    assumed=True,
    limits={
        "temperature": Range(0, 2),
        "top_p": Range(0, 1),
        "frequency_penalty": Range(-2, 2),
        "presence_penalty": Range(-2, 2),
    },
    reports={"logprobs": ""},
)
