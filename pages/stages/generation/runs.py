"""The generations of a session: one for each prompt and model, kept while the reader looks elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import streamlit as st

from lmcore import Encoding, LanguageModel
from lmcore.generation.run import GenerationRun
from lmcore.generation.text_run import TextRun
from pages.common import conversation, session
from pages.stages.generation import stops

_RUNS = "generation.runs"  # (model, prompt, whether a template wrote it) -> its run, the latest last
_CURRENT = "generation.current"
SELECTED = "generation.selected"  # the node whose distribution is shown, "next", or None for the latest
MAX_RUNS = 12

Key = tuple[str, str, bool]
Run = TypeVar("Run", bound=TextRun[Any])


def current(lm: LanguageModel, prompt: Encoding) -> GenerationRun:
    """Return the run of this prompt and model: a new one, or the one the reader left."""
    key = (lm.name, prompt.text, isinstance(prompt.text, conversation.RenderedText))
    if st.session_state.get(_CURRENT) != key:
        for run in st.session_state.get(_RUNS, {}).values():
            run.rest()
        st.session_state[_CURRENT] = key
        st.session_state[SELECTED] = None

    def make() -> GenerationRun:
        return GenerationRun(lm, prompt.ids, stops.ids_of_prompt(lm), session.forward_lock(), session.kept())

    return latest(_RUNS, key, make)


def latest(place: str, key: Hashable, make: Callable[[], Run]) -> Run:
    """Return the run under a key, made where there is none, and forget those that hold nothing or are too many.

    Args:
        place: where the session has the runs, by key, the latest last.
        key: all that a run is of.
        make: makes it.
    """
    runs: dict[Hashable, Run] = st.session_state.setdefault(place, {})
    runs[key] = runs.pop(key) if key in runs else make()
    for old in list(runs)[:-1]:
        if not runs[old].tree.root.children or len(runs) > MAX_RUNS:
            del runs[old]
    return runs[key]


def earlier() -> list[tuple[Key, GenerationRun]]:
    """Return the other runs of the session, the latest first."""
    return [(key, run) for key, run in reversed(st.session_state[_RUNS].items()) if key != st.session_state[_CURRENT]]


def kept() -> list[tuple[Key, GenerationRun]]:
    """Return the runs of the session that hold at least one token, the latest first."""
    found = st.session_state.get(_RUNS, {})
    return [(key, run) for key, run in reversed(found.items()) if run.tree.root.children]


def bring_back(key: Key) -> None:
    """Go back to the prompt and model of an earlier run, as a callback of a button."""
    st.session_state["model"] = key[0]
    conversation.bring_back(key[1])
