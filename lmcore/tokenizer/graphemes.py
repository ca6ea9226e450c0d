"""What a reader takes for one character, and the tokens that share it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_JOINER = "\u200d"


def graphemes(text: str) -> list[tuple[int, int]]:
    """Split a text into what readers take for single characters.

    A code point stays with the one before it when it is a mark, a variation selector, an emoji's skin tone or tag, a
    zero-width joiner or an emoji after one, the second of two regional indicators (a flag), or a line feed after a
    carriage return: the rules of Unicode's UAX #29 that concern emoji and marks. Hangul given as single jamo and
    prepended marks of Indic scripts are not joined.

    Args:
        text: any text.

    Returns:
        (start, end) in characters, in order; together they cover the text.

    >>> graphemes("a👍🏽e\\u0301")
    [(0, 1), (1, 3), (3, 5)]
    """
    starts: list[int] = []
    flags = 0  # regional indicators in a row
    for index, character in enumerate(text):
        before = text[index - 1] if index else ""
        flags = flags + 1 if _is_regional(character) else 0
        if index == 0 or not _joins(before, character, flags):
            starts.append(index)
    return list(zip(starts, [*starts[1:], len(text)], strict=False))  # no starts where there is no text


def shared_groups(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Group the tokens that share a character: a group ends where a token ends with the end of a grapheme.

    Args:
        text: the text.
        offsets: (start, end) in characters for each token, as in `Encoding.offsets`.

    Returns:
        (first, last + 1) in tokens, in order; most groups are a single token.

    >>> shared_groups("a好", [(0, 1), (1, 2), (1, 2)])
    [(0, 1), (1, 3)]
    >>> shared_groups("a", [(0, 0), (0, 1)])
    [(0, 1), (1, 2)]
    """
    ends = {0} | {end for _start, end in graphemes(text)}  # 0: a token in front that is none of the text
    groups, first = [], 0
    for index, (_start, end) in enumerate(offsets):
        following = offsets[index + 1][0] if index + 1 < len(offsets) else end
        if end in ends and following >= end:
            groups.append((first, index + 1))
            first = index + 1
    return groups


def _joins(before: str, character: str, flags: int) -> bool:
    if unicodedata.category(before) in ("Cc", "Zl", "Zp"):
        return (before, character) == ("\r", "\n")
    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or character == _JOINER
        or (before == _JOINER and unicodedata.category(character) == "So")
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
        or (flags > 0 and flags % 2 == 0)
    )


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
