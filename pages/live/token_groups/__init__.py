"""Tokens with id and bytes, those that share a character bracketed under it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pages.common.escape import visible
from pages.figures.theme import position_colour
from pages.live.newest import Newest
from pages.live.part import part

_HTML = '<div class="groups"></div>'
_MOST_CHARACTERS, _MOST_BYTES = 32, 16  # of a token are written on its chip; the pointer tells the rest


def token_groups(
    tokens: Sequence[bytes],
    ids: Sequence[int | str],
    groups: Sequence[tuple[int, int]],
    *,
    key: str,
    label: str,
    selected: int | None = None,
    on_select: Callable[[int], None] | None = None,
) -> None:
    """Show tokens as chips: text, bytes in hexadecimal and id.

    Args:
        tokens: each token's bytes.
        ids: each token's id, or a text in its place.
        groups: (first, last + 1) in tokens; a group of several is one character split over them.
        key: unique on the page.
        label: what the chips are, for screen readers.
        selected: index of the selected chip.
        on_select: called with the index the reader chose, before the page runs again; without it the chips only show.
    """

    def chip(index: int) -> dict[str, str | int]:
        return {
            "position": index,
            "text": _short(visible(tokens[index]), _MOST_CHARACTERS),
            "bytes": _short(tokens[index].hex(" "), 3 * _MOST_BYTES - 1),
            "whole": f"{visible(tokens[index])}\n{tokens[index].hex(' ')}",
            "id": str(ids[index]),
            "colour": position_colour(index),
        }

    newest = Newest(key)

    def take(position: object) -> None:
        if on_select and isinstance(position, int) and 0 <= position < len(tokens):
            on_select(position)

    data = [
        {
            "text": visible(b"".join(tokens[first:end])) if end - first > 1 else "",
            "chips": [chip(index) for index in range(first, end)],
        }
        for first, end in groups
    ]
    part("token_groups", _HTML)(
        key=key,
        data={
            **newest.data(),
            "groups": data,
            "label": label,
            "selected": selected,
            "selectable": on_select is not None,
        },
        on_position_change=newest.taking("position", take),
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rstrip() + " …"
