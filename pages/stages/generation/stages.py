"""The sampler's stages beside a text: the common knobs, and every other stage from a menu.

The stages, their titles, ranges and stops are those of the sampling lab, and so are the knobs' values: what is set on
one page holds on the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lmcore.sampling import PRESETS
from lmcore.sampling.registry import get
from pages.common import link, widgets
from pages.common.text import _, visible
from pages.live.sampling_lab.labels import stages as described
from pages.stages.sampling import knobs

COMMON = ("temperature", "top_k", "top_p", "min_p")
"""The knobs that always stand beside the text; what else a stage has comes from the menu."""

_ADDED = "generation.stages"  # the stages from the menu, in the order they were added; some may be off by now
_WRONG = "generation.wrong_knobs"  # knob -> what was given that its stage does not take
_WINDOW = "penalty_last_n"  # one number that three stages share

Told = dict[str, Any]  # a stage or a field as `described` tells it


def common(vocab_size: int) -> dict[str, float]:
    """Show the common knobs and return their values."""
    return {
        "temperature": widgets.slider(
            "temperature", _("Temperature"), 0.0, 2.0, 1.0, step=0.05, help=_("0 is greedy.")
        ),
        "top_k": top_k("top_k", "top-k", vocab_size),
        "top_p": widgets.slider("top_p", "top-p", 0.0, 1.0, 1.0, step=0.01, help=_("1 is off; 0 keeps one token.")),
        "min_p": widgets.slider("min_p", "min-p", 0.0, 1.0, 0.0, step=0.01, help=_("0 is off.")),
    }


def top_k(key: str, label: str, vocab_size: int) -> int:
    """Show a slider on the lab's scale and a field for any number, and return k; 0 is off."""
    slide, number = st.columns([3, 2], vertical_alignment="bottom")
    with number:
        k = widgets.number(key, label.replace("top-k", "k"), 0, vocab_size, 0, help=_("0 is off."))
    _slider(slide, key, label, get("top_k").fields[0].stops(vocab_size), k)
    return k


def others(vocab_size: int) -> None:
    """Show every other stage that is on or was added, and the menu of those that are neither."""
    told = {stage["name"]: stage for stage in map(_beyond_common, described(vocab_size)) if stage["fields"]}
    on = [name for name, stage in told.items() if any(_is_on(field) for field in stage["fields"])]
    kept = [name for name in st.session_state.get(_ADDED, []) if name in told]
    st.session_state[_ADDED] = shown = [*kept, *(name for name in on if name not in kept)]
    active = knobs.settings(vocab_size).active
    for name in shown:
        _stage(told[name], lacking=name in on and name not in active)
    if any(field.name == _WINDOW for stage in shown for field in get(stage).fields):
        widgets.number(_WINDOW, _("Penalties count only the last n tokens (0: all)"), 0, 2**31 - 1, 0)
    rest = [name for name in told if name not in shown]
    place = f"generation.add.{len(shown)}"  # a new one after each choice, so that it begins empty
    st.selectbox(
        _("Add a stage"),
        rest,
        index=None,
        placeholder=_("Add a stage"),
        format_func=lambda name: told[name]["title"],
        key=place,
        label_visibility="collapsed",
        on_change=lambda: _add(told[st.session_state[place]]) if st.session_state[place] else None,
    )


def rules(vocab_size: int) -> None:
    """Say by whose rules tokens are drawn, and what these refuse, where they are not lmcore's own."""
    engine = st.session_state["engine"]
    if (refusal := knobs.refusal(vocab_size)) is not None:
        st.info(refusal + " " + _("Until then tokens are drawn by lmcore's own rules."))
    elif engine in PRESETS:
        st.caption(_("By the rules of {engine}, chosen on the sampling page.").format(engine=PRESETS[engine].title))
    if st.session_state["order"] is not None:
        st.caption(_("In the order of stages set on the sampling page."))


def take_over() -> None:
    """Take what the widgets hold, before a callback reads the knobs."""
    link.take_over(*COMMON, _WINDOW)
    for name in st.session_state.get(_ADDED, []):
        for field in get(name).fields:
            _take(field.name)


def _stage(stage: Told, lacking: bool) -> None:
    name = stage["name"]
    with st.container(border=True, gap="small", key=f"generation.stage.{name}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{stage['title']}**", width="stretch")
            st.button(
                _("Remove {stage}").format(stage=stage["title"]),
                key=f"generation.remove.{name}",
                icon=":material/close:",
                type="tertiary",
                on_click=_remove,
                args=(stage,),
            )
        state = _("It carries a state from token to token.") if get(name).start is not None else ""
        st.caption(f"{stage['help']} {state}")
        if lacking:
            st.caption(_("This engine has no such stage: it changes nothing."))
        for field in stage["fields"]:
            _field(field, field["title"] or stage["title"])


def _field(field: Told, label: str) -> None:
    """Show a knob: a slider on the lab's scale and a field for any number, or a line of text for ids."""
    name, place, is_text = field["name"], _place(field["name"]), field["kind"] != "number"
    wrong = st.session_state.get(_WRONG, {})
    value = _value(name)
    if is_text:
        _show(place, wrong.get(name, value))  # what was typed is not lost
        allowed = (
            _("id:amount, separated by commas; -inf bans a token")
            if name == "logit_bias"
            else _("ids, separated by commas")
        )
        st.text_input(label, key=link.widget_key(place), placeholder=allowed, on_change=_take, args=(name,))
    else:
        allowed, kind = field["allowed"], int if field["whole"] else float
        means = field["empty"] or (_("default") if field["on"] is None else _("off"))
        hint = _("{allowed}; {off}: {means}").format(allowed=allowed, off=f"{field['off']:g}", means=means)
        _show(place, kind(value))
        slide, number = st.columns([3, 2], vertical_alignment="bottom") if field["stops"] else (None, st)
        stops = [stop for stop in field["stops"] if stop != field["off"]]
        number.number_input(
            label,
            min_value=None if field["low"] is None else kind(field["low"]),
            max_value=None if field["high"] is None else kind(field["high"]),
            step=kind(min((b - a for a, b in pairwise(stops)), default=1)),
            format="%d" if field["whole"] else "%g",
            key=link.widget_key(place),
            help=hint,
            label_visibility="collapsed" if field["stops"] else "visible",  # the slider beside it says what it is
            on_change=_take,
            args=(name,),
        )
        if slide is not None:
            _slider(slide, place, label, field["stops"], value, hint, lambda: _take(name))
    if name in wrong:
        st.text(
            _("{given} does not fit; allowed: {allowed}.").format(given=visible(str(wrong[name])[:40]), allowed=allowed)
        )


def _slider(
    column: DeltaGenerator,
    key: str,
    label: str,
    stops: Sequence[float],
    value: float,
    help: str | None = None,
    then: Callable[[], object] = lambda: None,
) -> None:
    """Show a slider over stops that moves the number under `key`; 0 behind larger ones is off."""
    place = f"{key}.place"

    def take() -> None:
        link.take_over(place)
        link.assign({key: st.session_state[place]})
        then()

    off_last = stops[-1] == 0
    _show(place, min(stops, key=lambda stop: abs((stop or math.inf) - value) if value or not off_last else stop))
    column.select_slider(
        label,
        stops,
        key=link.widget_key(place),
        format_func=lambda stop: _("off") if off_last and not stop else f"{stop:,}",
        help=help,
        on_change=take,
    )


def _show(place: str, value: Any) -> None:
    """Let the widget of a place show a value."""
    if st.session_state.get(place) != value:
        link.assign({place: value})


def _take(name: str) -> None:
    """Set a knob to what its widget holds; what its stage does not take is not taken over."""
    place = _place(name)
    link.take_over(place)
    if place in st.session_state:
        given, wrong = st.session_state[place], st.session_state.setdefault(_WRONG, {})
        wrong.pop(name, None)
        if not knobs.put(name, given):
            wrong[name] = given


def _add(stage: Told) -> None:
    st.session_state[_ADDED] = [*st.session_state.get(_ADDED, []), stage["name"]]
    first = stage["fields"][0]
    if first["on"] is not None:
        knobs.put(first["name"], first["on"])


def _remove(stage: Told) -> None:
    st.session_state[_ADDED] = [name for name in st.session_state[_ADDED] if name != stage["name"]]
    for field in stage["fields"]:
        knobs.put(field["name"], "" if field["kind"] != "number" else field["off"])


def _beyond_common(stage: Told) -> Told:
    """Return a stage without the knobs that always stand there, named by what is left."""
    fields = [field for field in stage["fields"] if field["name"] not in COMMON]
    part = len(fields) < len(stage["fields"]) and fields
    return {**stage, "fields": fields, "title": f"{stage['title']}: {fields[0]['title']}" if part else stage["title"]}


def _is_on(field: Told) -> bool:
    """Whether a field is away from its off value."""
    return _value(field["name"]) != ("" if field["kind"] != "number" else field["off"])


def _place(name: str) -> str:
    return f"generation.knob.{name}"


def _value(name: str) -> Any:
    """Return a knob's value as a widget here holds it: ids as text."""
    value = knobs.value(name)
    return value if isinstance(value, (int, float)) else link.as_text(value or "")
