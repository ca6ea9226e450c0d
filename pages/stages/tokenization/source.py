"""Which text is cut: the prompt, or one that is too long for it."""

from __future__ import annotations

import streamlit as st

from pages.common import session, widgets
from pages.common.text import _
from pages.live.long_text import Wording, long_text
from pages.stages.tokenization.common import require_text

MAX_CHARACTERS = 2_000_000
SAMPLES = {"letters": ("a", 100_000), "marks": ("^", 1_000_000)}
_PASTED = "tokenization.pasted"  # of the session alone: a megabyte does not fit into an address


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
    return pasted() if source == "pasted" else require_text()


def pasted(max_chars: int = MAX_CHARACTERS) -> str:
    """Show the field for a long text and return the text; to begin with it is the prompt."""
    text = st.session_state.setdefault(_PASTED, session.prompt())[:max_chars]
    long_text(
        text,
        key="tokenization.long",
        max_chars=max_chars,
        on_change=lambda changed: st.session_state.update({_PASTED: changed}),
        wording=Wording(
            label=_("A long text"),
            hint=_("Paste a text here."),
            held=_("{n} characters are held; the field shows the first {shown}. Paste again to replace them."),
            refused=_("This text has {n} characters; at most {limit} are taken, and the rest was left out."),
            clear=_("Clear the text"),
        ),
    )
    return text
