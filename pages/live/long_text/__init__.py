"""A field that a megabyte can be pasted into: the browser lays out only the beginning of a long text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from pages.common.text import _

_FOLDER = Path(__file__).parent
LAID_OUT = 20_000  # characters that the field shows and lets one edit


@st.cache_resource(show_spinner=False)
def _part():  # noqa: ANN202 - streamlit does not name the type of a mounted part
    return st.components.v2.component(
        "explorer_long_text",
        js=(_FOLDER / "long_text.js").read_text(encoding="utf-8"),
        css=(_FOLDER / "long_text.css").read_text(encoding="utf-8"),
        html=(_FOLDER / "long_text.html").read_text(encoding="utf-8"),
    )


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
            "held": _("{n} characters are held; the field shows the first {shown}. Paste again to replace them."),
            "refused": _("This text has {n} characters; at most {limit} are taken, and the rest was left out."),
            "clear": _("Clear the text"),
        },
    }
    _part()(key=key, data=data, on_text_change=changed)
