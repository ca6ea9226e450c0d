"""The life of every piece in a merge replay: at which step it came about and at which it was merged away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from lmcore.tokenizer.merges import MergeStep


@dataclass(frozen=True)
class PieceLife:
    """A run of bytes that stood by itself for some steps.

    Attributes:
        start, end: the bytes `data[start:end]` it holds.
        born: the step after which it is there; 0 is before the first merge.
        died: the step that merged it into a larger piece; None for one that is left at the end.
    """

    start: int
    end: int
    born: int
    died: int | None


def piece_lives(first: Sequence[bytes], steps: Sequence[MergeStep]) -> list[PieceLife]:
    """Return every piece there ever was, by start and then by birth; after step s those with born <= s < died stand.

    At most 2 n - 1 pieces for n to begin with, where the steps themselves hold n pieces each.

    Args:
        first: the pieces that merging starts from, single bytes mostly.
        steps: what `merges.replay` returned for them.

    >>> from lmcore.tokenizer.merges import replay
    >>> steps = replay(b"abc", {(b"b", b"c"): 0})
    >>> [(p.start, p.end, p.born, p.died) for p in piece_lives([b"a", b"b", b"c"], steps)]
    [(0, 1, 0, None), (1, 2, 0, 1), (1, 3, 1, None), (2, 3, 0, 1)]
    """
    edges = [0, *accumulate(map(len, first))]
    standing = {span: 0 for span in pairwise(edges)}
    lives: list[PieceLife] = []
    before: list[bytes] | None = None
    for number, step in enumerate(steps, start=1):
        if step.pieces is before:  # a merge that this text has no use for
            continue
        before = step.pieces
        now, start = set(), 0
        for piece in step.pieces:
            now.add((start, start + len(piece)))
            start += len(piece)
        for span in standing.keys() - now:
            lives.append(PieceLife(*span, standing.pop(span), number))
        for span in now - standing.keys():
            standing[span] = number
    lives += [PieceLife(*span, born, None) for span, born in standing.items()]
    return sorted(lives, key=lambda piece: (piece.start, piece.born))
