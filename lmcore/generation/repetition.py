"""Texts that go round in circles: where the circle begins, how long it is, and how it holds the model ever tighter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


def repeated_tail(ids: Iterable[int], times: int = 3) -> int:
    """Return how many tokens the text's end repeats over and over; 0 when it does not.

    Args:
        ids: the tokens.
        times: how often in a row the same tokens must have come.

    Returns:
        The shortest period p such that the last `times * p` tokens are one run of p tokens repeated.

    >>> repeated_tail([5, 1, 2, 1, 2, 1, 2]), repeated_tail([1, 2, 3])
    (2, 0)
    """
    tail = list(ids)
    for period in range(1, len(tail) // times + 1):
        end = tail[len(tail) - times * period :]
        if end == end[:period] * times:
            return period
    return 0


@dataclass(frozen=True)
class Loop:
    """A circle at the end of a text.

    Attributes:
        start: index of the first token of the first round.
        period: tokens in a round.
        rounds: how many whole rounds there are, at least 2.
    """

    start: int
    period: int
    rounds: int


def find_loop(ids: Sequence[int], times: int = 3) -> Loop | None:
    """Return the circle a text has ended in, or None.

    Args:
        ids: the tokens.
        times: how many rounds make a circle.

    Returns:
        The loop with the shortest period, followed back to the first token from which on every token is the one a
        period before it.

    >>> find_loop([7, 1, 2, 1, 2, 1, 2, 1])
    Loop(start=1, period=2, rounds=3)
    """
    period = repeated_tail(ids, times)
    if not period:
        return None
    start = len(ids) - period
    while start > 0 and ids[start - 1] == ids[start - 1 + period]:
        start -= 1
    return Loop(start, period, (len(ids) - start) // period)
