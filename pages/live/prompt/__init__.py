"""The prompt's field: one slim line. A text with the examples in it, or a conversation that opens below the line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pages.common.conversation import ROLES, Conversation
from pages.common.text import _
from pages.live.newest import Newest
from pages.live.part import part


def prompt_field(
    text: str,
    examples: Sequence[str],
    *,
    key: str,
    help: str,
    longest: int,
    restores: bool,
    on_text: Callable[[str], None],
    conversation: Conversation | None,
    on_conversation: Callable[[object], None],
) -> None:
    """Show the field.

    Args:
        text: the prompt as a text.
        examples: to choose from.
        key: unique on the page.
        help: shown when the pointer rests on the field.
        longest: texts with more characters are not in the address: the browser keeps them for its tab.
        restores: whether this visit began without a prompt, so that the kept one may come back.
        on_text: called with what the reader sent, before the page runs again.
        conversation: the prompt as a conversation; None while it is a text.
        on_conversation: called with a conversation as the browser sends it, or None for a text again.
    """
    newest = Newest(key)

    def take(sent: object) -> None:
        if isinstance(sent, str):
            on_text(sent)

    part("prompt")(
        key=key,
        data={
            **newest.data(),
            "text": text,
            "examples": list(examples),
            "longest": longest,
            "restores": restores,
            "conversation": None if conversation is None else _plain(conversation),
            "roles": list(ROLES),
            "wording": {
                "label": _("Prompt"),
                "help": help,
                "placeholder": _("Type a text"),
                "examples": _("Examples"),
                "lines": _("{n} lines"),
                "form": _("The prompt is a text or a conversation"),
                "text": _("Text"),
                "chat": _("Chat"),
                "conversation": _("The conversation"),
                "role": _("Role of message {n}"),
                "message": _("Message {n}"),
                "remove": _("Remove message {n}"),
                "add": _("Add a message"),
                "prompt": _("Begin the assistant's turn (generation prompt)"),
                "continued": _("Continue the last message"),
                "thinking": _("Thinking (enable_thinking)"),
                "as_usual": _("as the template does"),
                "on": _("on"),
                "off": _("off"),
                "tools": _("Tools, as a JSON list"),
                "close": _("Done"),
            },
        },
        on_sent_change=newest.taking("sent", take),
        on_conversation_change=newest.taking("conversation", on_conversation),
    )


def _plain(conversation: Conversation) -> dict[str, object]:
    return {
        "messages": [dict(message) for message in conversation.messages],
        "prompt": conversation.prompt,
        "continued": conversation.continued,
        "tools": conversation.tools,
        "variables": dict(conversation.variables),
    }
