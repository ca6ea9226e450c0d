"""The prompt's field: one slim line with the examples in it, as many lines as the text has while it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
) -> None:
    """Show the field.

    Args:
        text: the prompt.
        examples: to choose from.
        key: unique on the page.
        help: shown when the pointer rests on the field.
        longest: texts with more characters are not in the address: the browser keeps them for its tab.
        restores: whether this visit began without a prompt, so that the kept one may come back.
        on_text: called with what the reader sent, before the page runs again.
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
            "wording": {
                "label": _("Prompt"),
                "help": help,
                "placeholder": _("Type a text"),
                "examples": _("Examples"),
                "lines": _("{n} lines"),
            },
        },
        on_sent_change=newest.taking("sent", take),
    )
