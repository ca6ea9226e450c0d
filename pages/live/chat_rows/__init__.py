"""A conversation as two templates write it: a row is one place of it, with the tokens of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pages.common.escape import visible
from pages.common.text import _
from pages.figures.theme import position_colour
from pages.live.part import part

_HTML = '<div class="rows"></div>'
_MOST_TOKENS, _MOST_ROWS, _MOST_CHARACTERS = 80, 120, 24  # that are drawn: of a side, in all, of a token

Tokens = Sequence[tuple[bytes, int | str]]


@dataclass(frozen=True)
class Row:
    """One place.

    Attributes:
        label: what it is.
        message: the message's index, for its colour; None for what is no message's.
        is_same: whether both texts are the same.
        left, right: (bytes, id) of the tokens that begin there, the id "" where it is not known; None where that text
            has no such place.
    """

    label: str
    message: int | None
    is_same: bool
    left: Tokens | None
    right: Tokens | None


def chat_rows(rows: Sequence[Row], names: tuple[str, str], *, key: str, label: str) -> None:
    """Show the rows.

    Args:
        rows: in order.
        names: of the two, the headings.
        key: unique on the page.
        label: what they are, for screen readers.
    """
    part("chat_rows", _HTML)(
        key=key,
        data={
            "rows": [
                {
                    "label": row.label,
                    "colour": None if row.message is None else position_colour(row.message),
                    "same": row.is_same,
                    "sides": [_side(row.left), _side(row.right)],
                }
                for row in rows[:_MOST_ROWS]
            ],
            "names": [visible(name) for name in names],
            "label": label,
            "more": _("{n} more rows are in the table").format(n=len(rows) - _MOST_ROWS)
            if len(rows) > _MOST_ROWS
            else "",
        },
    )


def _side(tokens: Tokens | None) -> dict[str, object] | None:
    if tokens is None:
        return None
    shown = [{"text": _short(visible(token)), "id": str(token_id)} for token, token_id in tokens[:_MOST_TOKENS]]
    return {"tokens": shown, "more": f"+{len(tokens) - _MOST_TOKENS}" if len(tokens) > _MOST_TOKENS else ""}


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
