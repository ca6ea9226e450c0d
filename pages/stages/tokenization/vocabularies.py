"""The vocabularies a reader can lay side by side: choosing, loading and applying them, each once for all sessions."""

from __future__ import annotations

import time
from dataclasses import dataclass

import streamlit as st

from lmcore.loading.vocabulary_files import (
    BUILTIN,
    BYTES,
    CHARACTERS,
    SCORED,
    available_vocabularies,
    load_vocabulary,
)
from lmcore.tokenizer.cuts import CutMeasures, Cuts, Landmarks, measure
from lmcore.tokenizer.vocabularies import Vocabulary
from pages.common import link
from pages.common.shared import shared
from pages.common.text import _, visible
from pages.stages.tokenization import trained

MOST = 4
TRAINED = "trained here"  # of no file
_KEY = "vocabularies"


@dataclass(frozen=True)
class Examined:
    """A text under a vocabulary. Shared between sessions: never change its arrays."""

    cuts: Cuts
    measured: CutMeasures
    seconds: float


@shared(entries=6, doing="Reading the vocabulary · 正在读取词表")
def load(name: str) -> Vocabulary:
    """Return a vocabulary by name; ValueError as `load_vocabulary`."""
    return load_vocabulary(name)


@shared(entries=4)
def landmarks(text: str) -> Landmarks:
    """Return where the characters and words of a text lie."""
    return Landmarks.of(text)


def examine(name: str, text: str, vocabulary: Vocabulary, special_tokens: bool = False) -> Examined:
    """Return a text's tokens and how the vocabulary fares on it, kept by the name of one that does not change."""
    return (_examined if name == TRAINED else _kept)(name, text, special_tokens, vocabulary)


@shared(entries=12)
def _kept(name: str, text: str, special_tokens: bool, _vocabulary: Vocabulary) -> Examined:
    return _examined(name, text, special_tokens, _vocabulary)


def _examined(_name: str, text: str, special_tokens: bool, vocabulary: Vocabulary) -> Examined:
    started = time.perf_counter()
    cuts = vocabulary.cut(text, special_tokens)
    seconds = time.perf_counter() - started
    return Examined(cuts, measure(landmarks(text), cuts), seconds)


def title(name: str) -> str:
    """Return what a vocabulary is called on screen."""
    known = {
        BUILTIN: _("built-in BPE"),
        CHARACTERS: _("characters"),
        BYTES: _("bytes"),
        SCORED: _("built-in pieces, scored"),
        TRAINED: _("trained here"),
        "smollm2-135m-instruct": "SmolLM2",
        "gemma-3-270m": "Gemma 3",
    }
    return known.get(name, visible(name).replace("␣", " "))


def picker() -> dict[str, Vocabulary]:
    """Let the reader choose up to four vocabularies and return those that could be read, in the order chosen."""
    known = available_vocabularies()
    installed = [*(name for name, there in known.items() if there), TRAINED]
    chosen = link.remember(_KEY, _first(installed), lambda text: text.split(",") if text else [])
    fitting = [name for name in dict.fromkeys(chosen) if name in installed][:MOST]
    if fitting != chosen:
        link.replace(_KEY, fitting, link.as_text(chosen))
    st.multiselect(
        _("Vocabularies, at most {n}").format(n=MOST),
        installed,
        fitting,
        key=_KEY,
        format_func=title,
        max_selections=MOST,
        persist_state="session",
        help=_(
            "Also available: every tokenizer.json and GGUF file in the folder that the environment variable "
            "GLASS_BOX_LM_MODELS names."
        ),
    )
    if link.replaced(_KEY) is not None:
        st.text(_("Some vocabularies in this link are not available here and were left out."))
    missing = [title(name) for name, there in known.items() if not there]
    if missing:
        st.caption(_("Not installed: {names}.").format(names=", ".join(missing)))
    found = {}
    for name in st.session_state[_KEY]:
        try:
            found[name] = trained.vocabulary() if name == TRAINED else load(name)
        except ValueError as error:
            st.error(_("The vocabulary {name} could not be read.").format(name=title(name)))
            st.code(str(error), language=None, wrap_lines=True)
    return found


def _first(installed: list[str]) -> list[str]:
    preferred = [BUILTIN, "smollm2-135m-instruct", "gemma-3-270m", BYTES, CHARACTERS]
    return [name for name in preferred if name in installed][:MOST]
