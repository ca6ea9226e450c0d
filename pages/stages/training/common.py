"""What the views share: the sentence, and which of its tokens are predicted."""

from __future__ import annotations

import streamlit as st

from pages.common import link, session, widgets
from pages.common.text import _, markdown_literal

EXAMPLE = "患者服用华法林后出现黑便"


def sentence() -> tuple[str, list[int]]:
    """Let the reader choose the sentence and return its text and ids; the last token is the target."""
    source = widgets.choice(
        "training.sentence",
        _("Sentence"),
        ["example", "prompt"],
        "example",
        format_func={"example": "… → 黑便", "prompt": _("my prompt")}.__getitem__,
        help=_("The last token is the one to be predicted from those before it."),
    )
    if source == "prompt":
        text, found = session.prompt(), session.require_tokens(2)
    else:
        text, found = EXAMPLE, session.encoding(EXAMPLE)
    ids = list(found.ids)
    if len(ids) < 2:
        st.info(_("This model's tokenizer makes one token of the example; type a longer prompt."))
        link.stop()
    before = b"".join(found.tokens[:-1])
    st.markdown(f"{markdown_literal(before)} → {markdown_literal(found.tokens[-1])}")
    return text, ids


def last_only_switch() -> bool:
    """Let the reader choose whether the last token alone is scored."""
    return widgets.toggle(
        "training.last_only", _("Score the last token only"), True, help=_("Off: every token is predicted and scored.")
    )
