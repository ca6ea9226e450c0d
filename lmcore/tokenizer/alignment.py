"""A stretch of text under several vocabularies, lined up: which tokens stand above one another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lmcore.tokenizer.cuts import Cuts


@dataclass(frozen=True)
class Cell:
    """Tokens of one vocabulary over some columns of a segment.

    Attributes:
        first, last: the columns, `last` excluded.
        tokens: which tokens of the cuts; several where they stand for the same bytes, none where no token does.
    """

    first: int
    last: int
    tokens: range


@dataclass(frozen=True)
class Segment:
    """A stretch at whose ends every vocabulary has a cut, and none in between that all have.

    Attributes:
        start, end: its bytes in the text.
        columns: how many columns all the cuts inside make.
        rows: for each vocabulary its cells, from left to right; together they cover the columns.
    """

    start: int
    end: int
    columns: int
    rows: tuple[tuple[Cell, ...], ...]


def align(vocabularies: Sequence[Cuts], start: int, end: int) -> list[Segment]:
    """Line up the tokens that stand for the bytes from `start` to `end` of a text.

    Args:
        vocabularies: the text's cuts in each vocabulary.
        start, end: bytes; tokens that reach beyond are drawn up to there.

    >>> from lmcore.tokenizer.cuts import cuts_of_lengths
    >>> import numpy as np
    >>> one, two = (cuts_of_lengths(np.arange(len(lengths)), np.array(lengths)) for lengths in ([2, 2, 1], [3, 1, 1]))
    >>> [(segment.start, segment.end, segment.columns) for segment in align([one, two], 0, 5)]
    [(0, 4, 3), (4, 5, 1)]
    """
    spans = [_spans(cuts, start, end) for cuts in vocabularies]
    edges = [{start, end} | {edge for low, high, _ in row for edge in (low, high)} for row in spans]
    common = sorted(set.intersection(*edges)) if edges else []
    places = sorted(set().union(*edges))
    segments, at = [], [0] * len(spans)
    for low, high in pairwise(common):
        column = {
            place: number for number, place in enumerate(places[bisect_left(places, low) : bisect_right(places, high)])
        }
        rows = []
        for which, row in enumerate(spans):
            first = at[which]
            while at[which] < len(row) and row[at[which]][1] <= high:
                at[which] += 1
            rows.append(tuple(_cells(row[first : at[which]], low, high, column)))
        segments.append(Segment(low, high, len(column) - 1, tuple(rows)))
    return segments


def _spans(cuts: Cuts, start: int, end: int) -> list[tuple[int, int, range]]:
    """The bytes, within the stretch, of the tokens there; tokens whose bytes overlap are one."""
    found: list[tuple[int, int, range]] = []
    for index in range(*cuts.touching(start, end).indices(len(cuts))):
        low, high = max(int(cuts.starts[index]), start), min(int(cuts.ends[index]), end)
        if found and low < found[-1][1]:
            before = found.pop()
            found.append((before[0], max(before[1], high), range(before[2].start, index + 1)))
        elif low < high:
            found.append((low, high, range(index, index + 1)))
    return found


def _cells(row: Sequence[tuple[int, int, range]], low: int, high: int, column: dict[int, int]) -> list[Cell]:
    """The row's cells, with empty ones where no token stands for the text."""
    cells, reached = [], low
    for start, end, tokens in row:
        if start > reached:
            cells.append(Cell(column[reached], column[start], range(0)))
        cells.append(Cell(column[start], column[end], tokens))
        reached = end
    if reached < high:
        cells.append(Cell(column[reached], column[high], range(0)))
    return cells
