"""What a reader takes for one character, and the tokens that share it."""

from __future__ import annotations

from collections.abc import Sequence

import regex

_GRAPHEME = regex.compile(r"\X")


def graphemes(text: str) -> list[tuple[int, int]]:
    """Split a text into what readers take for single characters, Unicode's extended grapheme clusters (UAX #29).

    Args:
        text: any text.

    Returns:
        (start, end) in characters, in order; together they cover the text.

    >>> graphemes("a👍🏽e\\u0301")
    [(0, 1), (1, 3), (3, 5)]
    """
    return [found.span() for found in _GRAPHEME.finditer(text)]


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
