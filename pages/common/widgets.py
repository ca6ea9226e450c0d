"""The parts a page is made of, and widgets whose values live in the session and in the address.

Every widget here is called with the name of its value first. That name is its key, its name in the address, and the
same on every page that shows it: "layer", "head" and "position" follow the reader from page to page.

A widget's default is always the value that the session has. When runs follow each other quickly a browser can take a
widget for gone and draw it anew; it then begins with the default, and tells the server so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from pages.common import link, session
from pages.common.text import _, visible
from pages.live.token_strip import token_strip

T = TypeVar("T", str, int, float)
Number = TypeVar("Number", int, float)
_LIMITS = "slider_limits"
"""Where the session keeps the limits and the step that each slider had last."""


def slider(
    key: str,
    label: str,
    low: Number,
    high: Number,
    default: Number,
    *,
    step: Number | None = None,
    format: str | None = None,
    help: str | None = None,
    disabled: bool = False,
) -> Number:
    """Show a slider and return its value, an int or a float as `default` is.

    A value out of range, from a link or because the range became smaller, is moved to the nearest end and said.
    With one possible value there is nothing to slide, and nothing is shown.
    """
    now = _remember_number(key, low, high, default)
    if low >= high:
        return low
    _keep_through_another_range(key, (low, high, step))
    value = st.slider(
        label,
        low,
        high,
        now,
        step=step,
        format=format,
        key=link.widget_key(key),
        help=help,
        disabled=disabled,
        on_change=link.take_over,
        args=(key,),
        persist_state="session",
    )
    _say_replaced(key, low, high)
    return value


def number(
    key: str,
    label: str,
    low: Number,
    high: Number,
    default: Number,
    *,
    step: Number | None = None,
    help: str | None = None,
) -> Number:
    """Show a field for a number from low to high and return its value, an int or a float as `default` is."""
    now = _remember_number(key, low, high, default)
    value = st.number_input(
        label,
        low,
        high,
        now,
        step=step,
        key=link.widget_key(key),
        help=help,
        on_change=link.take_over,
        args=(key,),
        persist_state="session",
    )
    _say_replaced(key, low, high)
    return value


def select(
    key: str,
    label: str,
    options: Sequence[T],
    default: T,
    *,
    format_func: Callable[[Any], str] = str,
    help: str | None = None,
    with_label: bool = True,
) -> T:
    """Show a list to choose one option from and return the option; the address has its `str`.

    Without its label it takes one line less; screen readers have the label all the same.
    """
    now = _remember_option(key, options, default)
    value = st.selectbox(
        label,
        options,
        options.index(now),
        format_func=format_func,
        key=link.widget_key(key),
        help=help,
        on_change=link.take_over,
        args=(key,),
        persist_state="session",
        label_visibility="visible" if with_label else "collapsed",
    )
    _say_replaced(key)
    return value


def choice(
    key: str,
    label: str,
    options: Sequence[T],
    default: T,
    *,
    format_func: Callable[[Any], str] = str,
    help: str | None = None,
    with_label: bool = True,
) -> T:
    """Show a few options side by side, one of them chosen, and return it; for more than about five use `select`.

    Without its label it takes one line less; screen readers have the label all the same.
    """
    now = _remember_option(key, options, default)
    value = st.segmented_control(
        label,
        options,
        default=now,
        format_func=format_func,
        key=key,
        help=help,
        required=True,
        persist_state="session",
        label_visibility="visible" if with_label else "collapsed",
    )
    _say_replaced(key)
    return default if value is None else value


def views(key: str, titles: Mapping[str, str], first: int, beside: Callable[[], None] | None = None) -> str:
    """Show a page's views as tabs and return the chosen one's name.

    Args:
        key: the value's name.
        titles: the views by name, in order; a first visit sees the first of them.
        first: how many are tabs; the others stand in a menu behind them, but for the one that is looked at.
        beside: shows what else belongs to the page, at the end of the line.
    """
    names = list(titles)
    chosen = _remember_option(key, names, names[0])
    tabs = [name for name in names if name in names[:first] or name == chosen]
    with st.container(key="views", horizontal=True, vertical_alignment="center", gap="small"):
        st.segmented_control(
            _("View"),
            tabs,
            default=chosen,
            format_func=titles.__getitem__,
            key=link.widget_key(key),
            required=True,
            label_visibility="collapsed",
            on_change=link.take_over,
            args=(key,),
            persist_state="session",
        )
        more = [name for name in names if name not in tabs]
        if more:
            with st.popover(
                _("More"), type="tertiary", key=f"{key}.more.{chosen}"
            ):  # a new one, closed, after a choice
                for name in more:
                    st.button(
                        titles[name],
                        key=f"{key}.more.{name}",
                        type="tertiary",
                        width="stretch",
                        on_click=link.assign,
                        args=({key: name},),
                    )
        if beside is not None:
            st.space("stretch")
            beside()
    _say_replaced(key)
    return chosen


def toggle(key: str, label: str, default: bool = False, *, help: str | None = None) -> bool:
    """Show a switch and return whether it is on; the address has 1 or 0."""
    now = link.remember(key, default, {"1": True, "0": False}.__getitem__)
    value = st.toggle(label, now, key=key, help=help, persist_state="session")
    _say_replaced(key)
    return value


def text(
    key: str,
    label: str,
    default: str = "",
    *,
    max_chars: int = 200,
    help: str | None = None,
    height: int | None = None,
) -> str:
    """Show a field for one line of text, or with a height in pixels for several, and return the text."""
    value = link.remember(key, default)
    if len(value) > max_chars:
        link.replace(key, value[:max_chars], value[:20] + "…")
        value = st.session_state[key]
    more: dict[str, Any] = {"max_chars": max_chars, "help": help, "persist_state": "session"}
    if height is None:
        value = st.text_input(label, value, key=key, **more)
    else:
        value = st.text_area(
            label, value, key=link.widget_key(key), height=height, on_change=link.take_over, args=(key,), **more
        )
    _say_replaced(key)
    return value


def layer_picker(key: str = "layer") -> int:
    """Let the reader choose a block of the model and return its index, from 0 as in the trace's names."""
    return slider(key, _("Block"), 0, session.language_model().config.n_layers - 1, 0)


def head_picker(key: str = "head") -> int:
    """Let the reader choose an attention head and return its index, from 0."""
    return slider(key, _("Head"), 0, session.language_model().config.n_heads - 1, 0)


def position_picker(key: str = "position", *, label: str | None = None, strength: Sequence[float] | None = None) -> int:
    """Show the prompt's tokens, let the reader choose one, and return its position; the last one to begin with.

    Args:
        key: the value's name.
        label: what is chosen, shown above the tokens.
        strength: 0..1 a token, how filled its chip is.
    """
    found = session.require_tokens()
    return token_picker(found.tokens, found.ids, key, label=label, strength=strength)


def token_picker(
    tokens: Sequence[bytes | str],
    ids: Sequence[int],
    key: str = "position",
    *,
    label: str | None = None,
    strength: Sequence[float] | None = None,
) -> int:
    """Show tokens, let the reader choose one, and return its position; arguments as in `position_picker`."""
    last = len(ids) - 1
    position = link.remember(key, None, int)
    if position is not None and not 0 <= position <= last:
        link.replace(key, min(max(position, 0), last), position)
        position = st.session_state[key]
    st.caption(label or _("Position: choose a token"))
    token_strip(
        tokens,
        ids,
        key=f"{key}.strip",
        label=label or _("Position: choose a token"),
        selected=last if position is None else position,
        on_select=lambda chosen: st.session_state.update({key: chosen}),
        strength=strength,
    )
    _say_replaced(key, 0, last)
    return last if position is None else position


def _remember_number(key: str, low: Number, high: Number, default: Number) -> Number:
    value = link.remember(key, default, int if isinstance(default, int) else _finite)
    if not low <= value <= high:
        link.replace(key, min(max(value, low), high), value)
    return type(default)(st.session_state[key])


def _keep_through_another_range(key: str, limits: tuple[Number, Number, Number | None]) -> None:
    """Give a slider its value anew when its range is another one.

    Streamlit takes a slider with another range for a new one, and starts it at its low end, or at what it was two
    ranges ago, whatever the session's value of this key is.
    """
    known = st.session_state.setdefault(_LIMITS, {})
    if known.get(key, limits) != limits:
        st.session_state[link.widget_key(key)] = st.session_state[key]
    known[key] = limits


def _remember_option(key: str, options: Sequence[T], default: T) -> T:
    by_text = {str(option): option for option in options}
    if st.session_state.get(key, default) is None:  # a run that was cut short left the widget without a value
        del st.session_state[key]  # the address still has it
    value = link.remember(key, default, by_text.__getitem__)
    if value not in options:
        link.replace(key, default, value)
        value = default
    return value


def _finite(text: str) -> float:
    value = float(text)
    if value != value:
        raise ValueError("not a number")
    return value


def _say_replaced(key: str, low: float | None = None, high: float | None = None) -> None:
    given = link.replaced(key)
    if given is None:
        return
    value = link.as_text(st.session_state[key])
    if low is None:
        message = _("{given} is not a choice here; showing {value}.")
    else:
        message = _("{given} is not a number from {low} to {high}; showing {value}.")
    # st.text: what was given comes from the address, and is shown as it is.
    st.text(message.format(given=visible(given[:40]), low=low, high=high, value=value))
