"""What the lab's scripts must know of each engine: its stages, order, defaults and boundary rules."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lmcore.sampling import ENGINES, OFF, STAGES, Engine, Rules
from pages.common.text import _

OWN = "lmcore"  # its own exact rules, every stage, in the default order


def names() -> tuple[str, ...]:
    """Return what the lab can follow: lmcore's own rules, then each engine."""
    return (OWN, *ENGINES)


def title(name: str) -> str:
    """Return an engine's name on screen."""
    return _("lmcore: every stage, exact") if name == OWN else ENGINES[name].title


def order(name: str) -> tuple[str, ...]:
    """Return the order an engine runs its stages in, those it does not have behind them."""
    own = STAGES if name == OWN else ENGINES[name].order
    return (*own, *(stage for stage in STAGES if stage not in own))


def table() -> dict[str, dict[str, Any]]:
    """Return every engine as the scripts take it."""
    own = {"stages": STAGES, "defaults": {}, "rules": asdict(Rules()), "off": {}, "window": True, "says": {}}
    told = {OWN: own, **{name: _described(engine) for name, engine in ENGINES.items()}}
    return {name: {"title": title(name), "order": order(name), **rest} for name, rest in told.items()}


def _described(engine: Engine) -> dict[str, Any]:
    return {
        "stages": engine.order,
        "defaults": dict(engine.defaults),
        "rules": asdict(engine.rules),
        # A slider reaches from 0 to 1 where an engine may take an end to mean off.
        "off": {name: [end for end in (0, 1) if is_off(end)] for name, is_off in engine.off.items()},
        "window": engine.penalty_window,
        "says": says(engine.rules),
    }


def says(rules: Rules) -> dict[str, str]:
    """Return, by stage, what an engine does at the boundary; each of them is a choice that engines differ in."""
    told = {
        "top_k": _("ties at the k-th: exactly k stay"),
        "top_p": _("the crossing token stays; of equal ones the lower ids"),
        "typical_p": {
            "reach": _("stops once the sum is p or more"),
            "exceed": _("stops once the sum is more than p"),
            "dropped": _("the crossing token is dropped"),
        }[rules.typical_boundary],
        "temperature": _("T = 0 is greedy"),
    }
    if rules.top_k_ties == "all":
        told["top_k"] = _("ties at the k-th: all stay")
    if rules.top_p_ties == "highest":
        told["top_p"] = _("the crossing token stays; of equal ones the higher ids")
    if rules.top_p_boundary == "crossing dropped":
        told["top_p"] = _("the crossing token is dropped; a smaller one may still fit")
    if rules.typical_ties == "all":
        told["typical_p"] += " · " + _("ties: all stay")
    if rules.typical_score == "exllamav2":
        told["typical_p"] += " · " + _("p is added to log p")
    if rules.zero_temperature == "error":
        told["temperature"] = _("T = 0 is an error")
    elif rules.greedy_below:
        told["temperature"] = _("below {t} it is greedy").format(t=f"{rules.greedy_below:.5f}".rstrip("0"))
    if rules.additive_penalties_count == "generated":
        for name in ("frequency_penalty", "presence_penalty"):
            told[name] = _("counts generated tokens only")
    return told


def off_value(name: str) -> Any:
    """Return the value that turns a stage off, as a slider can hold it: 0 where the settings have None.

    >>> off_value("top_k"), off_value("top_n_sigma"), off_value("top_p")
    (0, 0.0, 1.0)
    """
    if OFF[name] is None:
        return 0 if name == "top_k" else 0.0
    return OFF[name]
