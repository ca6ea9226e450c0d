"""The answer as a message: what was drawn joins the conversation, and the next message follows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from lmcore import LanguageModel
from lmcore.chat import AnswerPart
from lmcore.generation.run import GenerationRun
from pages.common import conversation, session
from pages.common.escape import readable, whole_characters
from pages.common.text import _, markdown_literal, ngettext

_NEXT, _ANSWERED, _SENT = "turn.next", "turn.answered", "turn.sent"


def wants_answer() -> bool:
    """Whether the reader has just sent a message: its answer is drawn at once."""
    return bool(st.session_state.pop(_ANSWERED, False))


def is_sent() -> bool:
    """Whether the conversation has just grown, so that the whole page is about another prompt."""
    return bool(st.session_state.pop(_SENT, False))


def show(run: GenerationRun) -> None:
    """Show an answer's thinking and calls, and the field for the next message, where the prompt is a conversation."""
    if not conversation.is_on() or run.node.parent is None:
        return
    lm: LanguageModel = run.tree.lm
    answer = text_of(run)
    found = conversation.parts(lm, answer)
    _parts(found)
    if run.running:
        return
    role = "tool" if found and found[-1].kind == "tool_call" else "user"
    asked = _("The tool's result") if role == "tool" else _("Your next message")
    # A text that is cut off, by the limit or by the reader, is no finished answer.
    joins = (
        _("the answer above joins the conversation first")
        if run.end in ("stop token", "stop string")
        else _("what is there of the answer joins the conversation first")
    )
    with st.container(key="turn"):
        st.chat_input(
            f"{asked} ({joins})",
            key=_NEXT,
            max_chars=session.MAX_CHARACTERS,
            on_submit=_send,
            args=(lm, answer, role),
        )
        st.button(_("Only keep the answer"), key="turn.keep", type="tertiary", on_click=_keep, args=(lm, answer))


def text_of(run: GenerationRun) -> str:
    """Return what was drawn, without the token that ended it."""
    path = run.tree.path(run.node)
    if path and path[-1].token_id in run.stop_ids:
        path = path[:-1]
    return b"".join(step.token for step in path).decode("utf-8", "replace")


def _parts(found: Sequence[AnswerPart]) -> None:
    """Show what is not text for the reader."""
    for part in found:
        if part.kind == "thinking":
            n = len(part.text.strip())
            label = ngettext("Thinking: {n:,} character", "Thinking: {n:,} characters", n).format(n=n)
            with st.expander(label, icon=":material/psychology:"):
                st.text(readable(part.text.strip()))
        elif part.kind == "tool_call":
            names = ", ".join(markdown_literal(name) for name, _arguments in part.calls)
            label = _("Call of a tool: {names}").format(names=names) if names else _("Call of a tool, not readable")
            with st.expander(label, icon=":material/build:", expanded=True):
                if part.calls:
                    st.json([{"name": name, "arguments": dict(arguments)} for name, arguments in part.calls])
                else:
                    st.text(readable(part.text))


def _keep(lm: LanguageModel, answer: str) -> None:
    conversation.take(conversation.answered(lm, answer))
    st.session_state[_SENT] = True


def _send(lm: LanguageModel, answer: str, role: str) -> None:
    content = whole_characters(st.session_state[_NEXT] or "")
    if not content.strip():
        return
    _keep(lm, answer)
    message: dict[str, Any] = {"role": role, "content": content}
    conversation.append(message)
    st.session_state[_ANSWERED] = True
