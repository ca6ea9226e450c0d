"""The presenter view: large type, and of each page only the picture and its controls (style.css)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import streamlit as st

from pages.common import link, share
from pages.common.text import _

KEY = "present"
FONT_SIZE = 18  # pixels, of a figure's text
_SMALLER = 14  # where two lines of text would share the height of one
_MORE_LENGTH = 1.4  # of what holds a larger text: a scale its title, a margin its numbers
_LOW, _MORE_ROOM = 400, 1.2  # pixels of a figure's height below which it is made higher, and how much


def is_on() -> bool:
    """Return whether the session is shown in the presenter view."""
    return bool(st.session_state.get(KEY))


def enlarge(spec: dict[str, Any]) -> None:
    """Make a figure's text larger, with room for it: a low figure is higher, values at bars keep their size."""
    layout = spec["layout"]
    layout["font"] = {"size": FONT_SIZE}
    if layout.get("height", _LOW) < _LOW:
        layout["height"] = min(_LOW, round(layout["height"] * _MORE_ROOM))
    margin = layout.get("margin", {})
    margin["r"] = round(margin.get("r", 0) * _MORE_LENGTH)  # where numbers stand
    for trace in spec["data"]:
        if "lenmode" in (bar := trace.get("colorbar", {})):
            bar["len"] = round(bar["len"] * _MORE_LENGTH)
        if trace["type"] == "bar":
            trace["constraintext"] = "none"
        if layout.get("barmode") == "group" or "text" in trace.get("mode", ""):  # two bars, a cell, rows of a tree
            trace["textfont"] = {**trace.get("textfont", {}), "size": _SMALLER}


def switch() -> None:
    """Show the switch in the sidebar, which the view itself hides: there a button leads out."""
    link.remember(KEY, None, {"1": True, "0": None}.__getitem__)
    st.button(
        _("Presenter view"), key="presenter.enter", icon=":material/present_to_all:", on_click=_turn, args=(True,)
    )


def controls(pages: Sequence[st.Page], page: st.Page, shared: Collection[str]) -> None:
    """Show, in a corner of the view, what stands in the sidebar otherwise: turning pages, sharing, and the way out.

    Args:
        pages: all pages in order.
        page: the one that is shown.
        shared: see `share.show`.
    """
    if not is_on():
        return
    order = [each for each in pages if each.visibility == "visible"]
    place = order.index(page) if page in order else 0
    with st.container(key="presenter-controls", horizontal=True, gap="small"):
        for key, icon, label, to in (
            ("presenter.previous", ":material/chevron_left:", _("Previous page: {title}"), place - 1),
            ("presenter.next", ":material/chevron_right:", _("Next page: {title}"), place + 1),
        ):
            other = order[to] if 0 <= to < len(order) else None
            sentence = label.format(title="" if other is None else other.title)
            pressed = st.button(sentence, key=key, icon=icon, help=sentence, disabled=other is None)  # named, for ears
            if pressed and other is not None:
                st.switch_page(other)
        share.show(shared, key="presenter.share")
        st.button(_("Leave the presenter view"), key="presenter.leave", on_click=_turn, args=(None,))


def _turn(on: bool | None) -> None:
    st.session_state[KEY] = on
