"""How far two distributions are apart at each position: divergence both ways, total variation, flips, rank, margin.

Three kinds of pairs, told apart by what is known of each side:

- two whole distributions over one vocabulary: compared token by token;
- over two vocabularies: over the tokens both have, by their bytes, each side renormalised to those (`shared`);
- one of which a server told the most probable tokens only: over the tokens told, all others together as one more
  token (`told`). Both measures are then lower bounds: putting tokens together never makes them larger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from lmcore.distribution import check_logits

__all__ = ["Best", "Divergence", "shared", "told", "whole"]

_LN2 = math.log(2)
_NEAR = (2.0, 4.0, 8.0)  # nats
_MOST_NEAR = 1_000  # that are sorted


_N_BEST = 8


@dataclass(frozen=True, eq=False)
class Best:
    """The most probable tokens of two whole distributions over one vocabulary, at each of N places.

    Attributes:
        ids: int64 [N, 2 n], A's first n, the most probable first, then B's.
        log_a: float64 [N, 2 n], ln of A's probability of each.
        log_b: ln of B's.
    """

    ids: np.ndarray
    log_a: np.ndarray
    log_b: np.ndarray

    def at(self, place: int) -> tuple[dict[int, float], dict[int, float]]:
        """Return id -> ln P of A and of B at one place."""
        ids = self.ids[place].tolist()
        a, b = (dict(zip(ids, side[place].tolist(), strict=True)) for side in (self.log_a, self.log_b))
        return a, b


@dataclass(frozen=True, eq=False)
class Divergence:
    """Two distributions A and B at each of N places, an entry of every array a place.

    Attributes:
        kl_ab: KL(A‖B) in bits, float64.
        kl_ba: KL(B‖A) in bits.
        total_variation: half the sum of the absolute differences, from 0 to 1.
        first_a: A's most probable token, by id; of equal ones the lowest.
        first_b: B's, by B's ids.
        flips: whether these are two tokens.
        rank: the rank of B's first token under A, from 1; 0 where A does not have or does not tell it.
        margin: by how many bits A prefers its first token to its second, log2 of the ratio of their probabilities.
        largest: the largest difference of log-probabilities, in nats, over the tokens compared; NaN without any.
        covered_a: A's probability of the tokens compared one by one; 1 for a whole distribution.
        covered_b: B's.
        best: both sides' most probable tokens, where both distributions are whole and over one vocabulary.
    """

    kl_ab: np.ndarray
    kl_ba: np.ndarray
    total_variation: np.ndarray
    first_a: np.ndarray
    first_b: np.ndarray
    flips: np.ndarray
    rank: np.ndarray
    margin: np.ndarray
    largest: np.ndarray
    covered_a: np.ndarray
    covered_b: np.ndarray
    best: Best | None = None

    def __len__(self) -> int:
        return len(self.kl_ab)


_TYPES = {"first_a": np.int64, "first_b": np.int64, "rank": np.int64, "flips": np.bool_}


def _empty(n: int, best: Best | None = None) -> Divergence:
    names = [each.name for each in fields(Divergence) if each.name != "best"]
    return Divergence(**{name: np.zeros(n, _TYPES.get(name, np.float64)) for name in names}, best=best)


def whole(a: Tensor, b: Tensor) -> Divergence:
    """Compare rows of logits over one vocabulary.

    A row at a time in float64: what fits the cache is done several times as fast as the whole.

    Args:
        a, b: logits [N, V].

    Raises:
        ValueError: the shapes differ; see `lmcore.distribution.check_logits`.

    >>> import torch
    >>> found = whole(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, math.log(3)]]))
    >>> [round(float(value), 4) for value in (found.kl_ab[0], found.kl_ba[0], found.total_variation[0])]
    [0.2075, 0.1887, 0.25]
    """
    if a.shape != b.shape or a.ndim != 2:
        raise ValueError(f"a has shape {list(a.shape)} and b {list(b.shape)}: give two of the same, [N, V].")
    n, size = a.shape
    width = min(_N_BEST, size)
    best = Best(np.zeros((n, 2 * width), np.int64), *(np.zeros((n, 2 * width)) for _ in range(2)))
    found = _empty(n, best)
    found.covered_a[:], found.covered_b[:] = 1.0, 1.0
    left, right = (each.detach().float().numpy() for each in (a, b))
    (log_p, p), (log_q, q) = ((np.empty(size), np.empty(size)) for _ in range(2))
    for row in range(n):
        first_a, first_b = (_first(side[row], width) for side in (left, right))
        found.first_a[row], found.first_b[row] = first_a[0], first_b[0]
        found.margin[row] = _margin(left[row], first_a)
        possible = _normalise(left[row], log_p, p) & _normalise(right[row], log_q, q)
        if not possible:
            check_logits(a[row]), check_logits(b[row])  # raise for what is no distribution; -inf alone is one
        best.ids[row] = np.concatenate((first_a, first_b))
        best.log_a[row], best.log_b[row] = log_p[best.ids[row]], log_q[best.ids[row]]
        _compare_row(found, row, log_p, p, log_q, q, possible)
        own = left[row, found.first_b[row]]
        found.rank[row] = 1 + np.count_nonzero(left[row] > own)
        found.rank[row] += np.count_nonzero(left[row, : found.first_b[row]] == own)
    np.not_equal(found.first_a, found.first_b, out=found.flips)
    return found


def shared(a: Tensor, b: Tensor, groups_a: np.ndarray, groups_b: np.ndarray) -> Divergence:
    """Compare rows of logits over two vocabularies, over the tokens both have.

    Args:
        a: logits [N, V_a].
        b: logits [N, V_b].
        groups_a: int64 [V_a], a number for each token, the same on both sides for the same bytes; -1 for a token that
            the other side lacks. Several tokens of the same bytes count as one.
        groups_b: int64 [V_b].

    Raises:
        ValueError: no token is in both, or a row is no distribution: NaN, +inf, or -inf alone.
    """
    size = int(groups_a.max(initial=-1)) + 1
    if size == 0:
        raise ValueError("the two vocabularies have no token in common, so there is nothing to compare.")
    found = _empty(len(a))
    kept_a, kept_b = groups_a >= 0, groups_b >= 0
    for row, pair in enumerate(zip(a.detach(), b.detach(), strict=True)):
        check_logits(pair[0]), check_logits(pair[1])
        left, right = (each.double().numpy() for each in pair)
        p, q = (_softmax(each) for each in (left, right))
        first_a = _first(left, 2)
        found.first_a[row], found.margin[row] = first_a[0], _margin(left, first_a)
        found.first_b[row] = int(right.argmax())
        group_a, group_b = int(groups_a[found.first_a[row]]), int(groups_b[found.first_b[row]])
        found.flips[row] = group_a != group_b or group_a < 0
        both_p = np.bincount(groups_a[kept_a], p[kept_a], size)
        both_q = np.bincount(groups_b[kept_b], q[kept_b], size)
        found.covered_a[row], found.covered_b[row] = both_p.sum(), both_q.sum()
        both_p, both_q = both_p / max(both_p.sum(), 5e-324), both_q / max(both_q.sum(), 5e-324)
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log(both_p), np.log(both_q)
        _compare_row(found, row, log_p, both_p, log_q, both_q, False)
        if group_b >= 0:
            (same,) = np.nonzero(groups_a == group_b)
            found.rank[row] = 1 + np.count_nonzero(p > p[same].max())
    return found


def told(a: Sequence[Mapping[int, float]], b: Sequence[Mapping[int, float]]) -> Divergence:
    """Compare places of which log-probabilities of some tokens are known, the others together as one more token.

    Args:
        a: at each place id -> log-probability, of A's tokens that B told too, and of A's first two at least.
        b: the same of B, by the same ids.

    >>> found = told([{0: math.log(0.5), 1: math.log(0.25)}], [{0: math.log(0.25), 1: math.log(0.5)}])
    >>> round(float(found.kl_ab[0]), 4), float(found.total_variation[0]), bool(found.flips[0])
    (0.25, 0.25, True)
    """
    found = _empty(len(a))
    for row, (left, right) in enumerate(zip(a, b, strict=True)):
        if not left or not right:
            raise ValueError(f"nothing is known of place {row} on one side; leave it out.")
        order = sorted(left, key=lambda token: (-left[token], token))
        found.first_a[row], found.first_b[row] = order[0], min(right, key=lambda token: (-right[token], token))
        found.flips[row] = found.first_a[row] != found.first_b[row]
        found.margin[row] = (left[order[0]] - left[order[1]]) / _LN2 if len(order) > 1 else np.nan
        found.rank[row] = order.index(found.first_b[row]) + 1 if found.first_b[row] in left else 0
        both = [token for token in order if token in right]
        known_p, known_q = (np.array([side[token] for token in both], np.float64) for side in (left, right))
        found.covered_a[row], found.covered_b[row] = np.exp(known_p).sum(), np.exp(known_q).sum()
        with np.errstate(divide="ignore"):
            log_p, log_q = (np.append(known, np.log(max(1 - np.exp(known).sum(), 0.0))) for known in (known_p, known_q))
        found.largest[row] = math.nan
        if known_p.size:
            found.largest[row] = np.nanmax(np.abs(np.where(known_p == known_q, 0.0, known_p - known_q)))
        _compare_row(found, row, log_p, np.exp(log_p), log_q, np.exp(log_q), False, rest=True)
    return found


def _compare_row(
    found: Divergence,
    row: int,
    log_p: np.ndarray,
    p: np.ndarray,
    log_q: np.ndarray,
    q: np.ndarray,
    possible: bool,
    rest: bool = False,
) -> None:
    """Fill in one place; `possible` says that no token has probability 0, so that nothing is infinite. Uses up p, q."""
    if possible:
        difference = np.subtract(log_p, log_q, out=log_p)
        ab, ba = float((p * difference).sum()), -float((q * difference).sum())  # @ may take several threads, too
        found.largest[row] = max(difference.max(), -difference.min())
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            difference = np.where(log_p == log_q, 0.0, log_p - log_q)  # two times impossible is no difference
            ab, ba = float(np.where(p > 0, p * difference, 0.0).sum()), float(np.where(q > 0, -q * difference, 0).sum())
        if not rest:
            found.largest[row] = np.abs(difference).max(initial=0.0)
    # Rounding alone can put them a little below 0.
    found.kl_ab[row], found.kl_ba[row] = max(ab, 0.0) / _LN2, max(ba, 0.0) / _LN2
    found.total_variation[row] = np.abs(np.subtract(p, q, out=p), out=p).sum() / 2


def _normalise(logits: np.ndarray, log_probs: np.ndarray, probs: np.ndarray) -> bool:
    """Fill in log softmax and softmax, float64; return whether every logit is a finite number."""
    largest = float(logits.max())
    with np.errstate(invalid="ignore"):
        np.subtract(logits, largest, out=log_probs, dtype=np.float64)  # without dtype NumPy subtracts in float32
        # torch's softmax of one row is in one thread. Its exp is not, and two threads that wait for each other at every
        # row take ten times as long and more where other programs run. NumPy's exp takes three times as long.
        torch.softmax(torch.from_numpy(log_probs), -1, out=torch.from_numpy(probs))
        log_probs += math.log(probs.max())  # of exp(0) over the sum
    return math.isfinite(largest) and math.isfinite(float(logits.min()))


def _softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def _first(logits: np.ndarray, n: int) -> np.ndarray:
    """Return the ids of the n most probable tokens, the most probable first, of equal ones the lowest id.

    Most often these are among the few that are within some nats of the first, which are found five times as fast as
    the n largest of all. A row with NaN has an answer too, and is refused later.
    """
    largest = logits.max()
    for nats in _NEAR:
        near = np.flatnonzero(logits >= largest - nats)
        if n <= len(near) <= _MOST_NEAR:
            break
    else:
        near = np.flatnonzero(~(logits < np.partition(logits, -n)[-n]))
    return near[np.argsort(-logits[near], kind="stable")[:n]]


def _margin(logits: np.ndarray, first: np.ndarray) -> float:
    """Return by how many bits the most probable token is before the second."""
    return (float(logits[first[0]]) - float(logits[first[1]])) / _LN2 if len(first) > 1 else math.inf
