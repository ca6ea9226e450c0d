"""Which text is cut: the prompt, or one that is too long for it."""

from __future__ import annotations

import streamlit as st

from pages.common import session, widgets
from pages.common.text import _
from pages.live.long_text import long_text
from pages.stages.tokenization.common import require_text

MAX_CHARACTERS = 2_000_000
SAMPLES = {"letters": ("a", 100_000), "marks": ("^", 1_000_000)}


def choose() -> str:
    """Let the reader choose a text and return it; without a prompt the page says so and stops."""
    names = {
        "prompt": _("the prompt"),
        "pasted": _("a long text"),
        **{name: f"{character} × {n:,}" for name, (character, n) in SAMPLES.items()},
    }
    source = widgets.choice("tokenization.text", _("Text"), list(names), "prompt", format_func=names.__getitem__)
    if source in SAMPLES:
        character, n = SAMPLES[source]
        return character * n
    return pasted("pasted", session.prompt(), MAX_CHARACTERS) if source == "pasted" else require_text()


def pasted(name: str, default: str, max_chars: int) -> str:
    """Show a field for a long text and return the text.

    Args:
        name: which text it is; each is kept by itself.
        default: what is there to begin with.
        max_chars: the most characters that are taken.
    """
    key = f"tokenization.{name}"  # of the session alone: a megabyte does not fit into an address
    text = st.session_state.setdefault(key, default)
    long_text(
        text,
        key=f"{key}.field",
        max_chars=max_chars,
        on_change=lambda changed: st.session_state.update({key: changed}),
        label=_("A long text"),
        hint=_("Paste a text here."),
    )
    return text
