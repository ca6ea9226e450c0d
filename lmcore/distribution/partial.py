"""A distribution of which only the most probable tokens are known: what follows exactly, and what within bounds.

A server returns the log-probabilities of the N most probable of V tokens. Their probabilities at temperature 1 are then
exact, and so is the sum of all others; of each other one only that it is at most the N-th. Whatever depends on how that
sum is spread lies between two extremes: spread evenly over all V - N, or heaped on as few of them as that limit allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Interval", "KeptCount", "PartialDistribution"]

_ROUNDING = 1e-5  # log-probabilities arrive in float32: their sum may pass 1 by this much


class Interval(NamedTuple):
    """Two bounds between which the truth lies; equal when it is known."""

    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether the bounds are one number, but for rounding.

        >>> Interval(0.5, 0.5).exact, Interval(0.5, 0.6).exact
        (True, False)
        """
        return self.high - self.low <= 1e-12 * max(1.0, abs(self.high))


class KeptCount(NamedTuple):
    """How many tokens a filter keeps, at least and at most; `high` may lie beyond the tokens that are known."""

    low: int
    high: int


@dataclass(frozen=True)
class PartialDistribution:
    """The most probable N tokens of a distribution over V, at temperature 1.

    Args:
        log_probs: natural logarithms [N], descending.
        vocab_size: V.

    Raises:
        ValueError: for log-probabilities that are not descending, not finite, or cannot be the largest N of V.

    >>> known = PartialDistribution(torch.tensor([0.5, 0.3]).log(), vocab_size=4)
    >>> round(known.tail_mass, 6), [round(float(x), 4) for x in known.tail_probs(0.5)]
    (0.2, [0.0556, 0.1053])
    """

    log_probs: Tensor
    vocab_size: int

    def __post_init__(self) -> None:
        log_probs = torch.as_tensor(self.log_probs, dtype=torch.float64)
        object.__setattr__(self, "log_probs", log_probs)
        n = len(log_probs)
        if not 1 <= n <= self.vocab_size:
            raise ValueError(f"{n} log-probabilities were given for {self.vocab_size} tokens; give 1 to that many.")
        if not log_probs.isfinite().all() or (log_probs.diff() > 0).any():
            raise ValueError("log_probs must be finite and descend; sort them, and leave out what is impossible.")
        if log_probs.exp().sum() > 1 + _ROUNDING:
            raise ValueError(f"log_probs add up to a probability of {log_probs.exp().sum():.6f}, more than 1.")
        if self.tail_mass > self.tail_size * self._limit * (1 + _ROUNDING) + _ROUNDING:
            raise ValueError(
                f"the {self.tail_size} tokens that are not given would have to share {self.tail_mass:.6f}, more than "
                f"each being at most {self._limit:.6f} allows; are these the most probable ones?"
            )

    @property
    def tail_size(self) -> int:
        """How many tokens are not known."""
        return self.vocab_size - len(self.log_probs)

    @property
    def tail_mass(self) -> float:
        """The probability of all tokens that are not known together, at temperature 1."""
        return max(1 - self.log_probs.exp().sum().item(), 0.0) if self.tail_size else 0.0

    @property
    def _limit(self) -> float:
        return math.exp(self.log_probs[-1])

    def probs(self, temperature: float) -> tuple[Tensor, Tensor]:
        """Return the lower and the upper bound of each known token's probability, float64 [N] each.

        At temperature 1, and wherever nothing is unknown, they are equal.
        """
        weights, tail = self._weights(temperature), self._tail_weight(temperature)
        return weights / (weights.sum() + tail.high), weights / (weights.sum() + tail.low)

    def tail_probs(self, temperature: float) -> Interval:
        """Return the bounds of the probability that the tokens not known have together."""
        known, tail = self._weights(temperature).sum().item(), self._tail_weight(temperature)
        return Interval(tail.low / (known + tail.low), tail.high / (known + tail.high))

    def entropy_bits(self, temperature: float = 1.0) -> Interval:
        """Return the bounds of the entropy, in bits.

        With w the tail's share, H = h(w) + (1 - w) H_known + w H_tail (the chain rule), h the entropy of a yes or
        no. The tail's own entropy is at most log2 of its size, and at least -log2 of its largest possible share.
        """
        known = torch.special.entr(self._weights(temperature) / self._weights(temperature).sum()).sum().item()
        known /= math.log(2)
        share = self.tail_probs(temperature)
        if share.high == 0:
            return Interval(known, known)
        at_least = max(math.log2(self._tail_weight(temperature).low / self._limit_weight(temperature) or 1), 0.0)
        at_most = math.log2(self.tail_size)

        def entropy(w: float, tail: float) -> float:
            return _entropy_of_two(w) + (1 - w) * known + w * tail

        steepest = 1 / (1 + 2 ** min(known - at_most, 1000.0))  # where the concave sum is greatest in w
        return Interval(
            min(entropy(share.low, at_least), entropy(share.high, at_least)),
            entropy(min(max(steepest, share.low), share.high), at_most),
        )

    def top_p_count(self, top_p: float, temperature: float = 1.0) -> KeptCount:
        """Return how many tokens, from the most probable on, it takes to reach `top_p`; the crossing one counts."""
        low, high = (bound.cumsum(0) for bound in self.probs(temperature))
        return KeptCount(self._first_reaching(top_p, high), self._first_reaching(top_p, low, self.vocab_size))

    def min_p_count(self, min_p: float, temperature: float = 1.0) -> KeptCount:
        """Return how many tokens have at least `min_p` times the probability of the most probable one."""
        kept = int((self._weights(temperature) >= min_p).sum())
        beyond = kept == len(self.log_probs)
        return KeptCount(kept, self.vocab_size if beyond else kept)

    def _first_reaching(self, top_p: float, cumulative: Tensor, otherwise: int | None = None) -> int:
        reached = (cumulative >= top_p).nonzero()
        if len(reached):
            return int(reached[0]) + 1
        # With all tokens known the last one crosses, whatever rounding says.
        return min(len(cumulative) + 1, self.vocab_size) if otherwise is None else otherwise

    def _weights(self, temperature: float) -> Tensor:
        """p^(1/T) of the known tokens, in units of the largest."""
        if not 0 < temperature < math.inf:
            raise ValueError(f"temperature must be a positive number, got {temperature!r}; 0 is greedy, and exact.")
        return ((self.log_probs - self.log_probs[0]) / temperature).exp()

    def _limit_weight(self, temperature: float) -> float:
        return self._weights(temperature)[-1].item()

    def _tail_weight(self, temperature: float) -> Interval:
        """The bounds of the sum of p^(1/T) over the tail, in the same units.

        p^(1/T) is convex below temperature 1 and concave above, so the even spread and the heap are its extremes
        (Karamata's inequality).
        """
        mass = min(self.tail_mass, self.tail_size * self._limit)
        if mass == 0:
            return Interval(0.0, 0.0)
        limit = self._limit_weight(temperature)
        shares = mass / self._limit  # the tail's mass in units of the most that one token of it may have
        even = self.tail_size * limit * (shares / self.tail_size) ** (1 / temperature)
        full = math.floor(shares)
        # What rounding left of a whole share is none: a root of it would be a token of weight.
        rest = shares - full if shares - full > _ROUNDING else 0.0
        heap = limit * (full + rest ** (1 / temperature))
        if temperature == 1:
            return Interval(even, even)
        return Interval(min(even, heap), even) if temperature > 1 else Interval(even, max(even, heap))


def _entropy_of_two(w: float) -> float:
    return -sum(p * math.log2(p) for p in (w, 1 - w) if p > 0)
