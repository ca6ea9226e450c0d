"""A continuation that a search considers, and how probable the model takes it to be."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """Some tokens after a prompt.

    Attributes:
        ids: the tokens.
        log_probs: ln P of each, given the prompt and the tokens before it, at temperature 1.
        ended: whether the last one is a stop token.
    """

    ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    ended: bool = False

    @property
    def log_prob(self) -> float:
        """ln P of all of it: the sum."""
        return math.fsum(self.log_probs)

    @property
    def prob(self) -> float:
        """P of all of it: the product."""
        return math.exp(self.log_prob)

    def followed_by(self, token_id: int, log_prob: float, ended: bool = False) -> Hypothesis:
        """Return this with one token more.

        >>> Hypothesis((3,), (-1.0,)).followed_by(5, -0.5).log_prob
        -1.5
        """
        return Hypothesis((*self.ids, token_id), (*self.log_probs, log_prob), ended)


def best(hypotheses: list[Hypothesis], n: int) -> list[Hypothesis]:
    """Return the n most probable, the most probable first; of equal ones the lower ids first."""
    return sorted(hypotheses, key=lambda each: (-each.log_prob, each.ids))[:n]
