"""Keep a long text in the browser's tab, which brings it back after a reload: that begins a new session."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.live.part import part


def kept_text(key: str, name: str, text: str, *, restores: bool, on_kept: Callable[[str], None]) -> None:
    """Keep the text `name`, or let it come back.

    Args:
        key: of the part.
        name: of the text, one for each thing that is kept.
        text: what the tab keeps in place of the last one.
        restores: whether the session has no text yet: the tab gives what it has, and keeps it.
        on_kept: called with what the tab has, before the page runs again. It comes from the browser: check it.
    """

    def take() -> None:
        kept = st.session_state[key].get("kept")
        if isinstance(kept, str):
            on_kept(kept)

    part("kept_text")(key=key, data={"name": name, "text": text, "restores": restores}, on_kept_change=take, height=0)
