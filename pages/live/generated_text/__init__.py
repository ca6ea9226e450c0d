"""A text as it is generated, token by token, each as strong in colour as it was probable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pages.common.escape import visible
from pages.live.newest import Newest
from pages.live.part import part

_HTML = '<div class="generated"></div>'


Kind = Literal["prompt", "drawn", "taken", "ahead", "next", "refused", "unread", "residual", "bonus"]


@dataclass(frozen=True)
class TextToken:
    """One token of the text.

    Attributes:
        token: its bytes.
        caption: the number under it.
        strength: 0..1, how strong its colour is.
        hint: one line for the pointer that rests on it.
        kind: "prompt", "drawn", "taken" (by hand), "ahead" (after the present place), or "next" (not drawn yet).
            Of a draft model's tokens those accepted are "drawn", the others "refused" or "unread"; "residual" and
            "bonus" are drawn by the model itself after them.
        starts: whether a round begins here.
    """

    token: bytes
    caption: str = ""
    strength: float = 0.0
    hint: str = ""
    kind: Kind = "drawn"
    starts: bool = False


def generated_text(
    tokens: Sequence[TextToken],
    *,
    key: str,
    label: str,
    selected: int | None = None,
    on_select: Callable[[int], None] | None = None,
) -> None:
    """Show the text.

    Args:
        tokens: in order; those of the prompt cannot be chosen.
        key: unique on the page.
        label: what it is, for screen readers.
        selected: index of the chosen token.
        on_select: called with the index the reader chose, before the page runs again; without it the text is only read.
    """

    newest = Newest(key)

    def take(index: object) -> None:
        if on_select and isinstance(index, int) and 0 <= index < len(tokens):
            on_select(index)

    shown = [{**vars(token), "token": "?" if token.kind == "next" else visible(token.token)} for token in tokens]
    part("generated_text", _HTML)(
        key=key,
        data={
            **newest.data(),
            "tokens": shown,
            "label": label,
            "selected": selected,
            "selectable": on_select is not None,
        },
        on_index_change=newest.taking("index", take),
    )
