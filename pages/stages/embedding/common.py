"""What several views share: names of tokens, a token of the whole vocabulary, and how long the table was trained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import streamlit as st
from torch import Tensor

from lmcore import LanguageModel
from lmcore.analysis.embedding.history import embedding_history
from lmcore.analysis.embedding.pca import PrincipalComponents, principal_components
from lmcore.analysis.embedding.similarity import RowComparison, row_lengths, spread
from lmcore.tokenizer.token_search import find_tokens, pieces, single_token
from pages.common import link, widgets
from pages.common.shared import shared
from pages.common.text import _, in_language, visible
from pages.figures.labels import vocabulary_label

DEFAULT_WORDS = {"en": ("cat",), "zh": ("猫", "cat")}  # the first of them that is a token of the model's
_WHOLE_LIST = 5_000  # vocabularies up to this size are offered as one list; larger ones are searched
_FOUND = 60  # tokens offered after a search


def label_of(lm: LanguageModel, token: int) -> str:
    """Return what a token of the vocabulary is called on screen: its text made visible, and its id."""
    return vocabulary_label(token, lm.tokenizer.token_bytes(token))


def labels_of(lm: LanguageModel, tokens: Iterable[int]) -> list[str]:
    """Return what tokens are called on screen."""
    return [label_of(lm, token) for token in tokens]


def trained_table(lm: LanguageModel) -> Tensor:
    """Return the model's own table [V, D]; it is not copied."""
    return lm.model.token_embedding.weight.detach()


def rows_of(table: Tensor, ids: Sequence[int] | Tensor | slice | int) -> Tensor:
    """Return some rows of a table [..., D] in float32; a table of half precision is never copied whole."""
    return table[ids].float()


@shared(entries=8)
def _lengths(name: str, _lm: LanguageModel) -> Tensor:
    return row_lengths(trained_table(_lm))


@shared(entries=64)
def table_std(name: str, steps: int, _table: Tensor) -> float:
    """Return the standard deviation of all numbers of a model's table after some steps; a large table takes a while."""
    return spread(_table)


@shared(entries=16)
def components_of(table_name: str, ids: tuple[int, ...], _table: Tensor) -> PrincipalComponents:
    """Return the principal components of some rows of a table, kept under a name for the table.

    Args:
        table_name: says which table it is: two tables never share one.
        ids: the rows.
        _table: the table.
    """
    return principal_components(_table[list(ids)])


def compare(lm: LanguageModel, vector: Tensor, table: Tensor | None = None) -> RowComparison:
    """Compare a vector with every row of the model's table, whose lengths are known, or of another one."""
    if table is None or table.data_ptr() == trained_table(lm).data_ptr():
        return RowComparison(trained_table(lm), vector, _lengths(lm.name, lm))
    return RowComparison(table, vector)


def default_token(lm: LanguageModel, words: Sequence[str] | None = None) -> int:
    """Return the first of some words that is one token of this model, else the first piece of the first word."""
    words = words or in_language(DEFAULT_WORDS)
    whole = (single_token(lm.tokenizer, word) for word in words)
    return next((token for token in whole if token is not None), pieces(lm.tokenizer, words[0])[0])


def token_picker(key: str, label: str, lm: LanguageModel, words: Sequence[str] | None = None) -> int:
    """Let the reader choose a token of the vocabulary and return its id.

    A vocabulary too large for one list has a field to search it by text or by #id, and a list of what was found.

    Args:
        key: the value's name.
        label: what the token is for.
        lm: whose vocabulary.
        words: the first of them that is one token is the default.
    """
    first = default_token(lm, words)
    if lm.config.vocab_size <= _WHOLE_LIST:
        return widgets.select(
            key, label, range(lm.config.vocab_size), first, format_func=lambda token: label_of(lm, token)
        )
    now = link.remember(key, first, int)
    if not 0 <= now < lm.config.vocab_size:
        link.replace(key, first, now)
        now = first
    text = widgets.text(
        f"{key}.find",
        _("{label}: search").format(label=label),
        max_chars=60,
        help=_("Type text or #id, then press Enter."),
    )
    found = find_tokens(lm.tokenizer, text, _FOUND)
    searched = f"{key}.searched"  # a new search chooses its best find; coming back to the page does not
    if st.session_state.setdefault(searched, text) != text:
        st.session_state[searched] = text
        if found:
            st.session_state[key] = now = found[0]
        else:
            st.caption(_("No token has this text."))
    return widgets.select(
        key, label, list(dict.fromkeys([now, *found])), first, format_func=lambda token: label_of(lm, token)
    )


def steps_picker(lm: LanguageModel) -> tuple[int, dict[int, Tensor]]:
    """Let the reader choose how long the table was trained; return the steps and all tables by steps.

    A model whose training is not on record has one table, and nothing to choose.
    """
    tables = embedding_history(lm) or {0: trained_table(lm)}
    steps = list(tables)
    if len(steps) == 1:
        st.caption(_("There is no record of this model's training, so only the trained table is shown."))
        return steps[0], tables
    chosen = link.remember("steps", steps[-1], int)
    if chosen not in tables:
        link.replace("steps", min(steps, key=lambda known: abs(known - chosen)), chosen)
    st.select_slider(_("Training steps"), steps, st.session_state["steps"], key="steps", persist_state="session")
    given = link.replaced("steps")
    if given is not None:
        st.text(_("There is no table after {given} steps. The nearest one is shown.").format(given=visible(given[:40])))
    return st.session_state["steps"], tables
