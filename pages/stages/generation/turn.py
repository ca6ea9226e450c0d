"""The answer as a message: what was drawn joins the conversation, and the reader's next message follows it."""

from __future__ import annotations

import streamlit as st

from lmcore.generation.run import GenerationRun
from pages.common import conversation, session
from pages.common.escape import whole_characters
from pages.common.text import _

_NEXT, _ANSWERED = "turn.next", "turn.answered"


def wants_answer() -> bool:
    """Whether the reader has just sent a message: its answer is drawn at once."""
    return bool(st.session_state.pop(_ANSWERED, False))


def show(run: GenerationRun) -> None:
    """Show the field for the next message, where the prompt is a conversation and there is an answer."""
    if not conversation.is_on() or run.running or run.node.parent is None:
        return
    answer = text_of(run)
    with st.container(horizontal=True, vertical_alignment="bottom", key="turn"):
        st.text_input(
            _("Your next message"),
            key=_NEXT,
            max_chars=session.MAX_CHARACTERS,
            placeholder=_("The answer above joins the conversation, then this"),
            on_change=_send,
            args=(answer,),
        )
        st.button(_("Only keep the answer"), key="turn.keep", on_click=conversation.append, args=("assistant", answer))


def text_of(run: GenerationRun) -> str:
    """Return what was drawn, without the token that ended it."""
    path = run.tree.path(run.node)
    if path and path[-1].token_id in run.stop_ids:
        path = path[:-1]
    return b"".join(step.token for step in path).decode("utf-8", "replace")


def _send(answer: str) -> None:
    message = whole_characters(st.session_state[_NEXT])
    if not message.strip():
        return
    conversation.append("assistant", answer)
    conversation.append("user", message)
    st.session_state[_NEXT] = ""
    st.session_state[_ANSWERED] = True
