"""Texts that go round in circles: where the circle begins, how long it is, and how it holds the model ever tighter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lmcore import distribution
from lmcore.generation.steps import GenerationStep


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

    def spans(self, n_tokens: int) -> list[tuple[int, int]]:
        """Return the first token, and the one after the last, of each round of a text; the last may be cut short."""
        return [(at, min(at + self.period, n_tokens)) for at in range(self.start, n_tokens, self.period)]


@dataclass(frozen=True)
class Circling:
    """A text and how sure the model was of each of its tokens.

    Attributes:
        ids, tokens: what was drawn.
        log_probs: ln P of each under the model itself, at temperature 1.
        loop: the circle it has ended in, or None.
    """

    ids: tuple[int, ...]
    tokens: tuple[bytes, ...]
    log_probs: tuple[float, ...]
    loop: Loop | None

    def round_probs(self) -> list[float]:
        """Return, for each whole round of the circle, the probability of going round once more: the product."""
        if self.loop is None:
            return []
        spans = self.loop.spans(len(self.ids))[: self.loop.rounds]
        return [math.exp(math.fsum(self.log_probs[start:stop])) for start, stop in spans]


def watch_circling(steps: Iterable[GenerationStep]) -> Iterator[Circling]:
    """Follow a generation and look for a circle after each token."""
    ids: list[int] = []
    tokens: list[bytes] = []
    log_probs: list[float] = []
    for step in steps:
        ids.append(step.token_id)
        tokens.append(step.token)
        log_probs.append(-float(distribution.loss_nats(step.logits, step.token_id)))
        yield Circling(tuple(ids), tuple(tokens), tuple(log_probs), find_loop(ids))


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
