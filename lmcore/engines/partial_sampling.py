"""Temperature and filters on a distribution of which only the most probable N of V tokens are known.

What a filter keeps is often certain although the tail is not, and then so is everything after it: of the k most
probable tokens, k at most N, all is known at any temperature. Where it is not certain, the truth lies between bounds.

The order is temperature, top-k, top-p, min-p; since temperature keeps the order of tokens, top-k may come first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lmcore.distribution.partial import Interval, KeptCount, PartialDistribution


@dataclass(frozen=True)
class PartialReshaped:
    """What the settings make of it.

    Attributes:
        low: the least probability each known token can have at the end, float64 [N].
        high: the most.
        kept: how many tokens are kept, at least and at most.
        rest: the probability that the tokens not known have together at the end.
        removed: the probability, at this temperature, of what the filters remove.
        entropy_bits: the entropy at the end.
    """

    low: Tensor
    high: Tensor
    kept: KeptCount
    rest: Interval
    removed: Interval
    entropy_bits: Interval

    @property
    def exact(self) -> bool:
        """Whether nothing in it depends on the tail."""
        counted = self.kept.low == self.kept.high and self.entropy_bits.exact
        return counted and bool((self.high - self.low).abs().max() <= 1e-12)


def reshape_partial(
    known: PartialDistribution, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
) -> PartialReshaped:
    """Return what temperature, top-k, top-p and min-p make of a distribution, as far as it is known.

    Args:
        known: its most probable tokens at temperature 1.
        temperature: 0 is greedy.
        top_k: 0 is off.
        top_p: 1 is off; 0 keeps one token.
        min_p: 0 is off.

    Raises:
        ValueError: for a temperature that is negative or infinite.

    >>> known = PartialDistribution(torch.tensor([0.5, 0.25, 0.15]).log(), vocab_size=100)
    >>> [round(float(p), 4) for p in reshape_partial(known, 0.5, top_k=2).low], reshape_partial(known, 0.5).exact
    ([0.8, 0.2, 0.0], False)
    """
    n, size = len(known.log_probs), known.vocab_size
    if temperature == 0:
        temperature, top_k = 1.0, 1
    weights = _weights(known, temperature)
    tail = _tail_weight(known, weights, temperature)
    if not top_k or top_k >= size:
        return _filtered(weights, tail, None, size, top_p, min_p, known.entropy_bits(temperature))
    if top_k <= n:
        # Beyond the k-th nothing is kept, so that nothing of the tail is left.
        none, first = Interval(0.0, 0.0), weights[:top_k]
        entropy = Interval(_entropy(first), _entropy(first))
        found = _filtered(first, none, _plus(tail, weights[top_k:].sum().item()), top_k, top_p, min_p, entropy)
        gone = torch.zeros(n - top_k, dtype=torch.float64)
        return replace(found, low=torch.cat([found.low, gone]), high=torch.cat([found.high, gone]))
    # k lies in the tail: its k - N largest have at least their part of it, and each at most what the N-th has.
    kept = top_k - n
    within = Interval(tail.low * kept / (size - n), min(tail.high, kept * weights[-1].item()))
    beyond = Interval(max(tail.low - within.high, 0.0), tail.high * (1 - kept / (size - n)))
    entropy = Interval(_entropy(weights), known.entropy_bits(temperature).high)
    return _filtered(weights, within, beyond, top_k, top_p, min_p, entropy)


def _filtered(
    weights: Tensor, tail: Interval, gone: Interval | None, size: int, top_p: float, min_p: float, entropy: Interval
) -> PartialReshaped:
    """Top-p and min-p on `size` tokens, whose first are known.

    Args:
        weights: of the known ones, descending, in units of the first.
        tail: of all others together.
        gone: of what an earlier filter removed; None where there was none.
        size: how many there are.
        top_p, min_p: the filters.
        entropy: of the `size` tokens.
    """
    n, total = len(weights), weights.sum().item()
    before = gone or Interval(0.0, 0.0)
    low_p, high_p = weights / (total + tail.high), weights / (total + tail.low)
    rest = Interval(tail.low / (total + tail.low), tail.high / (total + tail.high))
    counts = [KeptCount(size, size)]
    if top_p < 1:
        counts.append(KeptCount(_reaching(high_p, top_p, min(n + 1, size)), _reaching(low_p, top_p, size)))
    if min_p > 0:
        likely = max(int((weights >= min_p).sum()), 1)
        counts.append(KeptCount(likely, size if likely == n else likely))
    kept = KeptCount(min(count.low for count in counts), min(count.high for count in counts))

    def share(weight: Interval) -> Interval:
        """What a removed weight is of everything, at this temperature."""
        everything = Interval(total + tail.low + before.low, total + tail.high + before.high)
        return Interval(weight.low / everything.high, min(weight.high / everything.low, 1.0))

    if kept.low >= size:  # nothing more is removed
        return PartialReshaped(low_p, high_p, kept, rest, share(before), entropy)
    sums, place = weights.cumsum(0), torch.arange(n)
    least, most = min(kept.low, n), min(kept.high, n)  # of the known ones these are kept for certain, and at most
    high = torch.where(place < most, weights / sums.clamp(min=sums[least - 1].item()), 0.0)
    if kept.high <= n:
        low = torch.where(place < least, weights / sums[most - 1], 0.0)
        removed = Interval(total - sums[most - 1].item() + tail.low, total - sums[least - 1].item() + tail.high)
        entropy = Interval(_entropy(weights[:least]), _entropy(weights[:most]))
        return PartialReshaped(low, high, kept, Interval(0.0, 0.0), share(_sum(removed, before)), entropy)
    low = torch.where(place < least, low_p, 0.0)
    rest = Interval(0.0, rest.high)
    at_most = total - sums[least - 1].item() + tail.high
    if min_p == 0:  # top-p keeps at least its own share of them
        high = torch.minimum(high, high_p / max(top_p, 1e-300))
        at_most = min(at_most, (1 - top_p) * (total + tail.high))
        if kept.low > n:
            rest = Interval(max(1 - (1 - tail.low / (total + tail.low)) / top_p, 0.0), rest.high)
    removed = Interval(0.0, at_most)
    entropy = Interval(_entropy(weights[:least]), entropy.high)
    return PartialReshaped(low, high, kept, rest, share(_sum(removed, before)), entropy)


def _reaching(probs: Tensor, top_p: float, otherwise: int) -> int:
    """How many it takes to reach top_p; at least one."""
    reached = (probs.cumsum(0) >= top_p).nonzero()
    return int(reached[0]) + 1 if len(reached) else otherwise


def _weights(known: PartialDistribution, temperature: float) -> Tensor:
    """p^(1/T) of the known tokens, in units of the largest."""
    if not 0 < temperature < math.inf:
        raise ValueError(f"temperature must be a number from 0 on, got {temperature!r}.")
    return ((known.log_probs - known.log_probs[0]) / temperature).exp()


def _tail_weight(known: PartialDistribution, weights: Tensor, temperature: float) -> Interval:
    """The same of all others together, from the share they have."""
    total, share = weights.sum().item(), known.tail_probs(temperature)
    return Interval(total * share.low / (1 - share.low), total * share.high / (1 - share.high))


def _plus(interval: Interval, more: float) -> Interval:
    return Interval(interval.low + more, interval.high + more)


def _sum(one: Interval, other: Interval) -> Interval:
    return Interval(one.low + other.low, one.high + other.high)


def _entropy(weights: Tensor) -> float:
    return torch.special.entr(weights / weights.sum()).sum().item() / math.log(2)
