"""Controls that several views share: a token of the whole vocabulary, and how long the table was trained."""

from __future__ import annotations

import streamlit as st
from torch import Tensor

from lmcore import LanguageModel
from lmcore.analysis.embedding_history import embedding_history
from pages.common import link, widgets
from pages.common.text import _, visible
from pages.figures.labels import vocabulary_label


def labels_of(lm: LanguageModel) -> list[str]:
    """Return what each token of the vocabulary is called on screen: its text made visible, and its id."""
    return [vocabulary_label(token, lm.tokenizer.token_bytes(token)) for token in range(lm.config.vocab_size)]


def token_picker(key: str, label: str, lm: LanguageModel, labels: list[str], default: str) -> int:
    """Let the reader choose a token of the vocabulary and return its id; `default` is a text that starts with one."""
    first = lm.tokenizer.encode(default).ids[0]
    return widgets.select(key, label, range(lm.config.vocab_size), first, format_func=labels.__getitem__)


def steps_picker(lm: LanguageModel) -> tuple[int, dict[int, Tensor]]:
    """Let the reader choose how long the table was trained; return the steps and all tables by steps.

    A model whose training is not on record has one table, and nothing to choose.
    """
    tables = embedding_history(lm) or {0: lm.model.token_embedding.weight.detach()}
    steps = list(tables)
    if len(steps) == 1:
        st.caption(_("How this model was trained is not on record, so only its trained table is shown."))
        return steps[0], tables
    chosen = link.remember("steps", steps[-1], int)
    if chosen not in tables:
        link.replace("steps", min(steps, key=lambda known: abs(known - chosen)), chosen)
    st.select_slider(_("Steps trained"), steps, key="steps", persist_state="session")
    given = link.replaced("steps")
    if given is not None:
        st.text(_("There is no table after {given} steps; showing the nearest.").format(given=visible(given[:40])))
    return st.session_state["steps"], tables
