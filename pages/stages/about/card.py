"""The chosen model's card: what its files say of it, and what in them was not understood."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from lmcore import LanguageModel
from lmcore.model_card import ModelCard
from pages.common.escape import readable
from pages.common.text import _, markdown_literal, visible
from pages.figures.theme import fmt_count

_MOST = 12  # names in a list; a broken file can have thousands


def rows(lm: LanguageModel) -> list[tuple[str, str]]:
    """Return what is known of the model, and its value; lines about which the files say nothing are left out."""
    card = lm.card
    weights = sum(stored.weights for stored in card.storage.values())
    bits = 8 * sum(stored.nbytes for stored in card.storage.values()) / weights if weights else 0.0
    ends = (lm.tokenizer.token_bytes(token_id) for token_id in lm.end_tokens)
    facts = [
        (_("name in the file"), _text(card.title)),
        (_("family"), _text(card.family)),
        (_("file"), _text(card.filename)),
        (_("licence"), _text(card.licence)),
        (_("stored as"), ", ".join(f"{kind} {100 * of.weights / weights:.1f} %" for kind, of in card.storage.items())),
        (_("bits per weight"), f"{bits:.2f}" if weights else ""),
        (_("numbers in the file"), fmt_count(weights) if weights else ""),
        (_("tokens that end a text"), " ".join(markdown_literal(visible(end)) for end in ends)),
    ]
    return [(what, value) for what, value in facts if value]


def show_notes(card: ModelCard) -> None:
    """Say what is unusual about the files."""
    if card.unknown_fields:
        st.markdown(
            _(
                "Fields of the config with unknown meanings were ignored: {names}. None is known to change the numbers."
            ).format(names=_list(f"{name}={value!r:.40}" for name, value in card.unknown_fields.items()))
        )
    if card.without_row:
        st.markdown(
            _("These tokens have no row in the model's table, so no text can hold them: {names}.").format(
                names=_list(f"{token} ({token_id})" for token, token_id in card.without_row.items())
            )
        )
    if card.default_splitting:
        st.markdown(
            _(
                "The file does not say how text is split into words before merging. llama.cpp's default rule is used; "
                "the ids may differ from those the model was trained on."
            )
        )


def _list(given: Iterable[str]) -> str:
    names = list(given)
    more = f" … (+{len(names) - _MOST})" if len(names) > _MOST else ""
    return ", ".join(map(_text, names[:_MOST])) + more


def _text(given: str) -> str:
    return markdown_literal(readable(given)) if given else ""
