"""The order of tokens by logit or probability: rank, the top n, the k largest of many without a sort."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from lmcore.distribution.checks import ArrayLike, as_tensor

__all__ = ["Top", "largest", "rank", "top"]


def rank(scores: ArrayLike, token_id: int) -> int:
    """Rank of a token by falling logit or probability; of equal tokens the lower id comes first.

    Args:
        scores: `[V]` logits or probabilities.
        token_id: The token.

    Returns:
        1 for the most probable token, V for the last.

    Raises:
        ValueError: scores has another shape or holds NaN; or the id is outside the vocabulary.

    >>> rank([0.2, 0.5, 0.2], 0), rank([0.2, 0.5, 0.2], 2)
    (2, 3)
    """
    values = _one_row(scores)
    if not 0 <= token_id < len(values):
        raise ValueError(f"token_id is {token_id}: ids of this vocabulary run from 0 to {len(values) - 1}.")
    own = values[token_id]
    return 1 + int((values > own).sum()) + int((values[:token_id] == own).sum())


class Top(NamedTuple):
    """The n most probable tokens, most probable first: `ids` int64 `[n]`, `values` `[n]`."""

    ids: Tensor
    values: Tensor


def top(scores: ArrayLike, n: int) -> Top:
    """The n tokens with the largest logits or probabilities; of equal tokens the lower id comes first.

    Args:
        scores: `[V]` logits or probabilities.
        n: How many; more than V gives all V.

    Returns:
        `Top(ids, values)`, both `[min(n, V)]`, by falling value.

    Raises:
        ValueError: n below 1; scores has another shape or holds NaN.

    >>> top([0.1, 0.4, 0.1, 0.4], 3).ids.tolist()
    [1, 3, 0]
    """
    values = _one_row(scores)
    if n < 1:
        raise ValueError(f"n is {n}: ask for at least 1 token.")
    ids = largest(values, n) if n < len(values) else torch.arange(len(values))
    order = torch.sort(values[ids], descending=True, stable=True).indices  # ids rise, so stable puts lower ids first
    return Top(ids[order], values[ids[order]])


def largest(values: Tensor, k: int, ties: Literal["lowest", "all"] = "lowest") -> Tensor:
    """Positions of the k largest values, ascending, without sorting all of them.

    Args:
        values: `[n]`, no NaN.
        k: How many, `1 <= k < n`.
        ties: What happens to values equal to the k-th: "lowest" keeps exactly k, lower positions first;
            "all" keeps every one of them, so more than k may come back.

    Returns:
        `[k]` int64 (or more with ties="all"), ascending.

    >>> largest(torch.tensor([1, 2, 2, 2, 3]), 3).tolist(), largest(torch.tensor([1, 2, 2, 2, 3]), 3, "all").tolist()
    ([1, 2, 4], [1, 2, 3, 4])
    """
    best, positions = _topk(values, k + 1)  # one more than asked: it shows whether the k-th is tied
    last, following = best[-2:].tolist()
    if last > following:
        return torch.sort(positions[:k]).values
    if ties == "all":
        return (values >= last).nonzero().squeeze(1)
    above = (values > last).nonzero().squeeze(1)
    tied = (values == last).nonzero().squeeze(1)
    return torch.sort(torch.cat([above, tied[: k - len(above)]])).values


def _topk(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Do what `torch.topk` does; several times faster where k is small beside the number of values.

    Lay the values out as a grid. Each of the k columns with the largest maxima holds a value at least as large as
    anything in the other columns, so the k largest of all are found within those k columns.
    """
    width = math.isqrt(len(values) // k)
    if width < 8:
        best, positions = torch.topk(values, k)
        return best, positions
    columns = len(values) // width
    grid = values[: width * columns].view(width, columns)
    best_columns = torch.topk(grid.amax(dim=0), k, sorted=False).indices
    in_grid = (torch.arange(width).unsqueeze(1) * columns + best_columns).view(-1)
    pool = torch.cat([in_grid, torch.arange(width * columns, len(values))])
    best, within_pool = torch.topk(values.index_select(0, pool), k)
    return best, pool.index_select(0, within_pool)


def _one_row(scores: ArrayLike) -> Tensor:
    values = as_tensor(scores, "scores")
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"scores has shape {list(values.shape)}: give one position, [V] with V at least 1.")
    if bool(torch.isnan(values).any()):
        raise ValueError("scores holds NaN: tokens cannot be put in order by it.")
    return values
