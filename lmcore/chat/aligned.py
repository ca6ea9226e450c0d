"""One conversation as two templates write it, side by side: the same field of a message is in the same row."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, takewhile

from lmcore.chat.render import Rendered
from lmcore.tokenizer import Encoding

Place = tuple[int, int]
_MOST_PIECES = 1_500  # words between two texts' first and last difference, for these to be compared one by one
_PIECE = re.compile(r"\w+|\s|[^\w\s]")


@dataclass(frozen=True)
class AlignedRow:
    """What two templates write at one place of a conversation.

    Attributes:
        message: the message's index, where it is a field of one.
        field: that field; "" for what a template writes before, between and after them.
        in_prompt: whether it belongs to the generation prompt.
        left: (start, end) in the first text; None where it has no such place.
        right: the same in the second.
        is_same: whether both say the same.
    """

    message: int | None
    field: str
    in_prompt: bool
    left: Place | None
    right: Place | None
    is_same: bool


@dataclass(frozen=True)
class _Piece:
    key: Hashable
    message: int | None
    field: str
    in_prompt: bool
    place: Place


def aligned(left: Rendered, right: Rendered | str) -> tuple[AlignedRow, ...]:
    """Return the rows of two texts of one conversation; each text's places, one after the other, are that text.

    Args:
        left: what one template writes.
        right: what another one writes, or a text of which nothing else is known. Its places are then those that its
            words have in `left`.
    """
    ours = list(_pieces(left))
    if isinstance(right, str):
        theirs, their_text = _carried_over(ours, left.text, right), right
    else:
        theirs, their_text = list(_pieces(right)), right.text
    rows = []
    matcher = SequenceMatcher(None, [each.key for each in ours], [each.key for each in theirs], autojunk=False)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            pairs = zip(ours[a:a_end], theirs[b:b_end], strict=True)
            rows += [_row(left.text, their_text, one, other) for one, other in pairs]
        else:
            rows += [_row(left.text, their_text, one, None) for one in ours[a:a_end]]
            rows += [_row(left.text, their_text, None, other) for other in theirs[b:b_end]]
    return tuple(rows)


def tokens_in(found: Encoding, place: Place | None) -> range:
    """Return the tokens that begin in a place of the text.

    >>> tokens_in(Encoding("abc", [1, 2], [b"ab", b"c"], [(0, 2), (2, 3)]), (1, 3))
    range(1, 2)
    """
    if place is None:
        return range(0)
    starts = [start for start, _end in found.offsets]
    return range(bisect_left(starts, place[0]), bisect_left(starts, place[1]))


def _pieces(rendered: Rendered) -> Iterator[_Piece]:
    """Yield the fields of the messages, but their roles, and what is written between them."""
    seen: Counter[Hashable] = Counter()
    after: tuple[int | None, str] | None = None  # the field before
    found: list[tuple[tuple[int | None, str] | None, int | None, str, bool, int, int]] = []
    for span in rendered.spans:
        is_field = span.kind == "message" and span.field != "role"
        origin = (span.message, span.field) if is_field else None
        if found and found[-1][:4] == (origin, *(origin or (None, "")), span.in_prompt):
            found[-1] = (*found[-1][:5], span.end)
        else:
            found.append((origin, *(origin or (None, "")), span.in_prompt, span.start, span.end))
    for origin, message, field, in_prompt, start, end in found:
        after = origin or after
        key: Hashable = (origin, after, in_prompt)
        seen[key] += 1
        yield _Piece((key, seen[key]), message, field, in_prompt, (start, end))


def _carried_over(pieces: Sequence[_Piece], text: str, other: str) -> list[_Piece]:
    """Return the pieces of another text that stand where these stand, by the words that both have."""
    blocks = list(_matching(text, other))

    def carried(at: int) -> int:
        start, end, its_start, its_end = next(each for each in blocks if at < each[1] or each is blocks[-1])
        return min(its_start + max(at - start, 0), its_end) if end - start == its_end - its_start else its_start

    edges = [0, *(carried(piece.place[0]) for piece in pieces[1:]), len(other)]
    return [
        _Piece(piece.key, piece.message, piece.field, piece.in_prompt, (start, end))
        for piece, start, end in zip(pieces, edges, edges[1:], strict=False)
        if start < end
    ]


def _matching(text: str, other: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield (start, end, start in the other, end in the other) of stretches that say the same or differ, in order."""
    ours, theirs = _PIECE.findall(text), _PIECE.findall(other)
    first = sum(1 for _both in takewhile(lambda both: both[0] == both[1], zip(ours, theirs, strict=False)))
    rest = [ours[first:][::-1], theirs[first:][::-1]]
    last = sum(1 for _both in takewhile(lambda both: both[0] == both[1], zip(*rest, strict=False)))
    middle, its_middle = (each[first : len(each) - last] for each in (ours, theirs))
    if max(len(middle), len(its_middle)) <= _MOST_PIECES:
        found = list(SequenceMatcher(None, middle, its_middle).get_opcodes())
    else:
        found = [("replace", 0, len(middle), 0, len(its_middle))]
    starts, its_starts = ([0, *accumulate(map(len, each))] for each in (ours, theirs))
    yield 0, starts[first], 0, its_starts[first]
    for _tag, a, a_end, b, b_end in found:
        yield starts[first + a], starts[first + a_end], its_starts[first + b], its_starts[first + b_end]
    yield starts[len(ours) - last], starts[-1], its_starts[len(theirs) - last], its_starts[-1]


def _row(left: str, right: str, one: _Piece | None, other: _Piece | None) -> AlignedRow:
    known = one or other
    assert known is not None
    places = one.place if one else None, other.place if other else None
    texts = [None if place is None else text[slice(*place)] for text, place in zip((left, right), places, strict=True)]
    return AlignedRow(known.message, known.field, known.in_prompt, *places, texts[0] == texts[1])
