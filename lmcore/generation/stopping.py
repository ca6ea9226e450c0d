"""Stop strings: a text ends where one of them has come, wherever the tokens' borders are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class StopMatch(NamedTuple):
    """The stop string a text ended at, and the byte of the text at which it begins."""

    text: str
    start: int


def stop_match(tokens: Sequence[bytes], stop_strings: Iterable[str]) -> StopMatch | None:
    """Return the stop string that the last token completed, or None.

    Args:
        tokens: the bytes of each token after the prompt.
        stop_strings: texts that end the text; an empty one never does.

    Returns:
        Of several, the one that begins first, and of those the longest.

    >>> stop_match([b"one", b" t", b"wo."], ["e tw", "wo"])
    StopMatch(text='e tw', start=2)
    """
    if not tokens:
        return None
    text = b"".join(tokens)
    before = len(text) - len(tokens[-1])
    found = []
    for stop in filter(None, stop_strings):
        wanted = stop.encode("utf-8", "surrogatepass")
        start = text.find(wanted, max(before - len(wanted) + 1, 0))
        if start >= 0:
            found.append(StopMatch(stop, start))
    return min(found, key=lambda match: (match.start, -len(match.text)), default=None)
