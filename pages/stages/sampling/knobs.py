"""The sampler's knobs as the session and the address have them: one value a stage, shared with the generation page."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st

from lmcore.sampling import OFF, PRESETS, Ids, Rules, SamplingSettings, given_fields, preset
from lmcore.sampling.presets import Refused
from lmcore.sampling.registry import all_fields, all_stages
from pages.common import link
from pages.common.text import _, visible
from pages.live.sampling_lab import engines
from pages.live.sampling_lab.generated import off
from pages.live.sampling_lab.labels import stage_titles

COMMON = {stage.fields[0].name for stage in all_stages() if not stage.rare} | {
    *("penalty_last_n", "epsilon_cutoff", "eta_cutoff"),
}
"""The knobs that are always in the address; the others only while they are not off."""
_ANSWERS = "sampling.answers"  # the lab's message that the session's settings follow from
BARS = (10, 200)  # how many bars the lab may draw


class Expression(str):
    """Python that stands for a value in a snippet: it is its own repr.

    >>> print([Expression("lmcore.Rules()")])
    [lmcore.Rules()]
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


def numbers() -> tuple[str, ...]:
    """Return every knob but the logit bias, those of registered stages too."""
    return tuple(name for name in all_fields() if name != "logit_bias")


def remember() -> None:
    """Give every knob its home in the session and the address; say what did not fit."""
    _remember_checked("engine", engines.OWN, _engine)
    for name in numbers():
        # What is rarely used is in the address only while it is not off.
        default = off(name) if name in COMMON else None
        _remember_checked(_key(name), default, functools.partial(_number, name))
    _remember_checked("logit_bias", "", lambda text: bias_text(bias_of(text)))
    _remember_checked("order", None, lambda text: _order(text.split(","), st.session_state["engine"]))
    _remember_checked("against", "", lambda text: text and _engine(text))
    _remember_checked("pinned", "", lambda text: text and pinned_text(_pinned_in(text)))
    _remember_checked("bars", 20, lambda text: min(max(int(text), BARS[0]), BARS[1]))
    _remember_checked("log_bars", False, {"1": True, "0": False}.__getitem__)
    _remember_checked("token", None, _token_id)


def value(name: str) -> Any:
    """Return a knob's value as a slider holds it."""
    kept = st.session_state.get(_key(name))
    return off(name) if kept is None else kept


def put(name: str, given: Any) -> bool:
    """Set a knob, as a callback of a widget; return whether its stage takes what was given."""
    try:
        kept = bias_text(bias_of(given)) if name == "logit_bias" else _kept(name, _number(name, given))
    except (ValueError, OverflowError):
        return False
    st.session_state[_key(name)] = kept
    return True


def settings(vocab_size: int) -> SamplingSettings:
    """Return the session's knobs as settings for a vocabulary, under the chosen engine's rules.

    A bias for an id outside the vocabulary waits for its own model. Where the engine refuses a value the rules are
    lmcore's own; `refusal` says so.
    """
    engine = st.session_state["engine"]
    values = _values(vocab_size)
    if engine != engines.OWN and refusal(vocab_size) is None:
        return preset(engine, **values)
    return _own(values)


def refusal(vocab_size: int) -> str | None:
    """Say what the chosen engine refuses, or None where it takes these knobs."""
    engine = st.session_state["engine"]
    if engine == engines.OWN:
        return None
    try:
        preset(engine, **_values(vocab_size))
    except Refused as refused:
        names = {field.name: stage_titles()[stage.name] for stage in all_stages() for field in stage.fields}
        return _("{engine} refuses {stage} {value}: it takes {allowed}.").format(
            engine=PRESETS[engine].title,
            stage=names[refused.field],
            value=f"{refused.value:g}",
            allowed=engines.allowed(refused.field, refused.allowed),
        )
    except ValueError:
        return _("This engine refuses temperature 0 when sampling. Use more than 0, or the rules of another engine.")
    return None


def pinned_settings(vocab_size: int) -> SamplingSettings | None:
    """Return the settings that are pinned in the lab; None where there are none, or their engine refuses them."""
    if not st.session_state["pinned"]:
        return None
    kept = _pinned_in(st.session_state["pinned"])
    engine = kept["engine"]
    values = _as_preset_takes(kept, _bias_told(kept["logit_bias"]), kept["order"], engine, vocab_size)
    if engine == engines.OWN:
        return _own(values)
    try:
        return preset(engine, **values)
    except ValueError:
        return None


def _own(values: dict[str, Any]) -> SamplingSettings:
    # lmcore's own window of 0, on a page, is all.
    return SamplingSettings(**{**values, "penalty_last_n": values["penalty_last_n"] or None})


def _values(vocab_size: int) -> dict[str, Any]:
    """Return the session's knobs as `preset` takes them."""
    state = st.session_state
    held = {name: value(name) for name in numbers()}
    return _as_preset_takes(held, bias_of(state["logit_bias"]), state["order"] or (), state["engine"], vocab_size)


def _as_preset_takes(
    held: Mapping[str, Any], bias: Mapping[int, float], order: Iterable[str], engine: str, vocab_size: int
) -> dict[str, Any]:
    """Return knobs, as sliders hold them, as `preset` takes them; what is off is None."""
    fields = {name: field for name, field in all_fields().items() if name != "logit_bias"}
    values = {name: field.off if held[name] == off(name) else held[name] for name, field in fields.items()}
    values["penalty_last_n"] = held["penalty_last_n"]
    values["logit_bias"] = {token: amount for token, amount in bias.items() if token < vocab_size}
    complete = _order(order, engine)
    if complete != engines.order(engine):
        values["order"] = complete
    return values


def set_to(chosen: SamplingSettings) -> None:
    """Set the session's knobs to settings, as a callback of a button."""
    engine = chosen.engine if chosen.engine in engines.names() else engines.OWN
    given = dict(chosen.values)
    st.session_state.update({_key(name): _kept(name, given.get(name, off(name))) for name in numbers()})
    st.session_state["logit_bias"] = bias_text(dict(chosen.logit_bias))
    order = _order(chosen.order, engine)
    st.session_state["order"] = None if order == engines.order(engine) else order
    st.session_state["engine"] = engine


def for_lab(vocab_size: int) -> dict[str, Any]:
    """Return what the lab is to show, as its scripts name it."""
    state = st.session_state
    bias = {token: amount for token, amount in bias_of(state["logit_bias"]).items() if token < vocab_size}
    return {
        "logit_bias": _bias_for_lab(bias),
        **{name: value(name) for name in numbers()},
        "engine": state["engine"],
        "order": list(_order(state["order"] or (), state["engine"])),
        "against": state["against"],
        "pinned": _pinned_in(state["pinned"]) if state["pinned"] else None,
        "bars": state["bars"],
        "log": state["log_bars"],
        "token": state["token"],
        "answers": state.get(_ANSWERS),
    }


def take(told: Any) -> None:
    """Take over what the lab tells; it comes from a browser, so what does not fit is left as it was.

    Its message is numbered, and the number goes back with the next settings: the lab lets only the answer to its
    latest message change a control.
    """
    if not isinstance(told, Mapping):
        return
    try:
        engine = _engine(told["engine"])
        given = {name: _number(name, told.get(name, off(name))) for name in numbers()}
        bias = _bias_told(told["logit_bias"])
        order = _order(told["order"], engine)
        pinned = pinned_text(_pinned(told["pinned"])) if told.get("pinned") else ""
        against = told["against"] and _engine(told["against"])
        bars = min(max(int(told["bars"]), BARS[0]), BARS[1])
        token = None if told["token"] is None else _token_id(told["token"])
        answers = _message(told.get("message"))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return
    st.session_state.update({_key(name): _kept(name, number) for name, number in given.items()})
    st.session_state["logit_bias"] = bias_text(bias)
    st.session_state["order"] = None if order == engines.order(engine) else order
    st.session_state.update({"engine": engine, "against": against, "pinned": pinned, _ANSWERS: answers})
    st.session_state.update({"bars": bars, "log_bars": bool(told["log"]), "token": token})


def _key(name: str) -> str:
    """Return where the session and the address have a knob: a registered stage's apart, for it may be called anything.

    >>> _key("top_k"), _key("position")
    ('top_k', 'own.position')
    """
    return name if name in OFF else f"own.{name}"


def _kept(name: str, number: Any) -> Any:
    """Return a knob's value as the session keeps it: None for what is rarely used and off."""
    return None if name not in COMMON and number == off(name) else number


def _message(told: Any) -> list[Any] | None:
    """Return the lab's name for itself and the number of its message."""
    if told is None:
        return None
    lab, number = told
    return [str(lab)[:40], int(number)]


def given(chosen: SamplingSettings) -> dict[str, Any]:
    """Return the arguments that make these settings, without those that are off.

    >>> given(SamplingSettings(top_k=3, temperature=0.8))
    {'temperature': 0.8, 'top_k': 3}
    """
    values = dict(given_fields(chosen))
    if "logit_bias" in values:
        values["logit_bias"] = {
            token: amount if math.isfinite(amount) else Ban(amount) for token, amount in values["logit_bias"]
        }
    if not any("penalty" in name and name != "penalty_last_n" for name in values):
        values.pop("penalty_last_n", None)
    if chosen.order != SamplingSettings().order:
        values["order"] = chosen.order
    if chosen.rules != Rules():
        values["rules"] = Expression(f"lmcore.preset({chosen.engine!r}).rules")
    return values


def address(chosen: SamplingSettings) -> dict[str, Any]:
    """Return what the address says of these settings: the engine whose rules they have, and what is not off.

    >>> address(SamplingSettings(top_k=3, seed=5))
    {'engine': 'lmcore', 'top_k': 3, 'seed': 5}
    """
    values = {name: value for name, value in given(chosen).items() if name not in ("rules", "logit_bias")}
    engine = chosen.engine if chosen.rules != Rules() else engines.OWN
    if engine != engines.OWN and values.get("order") == PRESETS[engine].order:
        del values["order"]
    found: dict[str, Any] = {"engine": engine}
    found |= {name if name == "order" else _key(name): value for name, value in values.items()}
    if chosen.logit_bias:
        found["logit_bias"] = bias_text(dict(chosen.logit_bias))
    return found if chosen.seed is None else {**found, "seed": chosen.seed}


def bias_of(text: str) -> dict[int, float]:
    """Read a logit bias as the address has it; -inf bans a token.

    >>> bias_of("12:1.5,7:-2,9:-inf")
    {7: -2.0, 9: -inf, 12: 1.5}
    """
    pairs = [pair.rpartition(":") for pair in text.split(",") if pair]
    bias = {_token_id(token): float(amount) for token, _colon, amount in pairs}
    return dict(SamplingSettings(logit_bias=bias).logit_bias)


def bias_text(bias: Mapping[int, float]) -> str:
    """Write a logit bias for the address, with every digit.

    >>> bias_text({7: -2.0, 12: 1.5, 13: 1 / 3})
    '7:-2,12:1.5,13:0.3333333333333333'
    """
    return ",".join(f"{token}:{repr(float(amount)).removesuffix('.0')}" for token, amount in sorted(bias.items()))


def pinned_text(pinned: Mapping[str, Any]) -> str:
    """Write pinned settings for the address: those that are not off, as JSON."""
    engine = pinned["engine"]
    usual = {**{name: off(name) for name in numbers()}, "logit_bias": {}, "engine": engines.OWN}
    usual["order"] = list(engines.order(engine))
    told = {name: value for name, value in pinned.items() if value != usual[name]}
    return json.dumps(told or {"engine": engine}, separators=(",", ":"))


def _pinned(given: Mapping[str, Any]) -> dict[str, Any]:
    """Complete pinned settings, from the address or the lab, as the lab's scripts name them."""
    engine = _engine(given.get("engine", engines.OWN))
    return {
        **{name: _number(name, given.get(name, off(name))) for name in numbers()},
        "logit_bias": _bias_for_lab(_bias_told(given.get("logit_bias", {}))),
        "engine": engine,
        "order": list(_order(given.get("order", ()), engine)),
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


def _number(name: str, value: Any) -> Any:
    """Return a knob's value, from the address or the lab, as a slider holds it."""
    field = all_fields()[name]
    if isinstance(field, Ids):
        ids = value.split(",") if isinstance(value, str) else value
        return list(field.check([_token_id(token) for token in ids if token != ""]))
    number = int(value) if field.whole else float(value)
    checked = field.check(number)
    return off(name) if checked is None else checked


def _engine(name: Any) -> str:
    if name not in engines.names():
        raise ValueError(f"engine is {name!r}; it must be one of {', '.join(engines.names())}.")
    return name


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
        message = _("{given} is not valid for {name}; showing {value}.")
        st.text(message.format(given=visible(refused[:40]), name=key, value=shown or _("off")))
