"""Keep the first tokens of some order until their probability adds up: the core of top-p and of typical sampling."""

from __future__ import annotations

import heapq
from typing import Literal

import torch
from torch import Tensor

__all__ = ["Boundary", "first_until_mass", "fit_within", "goes_without"]

Boundary = Literal["reach", "exceed", "dropped"]
Ties = Literal["lowest", "highest", "all"]

SORT_AT_ONCE = 4096
BUCKETS = 2048
WEIGHTY = 1000  # a token lighter than so many tolerances is no matter of a boundary given in decimals
WIDEST = 50.0  # in nats; tokens e**-50 times less probable than the first share one last bucket


def first_until_mass(
    scores: Tensor,
    weights: Tensor,
    mass: float,
    *,
    boundary: Boundary = "reach",
    ties: Ties = "lowest",
    tolerance: float = 0.0,
) -> Tensor:
    """Positions of the tokens that enter, by falling score, until their share of the weight is `mass`.

    Only the stretch around the boundary is sorted. The scores are first thrown into buckets; the weight of whole
    buckets says in which bucket the boundary lies, everything before it is in, everything behind it is out. Sums are
    float64, over unnormalised weights and divided last: equal tokens weigh exactly 1, so k of n of them have exactly
    the share k / n, where adding up n-ths would miss it by a rounding error.

    Args:
        scores: `[n]` float64: the order of entry, highest first.
        weights: `[n]` float64, 0 or more, some of them positive.
        mass: Share of the total weight, from 0 to 1.
        boundary: "reach" stops once the share is `mass` or more; "exceed" once it is more; "dropped" stops before
            the token that would reach it.
        ties: Of equal scores, "lowest" or "highest" position enters first; "all" lets every one of them in.
        tolerance: By how much the share before the token that reaches the mass may miss it and still count as reaching
            it, so that this token stays out; only if it weighs much more than that itself.

    Returns:
        Ascending int64 positions, at least one.

    >>> p = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    >>> first_until_mass(p, p, 0.8).tolist()
    [0, 1, 2]
    """
    total = weights.sum().item()
    kept, edge, before = _around_boundary(scores, weights, mass, total, boundary)
    if ties == "highest":
        edge = edge.flip(0)
    order = edge[torch.sort(scores.index_select(0, edge), descending=True, stable=True).indices]
    shares = torch.cumsum(weights.index_select(0, order), dim=0).add_(before).div_(total)
    # searchsorted counts the shares below the mass, or not above it: the tokens that enter without question.
    count = int(torch.searchsorted(shares, mass, right=boundary == "exceed"))
    if boundary != "dropped":
        count = min(count + 1, len(order))
    if boundary == "reach" and count > 0 and tolerance > 0:
        sums = [before / total, *shares[max(count - 2, 0) : count].tolist()]
        count -= sums[-2] >= mass - tolerance and sums[-1] - sums[-2] > WEIGHTY * tolerance
    if count == 0 and not bool(kept.any()):
        count = 1
    kept.index_fill_(0, order[:count], True)
    if ties == "all" and 0 < count < len(order):
        kept |= scores == scores[order[count - 1]]
    return kept.nonzero().squeeze(1)


def goes_without(before: Tensor, weight: Tensor, mass: float, tolerance: float, guard: float) -> tuple[Tensor, Tensor]:
    """Say of many positions whether `first_until_mass` leaves the token that reaches the mass out.

    Args:
        before: `[N]` float64, the share before that token.
        weight: `[N]` float64, its own share.
        mass, tolerance: As there.
        guard: How near a share may come to a boundary before rounding could decide.

    Returns:
        `[N]` whether it stays out, and `[N]` where rounding could decide.
    """
    near = ((before - mass + tolerance).abs() < guard) | ((weight - WEIGHTY * tolerance).abs() < guard)
    return (before >= mass - tolerance) & (weight > WEIGHTY * tolerance), near


def _around_boundary(
    scores: Tensor, weights: Tensor, mass: float, total: float, boundary: Boundary
) -> tuple[Tensor, Tensor, float]:
    """Mask of those surely in, positions of those around the boundary, and the weight of the first."""
    if len(scores) > SORT_AT_ONCE:
        low, high = (bound.item() for bound in torch.aminmax(scores))
        width = min(high - low, WIDEST)
        if width > 1e-30:  # else all scores are equal, or as good as equal: they are sorted
            # float32 will do: it rounds, but never puts a lower score into an earlier bucket.
            depths = scores.to(torch.float32).neg_().add_(high)
            buckets = depths.mul_((BUCKETS - 1) / width).clamp_(0, BUCKETS - 1).to(torch.int32)
            sums = torch.bincount(buckets, weights=weights, minlength=BUCKETS).cumsum(0)
            crossing = min(int(torch.searchsorted(sums / total, mass, right=boundary == "exceed")), BUCKETS - 1)
            before = sums[crossing - 1].item() if crossing else 0.0
            return buckets < crossing, (buckets == crossing).nonzero().squeeze(1), before
    return torch.zeros(len(scores), dtype=torch.bool), torch.arange(len(scores)), 0.0


def fit_within(weights: Tensor, mass: float, arrival: Tensor, least: float = 1e-6) -> Tensor:
    """Positions kept by exllamav2's top-p: a heap whose share of the weight stays within `mass`.

    Tokens arrive one by one and join the heap; while the sum is above `mass` the smallest leaves for good. The token
    that crosses is thus dropped, and one after it may still fit, so that the kept set can have a hole. Until the sum
    first crosses nothing can leave, so that stretch is found by a cumulative sum; behind it, a token that neither fits
    nor is larger than the smallest would join and leave at once, and is passed over.

    Args:
        weights: `[n]` float64, 0 or more, some of them positive.
        mass: The most the kept tokens may weigh together, as a share of all; one token is always kept.
        arrival: `[n]` positions in the order of arrival.
        least: Tokens with a smaller share than this never join.

    Returns:
        Ascending int64 positions, at least one.

    Source: top_p_cpu in exllamav2_ext/cpp/sampling.cpp of exllamav2, read; in float64 here, float32 there.

    >>> fit_within(torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64), 0.86, torch.arange(4)).tolist()
    [0, 1, 3]
    """
    total = weights.sum().item()
    in_order = weights[arrival]
    eligible = in_order / total >= least
    arrival, in_order = arrival[eligible], in_order[eligible]
    if not len(arrival):
        return weights.argmax().unsqueeze(0)
    sums = in_order.cumsum(0)
    bulk = max(int(torch.searchsorted(sums / total, mass, right=True)), 1)
    heap = list(zip(in_order[:bulk].tolist(), arrival[:bulk].tolist(), strict=True))
    heapq.heapify(heap)
    used = sums[bulk - 1].item()
    for weight, position in zip(in_order[bulk:].tolist(), arrival[bulk:].tolist(), strict=True):
        if weight < heap[0][0] and (used + weight) / total > mass:
            continue
        heapq.heappush(heap, (weight, position))
        used += weight
        while used / total > mass and len(heap) > 1:
            used -= heapq.heappop(heap)[0]
    return torch.tensor(sorted(position for _, position in heap))
