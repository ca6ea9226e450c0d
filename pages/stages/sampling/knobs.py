"""The sampler's knobs as the session and the address have them: one value a stage, shared with the generation page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st

from lmcore.sampling import ENGINES, OFF, STAGES, Rules, SamplingSettings, preset
from pages.common import link
from pages.common.text import _, visible
from pages.live.sampling_lab import engines
from pages.live.sampling_lab.engines import off_value as off

NUMBERS = tuple(name for name in STAGES if name != "logit_bias")
WHOLE = {"top_k"}  # 0 is off, so that a slider can hold it
BARS = (10, 200)  # how many bars the lab may draw


class Expression(str):
    """Python that stands for a value in a snippet: it is its own repr.

    >>> print([Expression("lmcore.STAGES")])
    [lmcore.STAGES]
    """

    def __repr__(self) -> str:
        return str(self)


class Ban(float):
    """A bias of -inf that a snippet can read again.

    >>> {7: Ban("-inf")}
    {7: float("-inf")}
    """

    def __repr__(self) -> str:
        return 'float("-inf")'


def remember() -> None:
    """Give every knob its home in the session and the address; say what did not fit."""
    _remember_checked("engine", engines.OWN, _engine)
    for name in NUMBERS:
        _remember_checked(name, off(name), lambda text, name=name: _number(name, text))
    _remember_checked("penalty_last_n", 0, _window)
    _remember_checked("logit_bias", "", lambda text: bias_text(bias_of(text)))
    _remember_checked("order", None, lambda text: _order(text.split(","), st.session_state["engine"]))
    _remember_checked("against", "", lambda text: text and _engine(text))
    _remember_checked("pinned", "", lambda text: text and pinned_text(_pinned_in(text)))
    _remember_checked("bars", 20, lambda text: min(max(int(text), BARS[0]), BARS[1]))
    _remember_checked("log_bars", False, {"1": True, "0": False}.__getitem__)
    _remember_checked("token", None, _token_id)


def settings(vocab_size: int) -> SamplingSettings:
    """Return the session's knobs as settings for a vocabulary, under the chosen engine's rules.

    A bias for an id outside the vocabulary waits for its own model. Where the engine refuses temperature 0 the rules
    are lmcore's own, which are greedy; `is_refused` says so.
    """
    state = st.session_state
    engine = state["engine"]
    values: dict[str, Any] = {name: state[name] for name in NUMBERS}
    values["logit_bias"] = {
        token: amount for token, amount in bias_of(state["logit_bias"]).items() if token < vocab_size
    }
    values["order"] = _order(state["order"] or (), engine)
    values["penalty_last_n"] = state["penalty_last_n"] or None
    if engine == engines.OWN or is_refused():
        return SamplingSettings(**values)
    return preset(engine, **values)


def set_to(chosen: SamplingSettings) -> None:
    """Set the session's knobs to settings, as a callback of a button."""
    engine = chosen.engine if chosen.engine in engines.names() else engines.OWN
    values = {name: getattr(chosen, name) for name in NUMBERS}
    st.session_state.update({name: off(name) if value is None else value for name, value in values.items()})
    st.session_state["logit_bias"] = bias_text(dict(chosen.logit_bias))
    order = _order(chosen.order, engine)
    st.session_state["order"] = None if order == engines.order(engine) else order
    st.session_state.update({"engine": engine, "penalty_last_n": chosen.penalty_last_n or 0})


def is_refused() -> bool:
    """Whether the chosen engine refuses to sample at this temperature."""
    engine = st.session_state["engine"]
    refuses = engine != engines.OWN and ENGINES[engine].rules.zero_temperature == "error"
    return refuses and st.session_state["temperature"] == 0


def for_lab(vocab_size: int) -> dict[str, Any]:
    """Return what the lab is to show, as its scripts name it."""
    state = st.session_state
    bias = {token: amount for token, amount in bias_of(state["logit_bias"]).items() if token < vocab_size}
    return {
        "logit_bias": _bias_for_lab(bias),
        **{name: state[name] for name in NUMBERS},
        "penalty_last_n": state["penalty_last_n"],
        "engine": state["engine"],
        "order": list(_order(state["order"] or (), state["engine"])),
        "against": state["against"],
        "pinned": _pinned_in(state["pinned"]) if state["pinned"] else None,
        "bars": state["bars"],
        "log": state["log_bars"],
        "token": state["token"],
    }


def take(told: Any) -> None:
    """Take over what the lab tells; it comes from a browser, so what does not fit is left as it was."""
    if not isinstance(told, Mapping):
        return
    try:
        engine = _engine(told["engine"])
        numbers = {name: _number(name, told[name]) for name in NUMBERS}
        bias = _bias_told(told["logit_bias"])
        order = _order(told["order"], engine)
        SamplingSettings(**numbers, logit_bias=bias, order=order)
        window = _window(told["penalty_last_n"])
        pinned = pinned_text(_pinned(told["pinned"])) if told.get("pinned") else ""
        against = told["against"] and _engine(told["against"])
        bars = min(max(int(told["bars"]), BARS[0]), BARS[1])
        token = None if told["token"] is None else _token_id(told["token"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return
    st.session_state.update(numbers)
    st.session_state["logit_bias"] = bias_text(bias)
    st.session_state["order"] = None if order == engines.order(engine) else order
    st.session_state.update({"engine": engine, "penalty_last_n": window, "against": against, "pinned": pinned})
    st.session_state.update({"bars": bars, "log_bars": bool(told["log"]), "token": token})


def given(chosen: SamplingSettings) -> dict[str, Any]:
    """Return the arguments that make these settings, without those that are off.

    >>> given(SamplingSettings(top_k=3, temperature=0.8))
    {'temperature': 0.8, 'top_k': 3}
    """
    values = {name: getattr(chosen, name) for name in STAGES if getattr(chosen, name) != OFF[name]}
    if "logit_bias" in values:
        values["logit_bias"] = {
            token: amount if math.isfinite(amount) else Ban(amount) for token, amount in values["logit_bias"]
        }
    if chosen.penalty_last_n is not None and any("penalty" in name for name in values):
        values["penalty_last_n"] = chosen.penalty_last_n
    if chosen.order != STAGES:
        values["order"] = chosen.order
    if chosen.rules != Rules():
        values["rules"] = Expression(f"lmcore.preset({chosen.engine!r}).rules")
    return values


def bias_of(text: str) -> dict[int, float]:
    """Read a logit bias as the address has it; -inf bans a token.

    >>> bias_of("12:1.5,7:-2,9:-inf")
    {7: -2.0, 9: -inf, 12: 1.5}
    """
    pairs = [pair.rpartition(":") for pair in text.split(",") if pair]
    bias = {_token_id(token): float(amount) for token, _colon, amount in pairs}
    return dict(SamplingSettings(logit_bias=bias).logit_bias)


def bias_text(bias: Mapping[int, float]) -> str:
    """Write a logit bias for the address.

    >>> bias_text({7: -2.0, 12: 1.5})
    '7:-2,12:1.5'
    """
    return ",".join(f"{token}:{amount:.12g}" for token, amount in sorted(bias.items()))


def pinned_text(pinned: Mapping[str, Any]) -> str:
    """Write pinned settings for the address: those that are not off, as JSON."""
    engine = pinned["engine"]
    usual = {**{name: off(name) for name in NUMBERS}, "penalty_last_n": 0, "logit_bias": {}, "engine": engines.OWN}
    usual["order"] = list(engines.order(engine))
    told = {name: value for name, value in pinned.items() if value != usual[name]}
    return json.dumps(told or {"engine": engine}, separators=(",", ":"))


def _pinned(given: Mapping[str, Any]) -> dict[str, Any]:
    """Complete pinned settings, from the address or the lab, as the lab's scripts name them."""
    engine = _engine(given.get("engine", engines.OWN))
    numbers = {name: _number(name, given.get(name, off(name))) for name in NUMBERS}
    bias = _bias_told(given.get("logit_bias", {}))
    order = _order(given.get("order", ()), engine)
    SamplingSettings(**numbers, logit_bias=bias, order=order)
    window = _window(given.get("penalty_last_n", 0))
    return {
        **numbers,
        "logit_bias": _bias_for_lab(bias),
        "engine": engine,
        "order": list(order),
        "penalty_last_n": window,
    }


def _pinned_in(text: str) -> dict[str, Any]:
    try:
        return _pinned(json.loads(text))
    except (TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"pinned is {text!r}; it must be settings by name, as JSON.") from error


def _bias_told(told: Mapping[str, Any]) -> dict[int, float]:
    return bias_of(bias_text({int(token): float(amount) for token, amount in told.items()}))


def _bias_for_lab(bias: Mapping[int, float]) -> dict[str, float | str]:
    return {str(token): amount if math.isfinite(amount) else "-inf" for token, amount in bias.items()}


def _number(name: str, value: Any) -> float | int:
    number = int(value) if name in WHOLE else float(value)
    SamplingSettings(**{name: number})
    return number


def _engine(name: Any) -> str:
    if name not in engines.names():
        raise ValueError(f"engine is {name!r}; it must be one of {', '.join(engines.names())}.")
    return name


def _window(value: Any) -> int:
    n = int(value)  # 0 is all of them
    SamplingSettings(penalty_last_n=n)
    return n


def _order(names: Iterable[str], engine: str) -> tuple[str, ...]:
    """Complete an order of some stages with the others, which follow in the engine's order."""
    chosen = tuple(names)
    return SamplingSettings(order=(*chosen, *(name for name in engines.order(engine) if name not in chosen))).order


def _token_id(value: Any) -> int:
    token = int(value)
    if not 0 <= token < 2**31:
        raise ValueError(f"token is {token}; ids are 0 or more.")
    return token


def _remember_checked(key: str, default: Any, parse: link.Parse) -> None:
    link.remember(key, default, parse)
    refused = link.replaced(key)
    if refused is not None:
        value = st.session_state[key]
        shown = "" if value is None else link.as_text(value)
        message = _("{given} does not fit {name}; showing {value}.")
        st.text(message.format(given=visible(refused[:40]), name=key, value=shown or _("off")))
