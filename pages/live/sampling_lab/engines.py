"""What the lab's scripts must know of each engine: its stages, order, defaults, limits and boundary rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lmcore.sampling import PRESETS, Preset, Range, Rules
from lmcore.sampling.registry import all_fields, all_stages
from pages.common.text import _
from pages.live.sampling_lab.generated import off

OWN = "lmcore"  # its own exact rules, every stage, in the default order
_ENDS = (-1, 0, 1)  # an engine may take an end of a slider to mean off


def names() -> tuple[str, ...]:
    """Return what the lab can follow: lmcore's own rules, then each engine."""
    return (OWN, *PRESETS)


def title(name: str) -> str:
    """Return an engine's name on screen."""
    return _("lmcore: every stage, exact") if name == OWN else PRESETS[name].title


def order(name: str) -> tuple[str, ...]:
    """Return the order an engine runs its stages in, those it does not have behind them."""
    every = tuple(stage.name for stage in all_stages())
    own = every if name == OWN else PRESETS[name].order
    return (*own, *(stage for stage in every if stage not in own))


def table(model: Mapping[str, Any] | None = None, only: str | None = None) -> dict[str, dict[str, Any]]:
    """Return every engine as the scripts take it, or only one.

    Args:
        model: settings from the files of a model, which some engines take as their defaults.
        only: the name of the only one wanted.
    """
    own = {
        "stages": order(OWN),
        "defaults": {},
        "rules": asdict(Rules()),
        "off": {},
        "reads": {},
        "limits": {},
        "window": "all",
        "lacks": (),
        "alone": {},
        "says": {},
        "about": "",
    }
    told = {OWN: own} if only in (None, OWN) else {}
    told |= {name: _described(each, model or {}) for name, each in PRESETS.items() if only in (None, name)}
    return {name: {"title": title(name), "order": order(name), **rest} for name, rest in told.items()}


def _described(preset: Preset, model: Mapping[str, Any]) -> dict[str, Any]:
    defaults = dict(preset.defaults if preset.silent is None else preset.silent)
    taken = preset.taken_from(model)
    defaults.update({name: off(name) if value is None else value for name, value in taken.items()})
    if "order" in defaults:
        defaults["order"] = (*defaults["order"], *(n for n in order(preset.name) if n not in defaults["order"]))
    about = _("{engine}: version {version}, {date}").format(
        engine=preset.title, version=preset.version, date=preset.date
    )
    return {
        "stages": preset.order,
        "defaults": defaults,
        "rules": asdict(preset.rules),
        "off": {name: [end for end in _ENDS if is_off(end)] for name, is_off in preset.off.items()},
        "reads": {name: _read(name, preset) for name in preset.reads if all_fields()[name].whole},
        "limits": {name: limit_of(name, limit) for name, limit in preset.limits.items()},
        "window": window(preset),
        "lacks": preset.lacks,
        "alone": preset.alone,
        "says": says(preset.rules),
        "about": about,
    }


def _read(name: str, preset: Preset) -> dict[int, Any]:
    """Return how an engine reads the values of a field of few whole numbers: a form that it takes for another."""
    field = all_fields()[name]
    return {int(stop): preset.read(name, int(stop)) for stop in field.stops(1) if stop != field.off}


def window(preset: Preset) -> str | None:
    """Return what a penalty window of 0 means to an engine: "all" tokens or "none"; None where it has no window."""
    if not preset.penalty_window:
        return None
    return "all" if preset.read("penalty_last_n", 0) is None else "none"


def limit_of(name: str, limit: Range) -> dict[str, Any]:
    """Return a range as the scripts take it, with its sentence."""
    return {**asdict(limit), "low": _finite(limit.low), "high": _finite(limit.high), "allowed": allowed(name, limit)}


def allowed(name: str, limit: Range) -> str:
    """Say which numbers a field takes, in the session's language."""
    low, high = f"{limit.low:g}", f"{limit.high:g}"
    if _finite(limit.high) is None:
        if _finite(limit.low) is None:
            return _("any number")
        if all_fields()[name].whole:
            return _("a whole number of {low} or more").format(low=low)
        return (_("a number more than {low}") if limit.low_open else _("a number of {low} or more")).format(low=low)
    if all_fields()[name].whole:
        return _("a whole number from {low} to {high}").format(low=low, high=high)
    if limit.low_open:
        return _("a number more than {low}, and at most {high}").format(low=low, high=high)
    if limit.high_open:
        return _("a number of {low} or more, and less than {high}").format(low=low, high=high)
    return _("a number from {low} to {high}").format(low=low, high=high)


def _finite(bound: float) -> float | None:
    return bound if abs(bound) < float("inf") else None


def says(rules: Rules) -> dict[str, str]:
    """Return, by stage, what an engine does at the boundary; each of them is a choice that engines differ in."""
    told = {
        "top_k": _("ties at rank k: exactly k are kept"),
        "top_p": _("the crossing token is kept; among equal ones, the lower ids"),
        "typical_p": {
            "reach": _("stops once the sum is p or more"),
            "exceed": _("stops once the sum is more than p"),
            "dropped": _("the crossing token is removed"),
        }[rules.typical_boundary],
        "temperature": _("T = 0 is greedy"),
        "top_n_sigma": _("the variance is divided by {divisor}").format(divisor=rules.top_n_sigma_divisor),
    }
    if rules.top_k_ties == "all":
        told["top_k"] = _("ties at rank k: all are kept")
    if rules.top_p_ties == "highest":
        told["top_p"] = _("the crossing token is kept; among equal ones, the higher ids")
    if rules.top_p_ties == "all":
        told["top_p"] = _("the crossing token stays, and those equal to it")
    if rules.top_p_boundary == "exceed":
        told["top_p"] = _("stops once the sum is more than p")
    if rules.top_p_joint != "no":
        told["top_p"] += " · " + _("jointly with top-k: over all tokens")
    if rules.top_p_boundary == "crossing dropped":
        told["top_p"] = _("the crossing token is removed; a smaller one may still fit")
    if rules.typical_ties == "all":
        told["typical_p"] += " · " + _("ties: all are kept")
    if rules.typical_score == "exllamav2":
        told["typical_p"] += " · " + _("p is added to log p")
    if rules.zero_temperature == "error":
        told["temperature"] = _("T = 0 is an error")
    elif rules.greedy_below:
        least = f"{rules.greedy_below:.6f}".rstrip("0")
        told["temperature"] = _("below {t} it is greedy").format(t=least)
    if rules.least_temperature:
        told["temperature"] += " · " + _("at least {t} otherwise").format(t=f"{rules.least_temperature:g}")
    if rules.repetition_penalty_counts == "generated":
        told["repetition_penalty"] = _("counts generated tokens only")
    if rules.additive_penalties_count == "generated":
        for name in ("frequency_penalty", "presence_penalty"):
            told[name] = _("counts generated tokens only")
    return told
