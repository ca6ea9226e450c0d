"""The prompt as a conversation: what the reader writes, and the text that the model's template makes of it.

A prompt has one of two forms. As a text it is what the reader typed. As a conversation it is messages, and
`session.prompt()` is what the chat template writes for them; every page then works on its ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, time
from typing import Any

import streamlit as st

from lmcore import LanguageModel, chat
from pages.common import link, message_tree
from pages.common.escape import whole_characters
from pages.common.messages import Conversation
from pages.common.shared import shared
from pages.common.text import _

FORM, CHAT, TEMPLATE = "form", "chat", "chat.template"  # values of the session and of the address
_EARLIER = "chat.earlier"  # rendered text -> its conversation and typed template, the latest last
_MOST_EARLIER = 50
_REFUSED = "chat.refused"  # model, template and conversation -> why, where another try may do
_BRANCHES = "chat.branches"  # conversations of this visit that parted from the reader's, the latest last
_MOST_BRANCHES = 50
MOST_MESSAGES = 200  # that an address may give; what the reader writes has no such limit
MOST_CHARACTERS = 100_000
ROLES = ("user", "assistant", "system", "tool")

Origin = tuple[str, str | None]
"""A conversation as JSON, and the template that the reader typed."""


class RenderedText(str):
    """A text that a chat template wrote, shown in code as the arguments of `encode` that give its ids."""

    def __repr__(self) -> str:
        return f"{str.__repr__(str.__str__(self))}, special_tokens=True, add_first=False"


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
    """Whether the prompt is a conversation."""
    return st.session_state.get(FORM) == "chat"


def current() -> Conversation:
    """Return the reader's conversation; while the prompt is a text, that as its only message."""
    given = st.session_state.get(CHAT)
    if given and st.session_state.get(FORM) == "chat":
        return Conversation.parse(given)
    return Conversation(({"role": "user", "content": st.session_state["prompt"]},))


def take(conversation: Conversation) -> None:
    """Make this the reader's conversation; one whose answers an edit took away stays in the tree of messages."""
    before = current()
    if message_tree.is_lost(before.messages, conversation.messages):
        _keep_branch(before)
    st.session_state[CHAT] = whole_characters(conversation.text)


def _keep_branch(conversation: Conversation) -> None:
    st.session_state[_BRANCHES] = message_tree.put(st.session_state.get(_BRANCHES, ()), conversation)[-_MOST_BRANCHES:]


def branches() -> list[Conversation]:
    """Return the reader's conversation and those of this visit that parted from it, what was begun first first."""
    now = current()
    found = message_tree.put(st.session_state.get(_BRANCHES, ()), now)
    return [each for each in found if message_tree.common(each.messages, now.messages)]


def go_to(messages: message_tree.Messages) -> None:
    """Go back or across to a message of the tree: the conversation ends with it, and what it left stays in the tree.

    A branch that ends with it is as it was left; else the tools and the variables are those of the conversation it is
    of, the reader's own before others.
    """
    now = current()
    _keep_branch(now)
    known = [each for each in (now, *branches()) if message_tree.common(each.messages, messages) == len(messages)]
    if left := [each for each in known if len(each.messages) == len(messages)]:
        st.session_state[CHAT] = left[0].text
        return
    source = known[0] if known else now  # the reader may have begun another one meanwhile
    prompt = messages[-1]["role"] != "assistant"  # after an answer the reader writes
    st.session_state[CHAT] = replace(source, messages=messages, prompt=prompt, continued=False).text


def switch(on: bool) -> None:
    """Make the prompt a conversation, or a text again."""
    if on:
        take(current())
    st.session_state[FORM] = "chat" if on else None


def append(message: Mapping[str, Any]) -> None:
    """Put a message at the end that the model is to answer."""
    now = current()
    take(replace(now, messages=(*now.messages, message), continued=False, prompt=True))


def parts(lm: LanguageModel | None, answer: str) -> tuple[chat.AnswerPart, ...]:
    """Return what an answer to the conversation consists of: thinking, calls of tools, text; None is an engine."""
    if lm is None:
        typed = st.session_state.get(TEMPLATE)
        return chat.parts(answer, chat.ChatTemplate(typed) if typed else None)
    try:
        found = rendered(lm)
    except ValueError:  # a template that has just been changed
        return chat.parts(answer, None)
    begun = found.text[found.prompt[0] :] if found.prompt else ""
    if current().continued:
        begun = str(current().messages[-1]["content"])
    return chat.parts(answer, template(lm), begun)


def answered(lm: LanguageModel | None, answer: str) -> Conversation:
    """Return the conversation with the model's answer: in its fields, where the template writes the same from them.

    An engine's, for which the model is None, is a content as it stands.
    """
    now = current()
    if now.continued:
        return replace(extended(answer), continued=False)

    def with_(message: Mapping[str, Any]) -> Conversation:
        return replace(now, messages=(*now.messages, message), prompt=False)

    plain = replace(with_({"role": "assistant", "content": answer}), prompt=now.prompt)
    message = chat.message(answer, parts(lm, answer))
    if lm is None or len(message) == 2:
        return plain
    try:
        is_same = rendered(lm, with_(message)).text.startswith(rendered(lm).text + answer.rstrip())
    except ValueError:
        is_same = False
    return replace(with_(message), prompt=now.prompt) if is_same else plain


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


def rendered(
    lm: LanguageModel, conversation: Conversation | None = None, used: chat.ChatTemplate | None = None
) -> chat.Rendered:
    """Return the conversation as the template writes it.

    Args:
        lm: the model.
        conversation: another one than the reader's.
        used: another template than the one in use.

    Raises:
        ValueError: the model has no template, or it refuses the conversation; the sentence says which.
    """
    conversation = conversation or current()
    used = used or template(lm)
    if used is None:
        raise ValueError(
            _(
                "{name} has no chat template: its files hold none. Paste one on the page Tokenization, under "
                "“Chat”, or make the prompt a text."
            ).format(name=lm.name)
        )
    return rendered_by(lm.name, used, conversation)


def rendered_by(name: str, used: chat.ChatTemplate, conversation: Conversation) -> chat.Rendered:
    """Return a conversation as a template writes it, kept under a name and the template's source.

    Raises:
        ValueError: it refuses the conversation.
    """
    options = conversation.options()
    refused: dict[tuple[str, ...], str] = st.session_state.setdefault(_REFUSED, {})
    key = (name, used.source, conversation.text)
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
    _remember_origin(text, current(), st.session_state.get(TEMPLATE))
    return text


def _remember_origin(text: RenderedText, conversation: Conversation, typed: str | None) -> None:
    earlier: dict[str, Origin] = st.session_state.setdefault(_EARLIER, {})
    earlier.pop(text, None)
    earlier[text] = conversation.text, typed
    for old in list(earlier)[:-_MOST_EARLIER]:
        del earlier[old]


def origin(text: str) -> Origin | None:
    """Return the conversation and the typed template that a rendered text came from; None where that is not known."""
    found: Origin | None = st.session_state.get(_EARLIER, {}).get(text)
    return found if isinstance(text, RenderedText) else None


def know_again(lm: LanguageModel, text: RenderedText, given: Origin) -> bool:
    """Take a text's origin from a file, if the template still writes that text from it, and say whether it does."""
    conversation, typed = Conversation.parse(given[0]), given[1]
    used = chat.template_of(lm, typed) if typed else lm.chat_template
    if used is None or rendered(lm, conversation, used).text != text:
        return False
    _remember_origin(text, conversation, typed)
    return True


def title(text: str) -> str:
    """Return a short name of a prompt: its text, or the last message that the reader wrote."""
    found = origin(text)
    if found is None:
        return text
    said = [m for m in Conversation.parse(found[0]).messages if m["role"] != "assistant"]
    return str(said[-1]["content"]) if said else text


def bring_back(text: str) -> None:
    """Make this the prompt again: a text, or a text that a template wrote, with its conversation if that is known."""
    if not isinstance(text, RenderedText):
        st.session_state[FORM], st.session_state["prompt"] = None, text
        return
    # Where nothing is known but the text itself, the template that copies it gives the same ids.
    unknown = Conversation(({"role": "user", "content": str.__str__(text)},)).text, "{{ messages[0].content }}"
    st.session_state[FORM] = "chat"
    st.session_state[CHAT], st.session_state[TEMPLATE] = origin(text) or unknown


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
