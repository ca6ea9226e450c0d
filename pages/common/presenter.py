"""The presenter view: large type, and of each page only the picture and its controls (style.css)."""

from __future__ import annotations

import streamlit as st

from pages.common import link
from pages.common.text import _

KEY = "present"
FONT_SIZE = 18  # pixels, of a figure's text


def is_on() -> bool:
    """Return whether the session is shown in the presenter view."""
    return bool(st.session_state.get(KEY))


def switch() -> None:
    """Show the switch in the sidebar, which the view itself hides: there a button leads out."""
    link.remember(KEY, None, {"1": True, "0": None}.__getitem__)
    st.button(
        _("Presenter view"), key="presenter.enter", icon=":material/present_to_all:", on_click=_turn, args=(True,)
    )


def way_out() -> None:
    """Show the button that leads out of the view, in a corner."""
    if is_on():
        with st.container(key="presenter-leave"):
            st.button(_("Leave the presenter view"), key="presenter.leave", on_click=_turn, args=(None,))


def _turn(on: bool | None) -> None:
    st.session_state[KEY] = on
