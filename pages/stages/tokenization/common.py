"""What several views of the tokenization page share."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from lmcore import Encoding, LanguageModel
from lmcore.tokenizer.graphemes import shared_groups
from pages.common import conversation, engines, link, page, served_conversation, session, widgets
from pages.common.text import _, readable, visible

MAX_DRAWN = 300  # more chips than this are a wall, not a picture; the table and its download have all


def require_text() -> str:
    """Return the prompt, or say why there is none and stop. It may be longer than the context here."""
    engine = engines.chosen()
    if engine is not None and conversation.is_on() and (why := served_conversation.refusal(engine)):
        st.text(readable(why))  # a template, or a server, says what it likes
        link.stop()
    text = session.prompt()
    if not text or len(text) > session.MAX_CHARACTERS:
        session.require_tokens()  # says which, and stops
    return text


def composed(text: str, back: str) -> None:
    """Say why a text came back as another one, where composing its characters is the reason."""
    if back != text and back == unicodedata.normalize("NFC", text):
        st.caption(
            _(
                "The tokenizer first composes characters (Unicode NFC): a letter and the accent that follows it become "
                "one character, which looks the same but has other bytes."
            )
        )


def drawn_groups(found: Encoding) -> list[tuple[int, int]]:
    """Return the groups of tokens that share a character, as many as are drawn, and say so when some are not."""
    groups = [group for group in shared_groups(found.text, found.offsets) if group[1] <= MAX_DRAWN]
    shown = groups[-1][1] if groups else 0
    if shown < len(found):
        st.caption(
            _("The first {shown:,} of {n:,} tokens are drawn; the table has all of them.").format(
                shown=shown, n=len(found)
            )
        )
    return groups


def token_table(found: Encoding) -> pd.DataFrame:
    """Return one row per token: id, text, bytes, where it lies in the text, and its sizes."""
    return pd.DataFrame(
        {
            _("position"): range(len(found)),
            "id": found.ids,
            _("token"): [visible(token) for token in found.tokens],
            _("bytes (hex)"): [token.hex(" ") for token in found.tokens],
            _("start"): [start for start, _end in found.offsets],
            _("end"): [end for _start, end in found.offsets],
            _("characters touched"): [visible(found.text[start:end]) for start, end in found.offsets],
            _("bytes"): [len(token) for token in found.tokens],
        }
    )


def special_strings() -> str:
    """Let the reader choose how special strings in a text are read, "text" or "control", and return it."""
    return widgets.choice(
        "special_strings",
        _("Treat special strings"),
        ["text", "control"],
        "text",
        format_func={"text": _("text"), "control": _("control tokens")}.__getitem__,
        help=_("In a prompt that is a text they are always text; in a conversation they become control tokens."),
    )


def results_table(lm: LanguageModel, text: str) -> pd.DataFrame:
    """Return both readings of a text with special strings: as text, and as control tokens."""
    both = {
        _("as text"): lm.tokenizer.encode(text),
        _("as control tokens"): lm.tokenizer.encode(text, special_tokens=True),
    }
    return pd.DataFrame(
        {
            _("special strings"): list(both),
            _("tokens"): [len(found) for found in both.values()],
            _("control tokens"): [
                sum(token_id in lm.tokenizer.special_tokens.values() for token_id in found.ids)
                for found in both.values()
            ],
            "ids": [", ".join(map(str, found.ids)) for found in both.values()],
            _("pieces"): [" | ".join(map(visible, found.tokens)) for found in both.values()],
        }
    )


def follow(sentence: str, state: Mapping[str, Any]) -> None:
    """Show a link to the embedding page that sets values there."""
    page.follow(page.Suggestion(sentence, "embedding", state))
