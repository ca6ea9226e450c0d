"""Checks of the worked example: temperature 0.5 and 1.5, and what top-p keeps."""

from __future__ import annotations

import math

import lmcore
from lmcore import LanguageModel, SamplingSettings
from pages.common import page, widgets
from pages.common.text import _
from pages.figures.tying import parameters as figures
from pages.stages.sampling.worked import CLAIMED, LOGITS
from pages.stages.tying.checks.card import Check


def half_temperature(lm: LanguageModel) -> Check:
    """Check T = 0.5."""
    return _temperature(
        0.5,
        _("At T = 0.5 the worked example gives 3.8 / 0.8 / 94.2 / 0.1 / 0.5 %."),
        _(
            "Dividing by T = 0.5 doubles every logit, so the ratio of each probability to the largest is "
            "squared. The claimed numbers do not satisfy this."
        ),
    )


def high_temperature(lm: LanguageModel) -> Check:
    """Check T = 1.5."""
    return _temperature(
        1.5,
        _("At T = 1.5 it gives 21.2 / 12.6 / 58.1 / 6.4 / 10.3 %."),
        _("The claimed numbers add up to **{total} %**; probabilities add up to 100 %.").format(
            total=f"{sum(CLAIMED['T = 1.5']):.1f}"
        ),
    )


def _temperature(at: float, claim: str, right: str) -> Check:
    temperature = widgets.slider(f"checks.t{at:g}", "T", 0.1, 3.0, at, step=0.1)
    probs = lmcore.reshape(list(LOGITS.values()), SamplingSettings(temperature=temperature)).probs.tolist()
    claimed = CLAIMED[f"T = {at:g}"]
    weights = [math.exp(value / temperature) for value in LOGITS.values()]
    lines = [
        f"{token}: e^({value} / {temperature:g}) = {weight:.4g}, / {sum(weights):.5g} = {100 * p:.2f} %"
        for (token, value), weight, p in zip(LOGITS.items(), weights, probs, strict=True)
    ]
    return Check(
        claim,
        f"{claimed[2]} %",
        f"{100 * probs[2]:.2f} %",
        "\n".join(lines),
        right + " " + _("Computed: {values} %.").format(values=_percents(probs)),
        page.Suggestion(
            _("Move T in the sampling lab"), "sampling", {"source": "worked", "temperature": temperature, "top_p": 1.0}
        ),
        figures.claimed_and_computed(
            list(LOGITS),
            [value / 100 for value in claimed],
            probs,
            names=(_("claimed for T = {t}").format(t=f"{at:g}"), _("computed at T = {t}").format(t=f"{temperature:g}")),
        ),
        _("Claimed and computed probabilities of the five candidates."),
    )


def kept_mass(lm: LanguageModel) -> Check:
    """Check what the kept words sum to after top-p."""
    top_p = widgets.slider("checks.top_p", "top-p", 0.05, 1.0, 0.9, step=0.05)
    before = lmcore.reshape(list(LOGITS.values()), SamplingSettings())
    after = lmcore.reshape(list(LOGITS.values()), SamplingSettings(top_p=top_p))
    mass = 1 - after.removed_mass
    cumulative, lines = 0.0, []
    for index in before.probs.argsort(descending=True).tolist():
        cumulative += before.probs[index].item()
        verdict = _("kept") if after.probs[index] > 0 else _("removed")
        lines.append(
            f"{list(LOGITS)[index]}: {100 * before.probs[index]:.2f} %, Σ = {100 * cumulative:.2f} % · {verdict}"
        )
    return Check(
        _("After top-p 0.9, the kept words sum to 90 %."),
        "90 %",
        f"{100 * mass:.2f} %",
        "\n".join(lines),
        _(
            "The token that crosses the threshold is kept, so the {n} kept tokens sum to **{mass}** before "
            "they are renormalised, and to 100 % after: {values} %."
        ).format(n=after.candidates, mass=f"{100 * mass:.2f} %", values=_percents(after.probs.tolist())),
        page.Suggestion(
            _("Move top-p in the sampling lab"), "sampling", {"source": "worked", "top_p": top_p, "temperature": 1.0}
        ),
        figures.claimed_and_computed(
            list(LOGITS),
            before.probs.tolist(),
            after.probs.tolist(),
            names=(_("before"), _("after top-p, renormalised")),
        ),
        _("Probabilities of the five candidates before and after top-p."),
    )


def _percents(probs: list[float]) -> str:
    return " / ".join(f"{100 * p:.2f}" for p in probs)
