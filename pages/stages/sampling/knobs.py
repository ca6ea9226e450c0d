"""The sampler's knobs as the session and the address have them: one value a stage, shared with the generation page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st

from lmcore.sampling import OFF, STAGES, SamplingSettings
from pages.common import link
from pages.common.text import _, visible

NUMBERS = tuple(name for name in STAGES if name != "logit_bias")
WHOLE = {"top_k"}  # 0 is off, so that a slider can hold it
BARS = (10, 200)  # how many bars the lab may draw


def remember() -> None:
    """Give every knob its home in the session and the address; say what did not fit."""
    for name in NUMBERS:
        _remember_checked(name, off(name), lambda text, name=name: _number(name, text))
    _remember_checked("logit_bias", "", lambda text: bias_text(bias_of(text)))
    _remember_checked("order", None, lambda text: _order(text.split(",")))
    _remember_checked("bars", 20, lambda text: min(max(int(text), BARS[0]), BARS[1]))
    _remember_checked("log_bars", False, {"1": True, "0": False}.__getitem__)
    _remember_checked("token", None, _token_id)


def settings(vocab_size: int) -> SamplingSettings:
    """Return the session's knobs as settings for a vocabulary; a bias for an id outside it waits for its own model."""
    state = st.session_state
    values = {name: state[name] for name in NUMBERS}
    bias = {token: amount for token, amount in bias_of(state["logit_bias"]).items() if token < vocab_size}
    return SamplingSettings(**values, logit_bias=bias, order=_order(state["order"] or ()))


def for_lab(vocab_size: int) -> dict[str, Any]:
    """Return what the lab is to show, as its scripts name it."""
    state, chosen = st.session_state, settings(vocab_size)
    return {
        "logit_bias": {str(token): amount for token, amount in chosen.logit_bias},
        **{name: state[name] for name in NUMBERS},
        "order": list(chosen.order),
        "bars": state["bars"],
        "log": state["log_bars"],
        "token": state["token"],
    }


def take(told: Any) -> None:
    """Take over what the lab tells; it comes from a browser, so what does not fit is left as it was."""
    if not isinstance(told, Mapping):
        return
    try:
        numbers = {name: _number(name, told[name]) for name in NUMBERS}
        bias = bias_of(bias_text({int(token): float(amount) for token, amount in told["logit_bias"].items()}))
        order = _order(told["order"])
        SamplingSettings(**numbers, logit_bias=bias, order=order)
        bars = min(max(int(told["bars"]), BARS[0]), BARS[1])
        token = None if told["token"] is None else _token_id(told["token"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return
    st.session_state.update(numbers)
    st.session_state["logit_bias"] = bias_text(bias)
    st.session_state["order"] = None if order == STAGES else order
    st.session_state.update({"bars": bars, "log_bars": bool(told["log"]), "token": token})


def given(chosen: SamplingSettings) -> dict[str, Any]:
    """Return the arguments that make these settings, without those that are off.

    >>> given(SamplingSettings(temperature=0.8, top_k=3))
    {'temperature': 0.8, 'top_k': 3}
    """
    values = {name: getattr(chosen, name) for name in STAGES if getattr(chosen, name) != OFF[name]}
    if "logit_bias" in values:
        values["logit_bias"] = dict(values["logit_bias"])
    return values if chosen.order == STAGES else {**values, "order": chosen.order}


def off(name: str) -> float | int:
    """Return the value that turns a stage off, as a slider can hold it: 0 where the settings have None."""
    return (0 if name in WHOLE else 0.0) if OFF[name] is None else OFF[name]


def bias_of(text: str) -> dict[int, float]:
    """Read a logit bias as the address has it.

    >>> bias_of("12:1.5,7:-2")
    {7: -2.0, 12: 1.5}
    """
    pairs = [pair.rpartition(":") for pair in text.split(",") if pair]
    bias = {_token_id(token): float(amount) for token, _colon, amount in pairs}
    if not all(map(math.isfinite, bias.values())):
        raise ValueError(f"logit_bias is {text!r}; here every amount is a finite number.")  # JSON has no infinity
    return dict(SamplingSettings(logit_bias=bias).logit_bias)


def bias_text(bias: Mapping[int, float]) -> str:
    """Write a logit bias for the address.

    >>> bias_text({7: -2.0, 12: 1.5})
    '7:-2,12:1.5'
    """
    return ",".join(f"{token}:{amount:.12g}" for token, amount in sorted(bias.items()))


def _number(name: str, value: Any) -> float | int:
    number = int(value) if name in WHOLE else float(value)
    SamplingSettings(**{name: number})
    return number


def _order(names: Iterable[str]) -> tuple[str, ...]:
    """Complete an order of some stages with the others, which follow in their usual order."""
    chosen = tuple(names)
    return SamplingSettings(order=(*chosen, *(name for name in STAGES if name not in chosen))).order


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
