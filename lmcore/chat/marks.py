"""Text that knows where each of its characters came from, through what a chat template does to it.

A template trims, cuts, joins and replaces. `Marked` is a `str` that carries a second string of the same length, its
marks: the character of the marks at i says where character i came from. What an operation does to the text, it does to
the marks, so an origin is never looked for afterwards. An operation that is not followed here gives a plain `str`; it
counts as `MIXED` once it is joined to others.

Part of the process in which templates run: nothing here imports the rest of lmcore.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, SupportsIndex

MIXED = "\0"
"""The mark of a character whose origin cannot be told."""
FIRST_LINE = 0x100000
"""The mark of a template's own words in its line 1; the lines after it follow. Marks below are the caller's."""


def marks_of(text: str) -> str:
    """Return the marks of a text: its own, or `MIXED` for each character of a plain one.

    >>> marks_of(Marked("ab", "12")), marks_of("ab")
    ('12', '\\x00\\x00')
    """
    return text._marks if isinstance(text, Marked) else MIXED * len(text)


def joined(pieces: Iterable[str]) -> Marked:
    """Return the pieces, one after the other, with their marks.

    >>> marks_of(joined([Marked("ab", "12"), "c"]))
    '12\\x00'
    """
    pieces = list(pieces)
    return Marked("".join(pieces), "".join(map(marks_of, pieces)))


class Marked(str):
    """A text and its marks.

    It is equal to the plain text, has its hash, and is called `str` in errors, so that a template cannot tell the two
    apart.

    Args:
        text: the text.
        marks: one character a character of the text.
    """

    _marks: str

    def __new__(cls, text: str, marks: str) -> Marked:  # noqa: D102 - the class says it
        made = super().__new__(cls, str.__str__(text))
        made._marks = marks
        return made

    def __str__(self) -> str:
        return self

    def __getitem__(self, index: SupportsIndex | slice[Any, Any, Any]) -> Marked:
        return Marked(str.__getitem__(self, index), self._marks[index])

    def __iter__(self) -> Iterator[Marked]:  # type: ignore[override]
        return map(Marked, str.__iter__(self), self._marks)

    def __add__(self, other: str) -> Marked:
        return Marked(_plain(self) + other, self._marks + marks_of(other))

    def __radd__(self, other: str) -> Marked:
        return Marked(other + _plain(self), marks_of(other) + self._marks)

    def __mul__(self, times: SupportsIndex) -> Marked:
        return Marked(_plain(self) * times, self._marks * times)

    __rmul__ = __mul__

    def join(self, pieces: Iterable[str]) -> Marked:  # noqa: D102 - str's own words hold for all of these
        pieces = list(pieces)
        return Marked(str.join(self, pieces), self._marks.join(map(marks_of, pieces)))

    def lstrip(self, characters: str | None = None) -> Marked:  # noqa: D102
        return self[len(self) - len(str.lstrip(self, characters)) :]

    def rstrip(self, characters: str | None = None) -> Marked:  # noqa: D102
        return self[: len(str.rstrip(self, characters))]

    def strip(self, characters: str | None = None) -> Marked:  # noqa: D102
        return self.lstrip(characters).rstrip(characters)

    def removeprefix(self, prefix: str, /) -> Marked:  # noqa: D102
        return self[len(self) - len(str.removeprefix(self, prefix)) :]

    def removesuffix(self, suffix: str, /) -> Marked:  # noqa: D102
        return self[: len(str.removesuffix(self, suffix))]

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:  # type: ignore[override]  # noqa: D102
        return self._found(str.split(self, sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:  # type: ignore[override]  # noqa: D102
        return self._found(str.rsplit(self, sep, maxsplit), sep)

    def splitlines(self, keepends: bool = False) -> list[str]:  # type: ignore[override]  # noqa: D102
        lines = self._found(str.splitlines(self, True), "")
        if keepends:
            return lines
        return [line[: len(end)] for line, end in zip(lines, str.splitlines(self), strict=True)]

    def partition(self, sep: str, /) -> tuple[str, str, str]:  # type: ignore[override]  # noqa: D102
        return self._parted(str.partition(self, sep))

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:  # type: ignore[override]  # noqa: D102
        return self._parted(str.rpartition(self, sep))

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> str:  # type: ignore[override]  # noqa: D102
        if not old:
            return str.replace(self, old, new, count)
        pieces = self.split(old, count)
        return Marked(new, marks_of(new)).join(pieces)

    def lower(self) -> str:  # type: ignore[override]  # noqa: D102
        return self._alike(str.lower(self))

    def upper(self) -> str:  # type: ignore[override]  # noqa: D102
        return self._alike(str.upper(self))

    def casefold(self) -> str:  # type: ignore[override]  # noqa: D102
        return self._alike(str.casefold(self))

    def capitalize(self) -> str:  # type: ignore[override]  # noqa: D102
        return self._alike(str.capitalize(self))

    def title(self) -> str:  # type: ignore[override]  # noqa: D102
        return self._alike(str.title(self))

    def swapcase(self) -> str:  # type: ignore[override]  # noqa: D102
        return self._alike(str.swapcase(self))

    def _alike(self, changed: str) -> str:
        """Return the text with its letters changed; a letter may become several, but never fewer than one."""
        return Marked(changed, self._marks) if len(changed) == len(self) else changed

    def _found(self, pieces: list[str], sep: str | None) -> list[str]:
        """Return the pieces that the text was split into, in order, as parts of it."""
        found: list[str] = []
        at = 0
        for piece in pieces:
            at = str.index(self, piece, at) if sep is None else at
            found.append(self[at : at + len(piece)])
            at += len(piece) + len(sep or "")
        return found

    def _parted(self, parts: tuple[str, str, str]) -> tuple[str, str, str]:
        first, middle = len(parts[0]), len(parts[0]) + len(parts[1])
        return self[:first], self[first:middle], self[middle:]


def _plain(text: Marked) -> str:
    return str.__getitem__(text, slice(None))


# What Python and Jinja say of a value names its type: the sentence is the same as for a plain text.
Marked.__name__ = Marked.__qualname__ = "str"
Marked.__module__ = "builtins"
