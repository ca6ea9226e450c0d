"""Choosing a token of the vocabulary by its text or its id."""

from __future__ import annotations

import re
from typing import NamedTuple

import streamlit as st

from lmcore import Tokenizer
from pages.common import widgets
from pages.common.text import _, visible
from pages.figures.labels import vocabulary_label


class Parsed(NamedTuple):
    """A token's id, and how it was found: "id", "text", "space" (a space was put before), "first" (of several)."""

    token_id: int
    how: str


def parse(text: str, tokenizer: Tokenizer) -> Parsed | None:
    """Return the token that a text stands for, or None.

    `#42` is the id 42. Any other text is the token of that text, else the token of a space and that text (most
    English words carry their space), else the first of the tokens that the text becomes.
    """
    if match := re.fullmatch(r"#([0-9]{1,9})", text.strip()):
        token_id = int(match[1])
        return Parsed(token_id, "id") if token_id < tokenizer.vocab_size else None
    text = text.replace("␣", " ").replace("⏎", "\n")
    ids = tokenizer.encode(text).ids
    if len(ids) <= 1:
        return Parsed(ids[0], "text") if ids else None
    spaced = tokenizer.encode(" " + text).ids
    return Parsed(spaced[0], "space") if len(spaced) == 1 else Parsed(ids[0], "first")


def token_field(key: str, label: str, tokenizer: Tokenizer, default: int) -> int:
    """Let the reader name a token, and return its id; an empty field means the default."""
    text = widgets.text(
        key, label, help=_("A token's text, or # and its id, such as #42. If empty, the model's ranking chooses it.")
    )
    parsed = parse(text, tokenizer) if text else Parsed(default, "default")
    told = {
        None: _("{given} is not a token here; ids run from #0 to #{last}. Shown: {token}"),
        "default": _("Chosen by the ranking: {token}"),
        "id": _("Shown: {token}"),
        "text": _("Shown: {token}"),
        "space": _("Shown, with a leading space: {token}"),
        "first": _("This text is several tokens. The first is shown: {token}"),
    }[parsed.how if parsed else None]
    token_id = parsed.token_id if parsed else default
    shown = vocabulary_label(token_id, tokenizer.token_bytes(token_id))
    st.text(told.format(given=visible(text[:40]), last=tokenizer.vocab_size - 1, token=shown))
    return token_id
