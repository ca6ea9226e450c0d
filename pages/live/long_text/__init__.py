"""A field that a megabyte can be pasted into: the browser lays out only the beginning of a long text."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.common.text import _
from pages.live.part import part

LAID_OUT = 20_000  # characters that the field shows and lets one edit


def long_text(
    text: str,
    *,
    key: str,
    label: str,
    hint: str,
    max_chars: int,
    on_change: Callable[[str], None],
    rows: int = 4,
) -> None:
    """Show the field.

    Args:
        text: the text held so far.
        key: unique on the page.
        label: what the field is, for screen readers.
        hint: what an empty field says.
        max_chars: characters beyond this are left out, and that is said.
        on_change: called with the new text, before the page runs again.
        rows: the field's height in lines.
    """

    def changed() -> None:
        value = st.session_state[key].get("text")
        if isinstance(value, str):
            # Half of a surrogate pair, which a browser's string may hold, has no UTF-8.
            on_change(value[:max_chars].encode("utf-8", "replace").decode("utf-8"))

    data = {
        "beginning": text[:LAID_OUT],
        "length": len(text),
        "limit": max_chars,
        "laid_out": LAID_OUT,
        "rows": rows,
        "wording": {
            "label": label,
            "hint": hint,
            "held": _("{n} characters are stored; the field shows the first {shown}. Paste again to replace them."),
            "refused": _("This text has {n} characters. Only the first {limit} are used; the rest was left out."),
            "clear": _("Clear the text"),
        },
    }
    part("long_text")(key=key, data=data, on_text_change=changed)
