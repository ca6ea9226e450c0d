"""The prompt as a conversation in front of an engine: what its server makes of it, or a template typed here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from lmcore import chat
from lmcore.engines.errors import EngineError
from lmcore.engines.served_text import ServedText
from pages.common import conversation, engines
from pages.common.text import _

if TYPE_CHECKING:
    from lmcore.engines.engine import Engine


def text_for(engine: Engine) -> ServedText:
    """Return what the engine reads: what the template typed here writes, else what its own server says it makes of it.

    Raises:
        ValueError: there is no such text; the sentence says why.
    """
    now = conversation.current()
    typed = st.session_state.get(conversation.TEMPLATE)
    if typed:
        return ServedText(conversation.rendered_by(engine.name, chat.ChatTemplate(typed), now).text)
    options = now.options()

    def ask() -> ServedText | EngineError | None:
        try:
            return engine.conversation(now.messages, **options)
        except EngineError as error:
            if error.kind not in ("refused", "failing"):
                raise
            return error

    found = engines.ask(engine, ("conversation", now.text), ask)
    if isinstance(found, EngineError):
        raise ValueError(
            _("{name} does not take this conversation: {why}").format(name=engine.name, why=found.detail or str(found))
        )
    if found is None:
        raise ValueError(
            _(
                "{name} does not tell what it makes of a conversation. Type its template on the page Tokenization, or "
                "make the prompt a text."
            ).format(name=engine.name)
        )
    messages = [dict(message) for message in now.messages]
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    return ServedText(found, found.ids, f"engine.conversation({messages!r}{given})")


def refusal(engine: Engine) -> str:
    """Return why the engine reads nothing, "" where it reads a text."""
    try:
        text_for(engine)
    except ValueError as error:
        return str(error)
    return ""
