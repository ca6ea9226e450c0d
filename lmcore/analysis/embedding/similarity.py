"""Similarity of vectors: cosine and dot product, nearest neighbours, vector arithmetic.

Every row of the table is compared, in the space of the vectors themselves: a map in two dimensions is for looking,
not for measuring. Scores are float64. To be quick over a vocabulary of a quarter of a million rows, a first pass in
the table's own precision finds which rows can be among the nearest at all, and only those are computed in float64.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

Measure = Literal["cosine", "dot"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
_ROWS_AT_A_TIME = 16_384  # of a table of half precision, brought to float32


@dataclass(frozen=True)
class Neighbours:
    """Rows of a table by decreasing similarity: their ids and scores, float64."""

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
    """Return the similarity of a vector to every row of a table.

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


def row_lengths(table: Tensor) -> Tensor:
    """Return the lengths [V] of a table's rows; of half precision in float32.

    >>> row_lengths(torch.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [5.0, 1.0]
    """
    return torch.cat([rows.norm(dim=-1) for rows in _parts(table)])


def spread(table: Tensor) -> float:
    """Return the standard deviation of all numbers of a table, as `table.double().std()` without copying it whole.

    >>> round(spread(torch.tensor([[1.0, 3.0], [1.0, 3.0]])), 4)  # the square root of 4 / 3
    1.1547
    """
    mean = sum(rows.sum(dtype=torch.float64) for rows in table.split(_ROWS_AT_A_TIME)) / table.numel()
    squares = sum((rows.double() - mean).square().sum() for rows in table.split(_ROWS_AT_A_TIME))
    return (squares / (table.numel() - 1)).sqrt().item()


def _parts(table: Tensor) -> Iterator[Tensor]:
    """Yield the table, or one of half precision in float32 a part at a time: it may be as large as memory allows."""
    if table.dtype in (torch.float32, torch.float64):
        yield table
    else:
        yield from (rows.float() for rows in table.split(_ROWS_AT_A_TIME))


class RowComparison:
    """A vector against every row of a table: one pass over the table, then any question about who is near.

    The pass is NumPy's: its product of rows reads a table at twice the speed of torch's matrix times vector, and the
    short steps after it do not wait for a second thread that a busy machine lets run late.

    Args:
        table: [V, D]; every row is compared. By cosine a row of zeros has no likeness, and comes last.
        vector: [D].
        norms: [V], the rows' lengths as `row_lengths` gives them, when they are known already.
    """

    def __init__(self, table: Tensor, vector: Tensor, norms: Tensor | None = None) -> None:
        self._table, self._vector = table, vector
        self._norms = (row_lengths(table) if norms is None else norms).numpy()
        direction = vector.double() / vector.double().norm()
        self._products = np.concatenate(
            [np.vecdot(rows.numpy(), direction.to(rows.dtype).numpy()) for rows in _parts(table)]
        )
        # Higham 2002, section 3.1: a sum of D products is off by at most D units of rounding times the lengths.
        self._units = 2 * (table.shape[1] + 4) * float(np.finfo(self._products.dtype).eps)

    def neighbours(self, n: int, measure: Measure = "cosine", exclude: Collection[int] = ()) -> Neighbours:
        """Return the n rows most alike, the most alike first, equal scores by ascending id.

        Args:
            n: how many; fewer come back when fewer rows are left.
            measure: "cosine" or "dot".
            exclude: ids left out, usually the token itself.

        Raises:
            ValueError: for n below 1, an unknown measure, or an excluded id that is not a row.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}.")
        scores, error = self._first_pass(measure)
        for row in exclude:
            if not 0 <= row < len(scores):
                raise ValueError(f"exclude names row {row}; the table has rows 0 to {len(scores) - 1}.")
        n = min(n, len(scores) - len(set(exclude)))
        if n == 0:
            return Neighbours(torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.float64))
        scores[list(exclude)] = np.nan  # which is not above any number, and is sorted behind them
        # A row that is further below the n-th than both can be off does not pass it in float64.
        least = -np.partition(-scores, n - 1)[n - 1] - 2 * error
        ids = torch.from_numpy(np.flatnonzero(scores >= least))
        exact = likeness(self._table[ids], self._vector, measure)
        order = exact.nan_to_num(-torch.inf).sort(descending=True, stable=True).indices[:n]
        return Neighbours(ids[order], exact[order])

    def rank(self, row: int, measure: Measure = "cosine", exclude: Collection[int] = ()) -> int:
        """Return a row's place among all rows, 1 for the most alike; equals come by ascending id.

        Args:
            row: the row asked for.
            measure: "cosine" or "dot".
            exclude: rows that are not counted.

        >>> against = RowComparison(torch.tensor([[0.2], [0.9], [0.5]]), torch.ones(1))
        >>> against.rank(0, "dot"), against.rank(0, "dot", exclude={1})
        (3, 2)
        """
        scores, error = self._first_pass(measure)
        # What lies close to the row is compared in float64, all else is plainly before or after it.
        close = np.abs(scores - scores[row]) <= 2 * error
        close[row] = False
        before = (scores > scores[row]) & ~close
        ids = torch.from_numpy(np.flatnonzero(close))
        exact, own = (
            likeness(self._table[rows], self._vector, measure).nan_to_num(-torch.inf) for rows in (ids, [row])
        )
        before[ids.numpy()] = ((exact > own) | ((exact == own) & (ids < row))).numpy()
        before[list(exclude)] = False
        return 1 + int(before.sum())

    def _first_pass(self, measure: Measure) -> tuple[np.ndarray, float]:
        """Return each row's likeness to the vector's direction, [V], and how far it can be off."""
        if measure not in MEASURES:
            raise ValueError(f"measure must be one of {', '.join(MEASURES)}, got {measure!r}.")
        if measure == "dot":
            return self._products.copy(), self._units * float(self._norms.max())
        below_all = np.full_like(self._products, -2.0)  # what a row of zeros keeps
        return np.divide(self._products, self._norms, out=below_all, where=self._norms > 0), self._units


def neighbours(
    table: Tensor, vector: Tensor, n: int, measure: Measure = "cosine", exclude: Collection[int] = ()
) -> Neighbours:
    """Return the n rows of a table most alike to a vector; as `RowComparison.neighbours`, for a single question.

    >>> table = torch.tensor([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0]])
    >>> neighbours(table, table[0], 2, exclude={0}).ids.tolist()
    [1, 2]
    """
    return RowComparison(table, vector).neighbours(n, measure, exclude)


def combine(table: Tensor, plus: Sequence[int], minus: Sequence[int] = ()) -> Tensor:
    """Return the sum of some rows less the sum of others, float64 [D].

    The sum is of the rows as they are; Mikolov et al. 2013 (NAACL, section 4) bring them to length 1 first.

    >>> combine(torch.eye(3), plus=[0, 2], minus=[1]).tolist()
    [1.0, -1.0, 1.0]
    """
    return table[list(plus)].double().sum(0) - table[list(minus)].double().sum(0)
