"""Likeness of vectors: cosine and dot product, nearest neighbours, vector arithmetic.

Everything is computed in float64, in the space of the vectors themselves and over every row of the table: a map in
two dimensions is for looking, not for measuring.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

Measure = Literal["cosine", "dot"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


@dataclass(frozen=True)
class Neighbours:
    """Rows of a table by falling likeness: their ids and scores, float64."""

    ids: Tensor
    scores: Tensor


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """Return the cosine of the angle between vectors: a·b / (|a| |b|), NaN where a vector is zero.

    Args:
        a, b: [..., D], broadcast against one another.

    Returns:
        [...] float64, from -1 to 1.

    >>> cosine(torch.tensor([1.0, 0.0]), torch.tensor([[2.0, 0.0], [0.0, 5.0], [-3.0, 0.0]])).tolist()
    [1.0, 0.0, -1.0]
    """
    a, b = a.double(), b.double()
    # Each is brought to length 1 first, so that neither very long nor very short vectors overflow the product.
    product = (a / a.norm(dim=-1, keepdim=True) * (b / b.norm(dim=-1, keepdim=True))).sum(-1)
    return product.clamp(-1.0, 1.0)


def likeness(table: Tensor, vector: Tensor, measure: Measure = "cosine") -> Tensor:
    """Return how alike a vector is to every row of a table.

    Args:
        table: [V, D].
        vector: [D].
        measure: "cosine", the angle alone; or "dot", which also grows with the row's length.

    Returns:
        [V] float64.

    Raises:
        ValueError: for an unknown measure.
    """
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}, got {measure!r}.")
    return cosine(table, vector) if measure == "cosine" else table.double() @ vector.double()


def neighbours(
    table: Tensor, vector: Tensor, n: int, measure: Measure = "cosine", exclude: Collection[int] = ()
) -> Neighbours:
    """Return the n rows most alike to a vector, the most alike first, equal scores by ascending id.

    Args:
        table: [V, D]; every row is compared.
        vector: [D].
        n: how many; fewer come back when fewer rows are left.
        measure: "cosine" or "dot".
        exclude: ids left out, usually the token itself.

    Raises:
        ValueError: for n below 1, an unknown measure, or an excluded id that is not a row.

    >>> table = torch.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
    >>> neighbours(table, table[0], 2, exclude={0}).ids.tolist()
    [1, 2]
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}.")
    scores = likeness(table, vector, measure)
    keep = torch.ones(len(table), dtype=torch.bool)
    for row in exclude:
        if not 0 <= row < len(table):
            raise ValueError(f"exclude names row {row}; the table has rows 0 to {len(table) - 1}.")
        keep[row] = False
    ids = keep.nonzero().flatten()
    order = ids[scores[ids].sort(descending=True, stable=True).indices][:n]
    return Neighbours(order, scores[order])


def combine(table: Tensor, plus: Sequence[int], minus: Sequence[int] = ()) -> Tensor:
    """Return the sum of some rows less the sum of others, float64 [D].

    The sum is of the rows as they are; Mikolov et al. 2013 (NAACL, section 4) bring them to length 1 first.

    >>> combine(torch.eye(3), plus=[0, 2], minus=[1]).tolist()
    [1.0, -1.0, 1.0]
    """
    rows = table.double()
    return rows[list(plus)].sum(0) - rows[list(minus)].sum(0)


def rank_of(scores: Tensor, row: int, exclude: Collection[int] = ()) -> int:
    """Return the rank of a row among scores, 1 for the highest, leaving out the excluded; equals share no rank.

    Args:
        scores: [V].
        row: the row asked for.
        exclude: rows that are not counted.

    >>> rank_of(torch.tensor([0.2, 0.9, 0.5]), 0), rank_of(torch.tensor([0.2, 0.9, 0.5]), 0, exclude={1})
    (3, 2)
    """
    ids = torch.arange(len(scores))
    before = (scores > scores[row]) | ((scores == scores[row]) & (ids < row))
    before[list(exclude)] = False
    return 1 + int(before.sum())
