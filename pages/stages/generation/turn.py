"""The answer as a message: what was drawn joins the conversation, and the next message follows it.

An earlier message can be answered otherwise; the tree of messages shows what was said on each branch.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import streamlit as st

from lmcore import LanguageModel
from lmcore.chat import AnswerPart
from lmcore.generation.run import GenerationRun
from pages.common import conversation, link, message_tree, session
from pages.common.escape import readable, whole_characters
from pages.common.text import _, markdown_literal, ngettext

if TYPE_CHECKING:
    from lmcore.generation.engine_run import EngineRun  # brings in an HTTP library

_NEXT, _AFTER, _ANSWERED, _SENT = "turn.next", "turn.after", "turn.answered", "turn.sent"
_MOST_SHOWN = 100  # messages of the tree
_LETTERS = 80  # of a message in a row of the tree
_TREE_HEIGHT = 260  # pixels; a longer tree scrolls


def wants_answer() -> bool:
    """Whether the reader has just sent a message: its answer is drawn at once."""
    return bool(st.session_state.pop(_ANSWERED, False))


def is_sent() -> bool:
    """Whether the conversation has just grown, so that the whole page is about another prompt."""
    return bool(st.session_state.pop(_SENT, False))


AnyRun: TypeAlias = "GenerationRun | EngineRun"
_FINISHED = ("stop token", "stop string", "text ended")


def show(run: AnyRun) -> None:
    """Show an answer's thinking and calls, and the field for the next message, where the prompt is a conversation."""
    if not conversation.is_on():
        return
    if run.node.parent is None:
        if not run.running:
            _next_after_answer()
        return
    lm = run.tree.lm if isinstance(run, GenerationRun) else None
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
        if run.end in _FINISHED
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


def stop_if_refused(lm: LanguageModel) -> None:
    """Where the template refuses the conversation say why, show its messages to go back to, and stop the page."""
    if conversation.is_on() and (why := conversation.refusal(lm)):
        st.text(readable(why))  # a template says what it likes
        messages()
        link.stop()


def _next_after_answer() -> None:
    """Show the field for the next message where the conversation ends with an answer, as after going back to one."""
    now = conversation.current()
    if now.messages[-1]["role"] == "assistant" and not now.continued:
        st.chat_input(_("Your next message"), key=_AFTER, max_chars=session.MAX_CHARACTERS, on_submit=_send_after)


def _send_after() -> None:
    content = whole_characters(st.session_state[_AFTER] or "")
    if content.strip():
        conversation.append({"role": "user", "content": content})
        st.session_state[_SENT] = st.session_state[_ANSWERED] = True


def messages() -> None:
    """Show the conversation's messages with the branches that parted from it; a click goes back, or across."""
    if not conversation.is_on():
        return
    now = conversation.current().messages
    told = [each.messages for each in conversation.branches()]
    rows = list(itertools.islice(message_tree.places(told), _MOST_SHOWN + 1))
    if len(rows) < 2:
        return
    st.subheader(_("Messages"), anchor=False)
    with st.container(height=_TREE_HEIGHT if len(rows) > 7 else "content", border=False, gap=None):
        for number, place in enumerate(rows[:_MOST_SHOWN]):
            is_here = place.messages == now
            is_on_path = message_tree.common(place.messages, now) == len(place.messages)
            st.button(
                _row(place),
                key=f"turn.message.{number}",
                icon=":material/radio_button_checked:" if is_on_path else ":material/radio_button_unchecked:",
                type="tertiary",
                disabled=is_here,
                on_click=conversation.go_to,
                args=(place.messages,),
            )
    if len(rows) > _MOST_SHOWN:
        st.caption(_("The first {n} messages are listed.").format(n=_MOST_SHOWN))
    st.caption(
        _(
            "Filled circles are the current conversation. Choose an earlier message to go back to it: let the model "
            "answer a question differently, or write another message after an answer. What was said stays here as a "
            "branch."
        )
    )


def _row(place: message_tree.TreeMessage) -> str:
    message = place.messages[-1]
    content = " ".join(str(message["content"]).split())
    short = content if len(content) <= _LETTERS else content[:_LETTERS] + "…"
    said = markdown_literal(short).replace("␣", " ")
    return "↳ " * place.forks + f"{markdown_literal(str(message['role'])[:20])} {said}"


def text_of(run: AnyRun) -> str:
    """Return what was drawn, without the token that ended it."""
    if not isinstance(run, GenerationRun):
        return run.text(run.node)
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


def _keep(lm: LanguageModel | None, answer: str) -> None:
    conversation.take(conversation.answered(lm, answer))
    st.session_state[_SENT] = True


def _send(lm: LanguageModel | None, answer: str, role: str) -> None:
    content = whole_characters(st.session_state[_NEXT] or "")
    if not content.strip():
        return
    _keep(lm, answer)
    message: dict[str, Any] = {"role": role, "content": content}
    conversation.append(message)
    st.session_state[_ANSWERED] = True
