"""How much attention goes how far back: the mean pattern weight at each distance of query and key."""

from __future__ import annotations

import torch
from torch import Tensor


def attention_by_distance(pattern: Tensor) -> Tensor:
    """Return the mean weight at each distance query - key, over the queries that have a key so far back.

    Args:
        pattern: [..., query, key], causal, as many keys as queries.

    Returns:
        float64 [..., distance], distance 0 ... S - 1.

    >>> attention_by_distance(torch.tensor([[1.0, 0.0], [0.25, 0.75]])).tolist()
    [0.875, 0.25]
    """
    weights = pattern.double()
    return torch.stack([weights.diagonal(-distance, -2, -1).mean(-1) for distance in range(pattern.shape[-1])], -1)


def even_attention_by_distance(length: int) -> Tensor:
    """Return the same for attention that weighs all keys it sees alike, float64 [length].

    >>> even_attention_by_distance(2).tolist()
    [0.75, 0.5]
    """
    return attention_by_distance(torch.ones(length, length).tril() / torch.arange(1, length + 1)[:, None])


def mean_distance(pattern: Tensor) -> Tensor:
    """Return how far back a query looks on the average, in tokens: distance times weight, averaged over the queries.

    Args:
        pattern: [..., query, key], causal.

    >>> mean_distance(torch.tensor([[1.0, 0.0], [0.25, 0.75]])).item()
    0.125
    """
    positions = torch.arange(pattern.shape[-1], dtype=torch.float64)
    distance = positions[:, None] - positions
    return (pattern.double() * distance).sum(-1).mean(-1)
