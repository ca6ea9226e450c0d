"""A stretch of text under several vocabularies: a row of chips each, those over the same bytes above one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pages.common.escape import visible
from pages.figures.theme import CATEGORICAL
from pages.live.part import part

_HTML = '<div class="comparison"><div class="names"></div><div class="stretches"></div></div>'
_LONGEST = 40  # characters of a token or a stretch that are written out


@dataclass(frozen=True)
class Chip:
    """One token.

    Attributes:
        token: its bytes.
        token_id: its id.
        cuts: whether it begins inside a word.
        note: what stands under it; the id, when it is empty.
    """

    token: bytes
    token_id: int
    cuts: bool
    note: str = ""


@dataclass(frozen=True)
class Cell:
    """Tokens over some columns of a stretch: (first, last + 1); none where the vocabulary has none for it."""

    first: int
    last: int
    chips: Sequence[Chip]


@dataclass(frozen=True)
class Stretch:
    """Text between two cuts that all vocabularies have: its columns, and each vocabulary's cells."""

    text: str
    columns: int
    rows: Sequence[Sequence[Cell]]


def colour(row: int) -> str:
    """Return the colour of a row, and of what else on the page belongs to it."""
    return CATEGORICAL[row % len(CATEGORICAL)]


def vocabulary_rows(names: Sequence[str], stretches: Sequence[Stretch], *, key: str, label: str) -> None:
    """Show the rows.

    Args:
        names: the vocabularies, from the top row down.
        stretches: the text from left to right.
        key: unique on the page.
        label: what this shows, for screen readers.
    """
    data = {
        "label": label,
        "names": [{"name": visible(name).replace("␣", " "), "colour": colour(i)} for i, name in enumerate(names)],
        "stretches": [
            {
                "text": _short(stretch.text),
                "columns": stretch.columns,
                "rows": [[[cell.first, cell.last, [_chip(c) for c in cell.chips]] for cell in r] for r in stretch.rows],
            }
            for stretch in stretches
        ],
    }
    part("vocabulary_rows", _HTML)(key=key, data=data)


def _chip(chip: Chip) -> list[str | int]:
    return [
        _short(chip.token),
        chip.token[:_LONGEST].hex(" "),
        chip.token_id,
        int(chip.cuts),
        chip.note or str(chip.token_id),
    ]


def _short(text: bytes | str) -> str:
    return visible(text) if len(text) <= _LONGEST else visible(text[:_LONGEST]) + "…"
