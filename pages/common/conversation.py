"""The prompt as a conversation: what the reader writes, and the text that the model's template makes of it.

A prompt has one of two forms. As a text it is what the reader typed. As a conversation it is messages, and
`session.prompt()` is what the chat template writes for them; every page then works on its ids.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from typing import Any

import streamlit as st

from lmcore import LanguageModel, chat
from pages.common import engines, link
from pages.common.escape import whole_characters
from pages.common.shared import shared
from pages.common.text import _

FORM, CHAT, TEMPLATE = "form", "chat", "chat.template"  # values of the session and of the address
_EARLIER = "chat.earlier"  # rendered text -> its conversation and typed template, the latest last
_MOST_EARLIER = 50
_REFUSED = "chat.refused"  # model, template and conversation -> why, where another try may do
MOST_MESSAGES = 200  # that an address may give; what the reader writes has no such limit
MOST_CHARACTERS = 100_000
ROLES = ("user", "assistant", "system", "tool")


class RenderedText(str):
    """A text that a chat template wrote, shown in code as the arguments of `encode` that give its ids."""

    def __repr__(self) -> str:
        return f"{str.__repr__(str.__str__(self))}, special_tokens=True, add_first=False"


@dataclass(frozen=True)
class Conversation:
    """Messages, and how they are rendered.

    Attributes:
        messages: each with its role and content, and what else it has.
        prompt: whether the text ends with the beginning of the assistant's turn.
        continued: whether the last message is gone on with instead.
        tools: descriptions of tools, as JSON; as the reader typed it.
        variables: what else the template is told, enable_thinking for instance.
    """

    messages: tuple[Mapping[str, Any], ...]
    prompt: bool = True
    continued: bool = False
    tools: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Conversation:
        """Read what `text` wrote.

        Raises:
            ValueError: it is no conversation.
        """
        try:
            return cls.of(json.loads(text))
        except RecursionError:
            raise ValueError("a conversation is not that deep") from None

    @classmethod
    def of(cls, given: Any) -> Conversation:
        """Return a conversation from plain values, as the browser sends them or JSON has them.

        Raises:
            ValueError: they are none.
        """
        if not isinstance(given, dict) or not isinstance(given.get("messages"), list):
            raise ValueError("a conversation is a table with messages")
        messages = given["messages"]
        if not messages:
            raise ValueError("a conversation has at least one message")
        for message in messages:
            if not isinstance(message, dict) or not all(
                isinstance(message.get(key), str) for key in ("role", "content")
            ):
                raise ValueError("a message has a role and a content, both texts")
        variables = given.get("variables", {})
        if not isinstance(variables, dict):
            raise ValueError("variables are a table")
        continued = bool(given.get("continued", False))
        return cls(
            messages=tuple(messages),
            prompt=bool(given.get("prompt", True)) and not continued,
            continued=continued,
            tools=str(given.get("tools", "")),
            variables={name: value for name, value in variables.items() if isinstance(value, (str, bool, int, float))},
        )

    @property
    def text(self) -> str:
        """The conversation as JSON, without what is as usual."""
        values: dict[str, Any] = {"messages": list(self.messages)}
        values |= {} if self.prompt or self.continued else {"prompt": False}
        values |= {"continued": True} if self.continued else {}
        values |= {"tools": self.tools} if self.tools else {}
        values |= {"variables": dict(self.variables)} if self.variables else {}
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))

    def options(self) -> dict[str, Any]:
        """Return the arguments of `lmcore.chat.render` beside template and messages.

        Raises:
            ValueError: the tools are no JSON list.
        """
        found: dict[str, Any] = {"add_generation_prompt": self.prompt}
        if self.continued:
            found["continue_final_message"] = True
        if self.tools.strip():
            try:
                found["tools"] = json.loads(self.tools)
            except (json.JSONDecodeError, RecursionError) as error:
                raise ValueError(_("The tools are not JSON: {error}.").format(error=error)) from None
            if not isinstance(found["tools"], list):
                raise ValueError(_("The tools must be a JSON list of descriptions."))
        reserved = {*found, "template", "messages", "tools", "now", "continue_final_message"}
        return found | {name: value for name, value in self.variables.items() if name not in reserved}


def remember() -> None:
    """Give the prompt's form, the conversation and a typed template their places in session and address.

    A run of a page begins with it, and it may try again what took too long in the last one.
    """
    st.session_state[_REFUSED] = {}
    form = link.remember(FORM, None, {"chat": "chat", "text": None}.__getitem__)
    if form is not None or CHAT in st.session_state:
        link.remember(CHAT, "", _of_address)
    link.remember(TEMPLATE, None)  # the Chat view uses it for a text too
    if not st.session_state.get(CHAT):
        st.session_state.pop(CHAT, None)


def _of_address(text: str) -> str:
    """Return a conversation that an address gives as the session has it.

    Raises:
        ValueError: it is none, or too long for one from an address.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"an address has at most {MOST_CHARACTERS:,} characters of a conversation")
    given = Conversation.parse(text)
    if len(given.messages) > MOST_MESSAGES:
        raise ValueError(f"an address has at most {MOST_MESSAGES} messages")
    return whole_characters(given.text)  # JSON can spell half a character


def is_on() -> bool:
    """Whether the prompt is a conversation. Before an engine it is a text: the template is the server's."""
    return st.session_state.get(FORM) == "chat" and engines.chosen() is None


def current() -> Conversation:
    """Return the reader's conversation; while the prompt is a text, that as its only message."""
    given = st.session_state.get(CHAT)
    if given and st.session_state.get(FORM) == "chat":
        return Conversation.parse(given)
    return Conversation(({"role": "user", "content": st.session_state["prompt"]},))


def take(conversation: Conversation) -> None:
    """Make this the reader's conversation."""
    st.session_state[CHAT] = whole_characters(conversation.text)


def switch(on: bool) -> None:
    """Make the prompt a conversation, or a text again."""
    if on:
        take(current())
    st.session_state[FORM] = "chat" if on else None


def append(role: str, content: str) -> None:
    """Put a message at the end; an assistant's answer to a beginning completes it."""
    now = current()
    if role == "assistant":
        take(replace(extended(content), continued=False))
    else:
        message = {"role": role, "content": content}
        take(replace(now, messages=(*now.messages, message), continued=False, prompt=True))


def extended(text: str) -> Conversation:
    """Return the conversation with a text at the end of the assistant's turn, which is gone on with."""
    now = current()
    messages = list(now.messages)
    if now.continued:
        messages[-1] = {**messages[-1], "content": messages[-1]["content"] + text}
    else:
        messages.append({"role": "assistant", "content": text})
    return replace(now, messages=tuple(messages), continued=True, prompt=False)


def template(lm: LanguageModel) -> chat.ChatTemplate | None:
    """Return the template in use: the one the reader typed, else the model's; None where there is neither."""
    typed = st.session_state.get(TEMPLATE)
    return chat.template_of(lm, typed) if typed else lm.chat_template


def rendered(lm: LanguageModel, conversation: Conversation | None = None) -> chat.Rendered:
    """Return the conversation as the template writes it.

    Raises:
        ValueError: the model has no template, or it refuses the conversation; the sentence says which.
    """
    conversation = conversation or current()
    used = template(lm)
    if used is None:
        raise ValueError(
            _(
                "{name} has no chat template: its files hold none. Paste one on the page Tokenization, under "
                "“Chat”, or make the prompt a text."
            ).format(name=lm.name)
        )
    options = conversation.options()
    refused: dict[tuple[str, ...], str] = st.session_state.setdefault(_REFUSED, {})
    key = (lm.name, used.source, conversation.text)
    if key in refused:
        raise ValueError(refused[key])
    try:
        found = _rendered(*key, date.today(), used, conversation.messages, options)
    except chat.TemplateRefused as error:
        refused[key] = str(error)
        raise
    if isinstance(found, str):
        raise ValueError(found)
    return found


@shared(entries=128)
def _rendered(
    name: str,
    source: str,
    text: str,
    today: date,
    _template: chat.ChatTemplate,
    _messages: tuple[Mapping[str, Any], ...],
    _options: Mapping[str, Any],
) -> chat.Rendered | str:
    """Render once for all sessions: the text, or why there is none.

    Raises:
        TemplateRefused: another try may do, so nothing is kept.
    """
    try:
        found = chat.render(_template, _messages, now=datetime.combine(today, time()), **_options)
        found.text.encode()
        return found
    except UnicodeEncodeError:
        return "The template writes half of a surrogate pair, which is no character."
    except ValueError as error:
        if isinstance(error, chat.TemplateRefused) and error.is_passing:
            raise
        return str(error)


def prompt_text(lm: LanguageModel) -> RenderedText:
    """Return the rendered conversation, "" where it could not be rendered: `refusal` says why."""
    try:
        text = RenderedText(rendered(lm).text)
    except ValueError:
        return RenderedText("")
    earlier: dict[str, tuple[str, str | None]] = st.session_state.setdefault(_EARLIER, {})
    earlier.pop(text, None)
    earlier[text] = current().text, st.session_state.get(TEMPLATE)
    for old in list(earlier)[:-_MOST_EARLIER]:
        del earlier[old]
    return text


def bring_back(text: str) -> None:
    """Make this the prompt again: a text, or a text that a template wrote, with its conversation if that is known."""
    if not isinstance(text, RenderedText):
        st.session_state[FORM], st.session_state["prompt"] = None, text
        return
    # Of a text from a file nothing but itself is known; the template that copies it gives the same ids.
    unknown = Conversation(({"role": "user", "content": str.__str__(text)},)).text, "{{ messages[0].content }}"
    st.session_state[FORM] = "chat"
    st.session_state[CHAT], st.session_state[TEMPLATE] = st.session_state.get(_EARLIER, {}).get(text, unknown)


def end_of_turn(lm: LanguageModel) -> int | None:
    """Return the token with which the template in use ends the assistant's turn; None where it writes none."""
    used = template(lm)
    try:
        return None if used is None else _end_of_turn(lm.name, used.source, lm, used)
    except chat.TemplateRefused:
        return None


@shared(entries=64)
def _end_of_turn(name: str, source: str, _lm: LanguageModel, _template: chat.ChatTemplate) -> int | None:
    try:
        return chat.end_of_turn(_lm, _template)
    except ValueError as error:
        if isinstance(error, chat.TemplateRefused) and error.is_passing:
            raise
        return None  # a template that refuses so simple a conversation


def refusal(lm: LanguageModel) -> str:
    """Return why the conversation could not be rendered, "" where it could."""
    try:
        rendered(lm)
    except ValueError as error:
        return str(error)
    return ""
