"""Ids of two vocabularies: the same text in a toy vocabulary of words and in the model's own."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.tokenizer.graphemes import shared_groups
from lmcore.tokenizer.word_level import TOY_VOCABULARY, WordLevelTokenizer
from pages.common import page, widgets
from pages.common.text import _, markdown_literal, visible
from pages.live.token_groups import token_groups

TOY = WordLevelTokenizer(TOY_VOCABULARY)
MAX_CHARACTERS = 60

CODE = """
import lmcore
from lmcore.tokenizer.word_level import TOY_VOCABULARY, WordLevelTokenizer

text = {text!r}
print("toy:", WordLevelTokenizer(TOY_VOCABULARY).encode(text, length={length}))
print({name!r} + ":", lmcore.load({name!r}).tokenizer.encode(text).ids)
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    controls, results = page.workbench()
    with controls:
        text = widgets.text("toy_text", _("Text"), "我喜欢猫", max_chars=MAX_CHARACTERS)
        length = widgets.slider(
            "toy_length",
            _("Pad to this length with PAD"),
            0,
            8,
            0,
            help=_("The texts of a batch must have the same length."),
        )
        st.dataframe(
            pd.DataFrame({"id": list(TOY_VOCABULARY.values()), _("toy entry"): list(TOY_VOCABULARY)}), hide_index=True
        )
    found = lm.tokenizer.encode(text)
    toy_ids = TOY.encode(text, length)
    words = {token_id: word for word, token_id in TOY_VOCABULARY.items()}
    with results:
        if not text:
            st.info(_("There is no text here. Type some."))
        left, right = st.columns(2)
        with left:
            st.caption(_("Toy vocabulary (words)"))
            token_groups(
                [words[token_id].encode() for token_id in toy_ids],
                toy_ids,
                [(index, index + 1) for index in range(len(toy_ids))],
                key="toy.groups",
                label=_("Tokens of the toy vocabulary"),
            )
            st.code(str(toy_ids), language=None)
        with right:
            st.caption(_("{model} (byte-level BPE)").format(model=markdown_literal(lm.name)))
            token_groups(
                found.tokens,
                found.ids,
                shared_groups(found.text, found.offsets),
                key="toy.model_groups",
                label=_("Tokens of the model's vocabulary"),
            )
            st.code(str(found.ids), language=None)
        n_unknown = toy_ids.count(TOY_VOCABULARY["UNK"])
        st.markdown(
            _(
                "The toy vocabulary knows four words. There are {n} UNKs here; the text they replace is lost. "
                "Byte-level BPE has no UNK: it spells unknown text in bytes."
            ).format(n=n_unknown)
        )
    st.markdown(
        _(
            "An id means nothing without its vocabulary. On the left is a **toy word-level vocabulary** of six "
            "entries, made for this page; no model uses it. On the right is the vocabulary of {model}."
        ).format(model=markdown_literal(lm.name))
    )
    page.numbers_table(_both(toy_ids, words, found.ids, [visible(token) for token in found.tokens]), "whose-ids")
    page.snippet(CODE.format(text=text, name=lm.name, length=length))


def _both(toy_ids: list[int], words: dict[int, str], ids: list[int], tokens: list[str]) -> pd.DataFrame:
    rows = max(len(toy_ids), len(ids))

    def column(values: list) -> list:
        return [str(value) for value in values] + [""] * (rows - len(values))

    return pd.DataFrame(
        {
            _("position"): range(rows),
            _("toy entry"): column([words[token_id] for token_id in toy_ids]),
            _("toy id"): column(toy_ids),
            _("token"): column(tokens),
            "id": column(ids),
        }
    )
