"""What the reader has chosen on the logits page, handed to its sections."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st
from torch import Tensor

from lmcore import Encoding, LanguageModel
from lmcore.analysis import Normaliser, Scores, score
from pages.common.session import grammar
from pages.figures.labels import vocabulary_label
from pages.stages.blocks.chosen import TextPosition

_SCORES = "logits.scores"  # what was scored last: (model, text) and its scores


@dataclass(frozen=True)
class Chosen(TextPosition):
    """The logits and scores of the text, and two tokens to follow by their ids."""

    logits: Tensor
    scores: Scores | None
    target: int
    rival: int

    @property
    def normaliser(self) -> Normaliser | None:
        """What turns the logits into probabilities, when the scores have it."""
        return None if self.scores is None else self.scores.normaliser

    def name(self, token_id: int) -> str:
        """Return the label of a token of the vocabulary."""
        return vocabulary_label(token_id, self.lm.tokenizer.token_bytes(token_id))


def scores_of(lm: LanguageModel, found: Encoding, logits: Tensor) -> Scores | None:
    """Return the scores of the text, computed once; None for a single token, which nothing predicts."""
    if len(found.ids) < 2:
        return None
    key = (lm.name, tuple(found.ids))
    if st.session_state.get(_SCORES, (None,))[0] != key:
        st.session_state[_SCORES] = (key, score(logits, found.ids))
    return st.session_state[_SCORES][1]


def grammar_probs(chosen: Chosen) -> np.ndarray | None:
    """Return the grammar's distribution after the chosen position, or None outside its language."""
    truth = grammar(chosen.lm)
    return None if truth is None else truth.next_token_probs(chosen.found.ids[: chosen.position + 1])
