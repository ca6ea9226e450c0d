"""The interventions a reader has made: a list in the address, with undo and redo in the session."""

from __future__ import annotations

import streamlit as st

from lmcore import ModelConfig
from lmcore.analysis import check_intervention
from pages.common import link
from pages.common.text import _, visible

KEY = "interventions"  # the interventions carried out, in the order they were made
_PAST, _FUTURE = "interventions.past", "interventions.future"
MAX = 200


def current(config: ModelConfig, length: int) -> list[str]:
    """Return the interventions of the session or of the address, without those that do not exist here."""
    chosen: list[str] = link.remember(KEY, [], lambda text: text.split(",")[:MAX] if text else [])
    kept = [intervention for intervention in dict.fromkeys(chosen) if _exists(intervention, config, length)]
    if kept != chosen:
        dropped = [intervention for intervention in chosen if intervention not in kept]
        link.replace(KEY, kept, "\n".join(dropped))
        st.session_state[_PAST] = st.session_state[_FUTURE] = []
    return kept


def say_dropped() -> None:
    """Say which interventions of the address or of another model do not exist here."""
    given = link.replaced(KEY)
    if given:
        # st.text: what was given comes from the address, and is shown as it is.
        dropped = " · ".join(map(visible, given[:200].split("\n")))
        st.text(_("Left out, because this model or text does not have it: {given}").format(given=dropped))


def toggle(intervention: str) -> None:
    """Apply an intervention, or remove it."""
    chosen: list[str] = st.session_state[KEY]
    if intervention in chosen:
        change([other for other in chosen if other != intervention])
    elif len(chosen) < MAX:
        change([*chosen, intervention])


def change(chosen: list[str]) -> None:
    """Replace the list by another one, as a step that can be undone."""
    st.session_state[_PAST] = [*st.session_state.get(_PAST, []), st.session_state[KEY]]
    st.session_state[_FUTURE] = []
    st.session_state[KEY] = chosen


def undo() -> None:
    """Take the last step back."""
    _go(_PAST, _FUTURE)


def redo() -> None:
    """Make the step again that was taken back last."""
    _go(_FUTURE, _PAST)


def can_undo() -> bool:
    """Whether there is a step to take back."""
    return bool(st.session_state.get(_PAST))


def can_redo() -> bool:
    """Whether there is a step to make again."""
    return bool(st.session_state.get(_FUTURE))


def _go(back: str, forth: str) -> None:
    *rest, there = st.session_state[back]
    st.session_state[forth] = [*st.session_state.get(forth, []), st.session_state[KEY]]
    st.session_state[back] = rest
    st.session_state[KEY] = there


def _exists(intervention: str, config: ModelConfig, length: int) -> bool:
    try:
        check_intervention(intervention, config, length)
    except ValueError:
        return False
    return True
