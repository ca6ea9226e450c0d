"""Which places of two token sequences stand at the same place of the text, and which tokens two vocabularies share."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from lmcore.tokenizer import Tokenizer

__all__ = ["Vocabularies", "aligned", "first_difference", "same_vocabulary"]

Vocabularies = tuple[np.ndarray, np.ndarray]
"""For each token of A and of B a number, the same for the same bytes; -1 where the other side has no such token."""

_Tokens: TypeAlias = tuple[tuple[bytes, bool], ...]
_tokens_of: weakref.WeakKeyDictionary[Tokenizer, _Tokens] = weakref.WeakKeyDictionary()
_shared_by: weakref.WeakKeyDictionary[Tokenizer, weakref.WeakKeyDictionary[Tokenizer, Vocabularies]]
_shared_by = weakref.WeakKeyDictionary()


def aligned(a: Sequence[bytes], b: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the pairs of positions after which the same text stands on both sides, in order.

    What the two texts have in common is their longest common beginning and, of the rest, their longest common end: one
    side may have a BOS or a line of a template that the other lacks.

    >>> aligned([b"<s>", b"The", b" cat"], [b"The", b" c", b"at"])
    [(1, 0), (2, 2)]
    """
    whole_a, whole_b = b"".join(a), b"".join(b)
    n_a, n_b = len(whole_a), len(whole_b)
    start = _common(whole_a, whole_b)
    end = min(_common(whole_a[::-1], whole_b[::-1]), min(n_a, n_b) - start)
    # Two tokens may end at one place, where one of them has no bytes: the later one is meant.
    ends_b = {place: index for index, place in enumerate(accumulate(map(len, b)))}
    pairs: list[tuple[int, int]] = []
    for index, place in enumerate(accumulate(map(len, a))):
        other = place if place <= start else place - n_a + n_b if n_a - place <= end else -1
        if place and other in ends_b and (not pairs or ends_b[other] > pairs[-1][1]):
            pairs.append((index, ends_b[other]))
    return pairs


def first_difference(a: Sequence[object], b: Sequence[object]) -> int | None:
    """Return where two sequences part; None where they are equal.

    >>> first_difference("abc", "abd"), first_difference("ab", "abc"), first_difference("a", "a")
    (2, 2, None)
    """
    if len(a) == len(b) and a == b:
        return None
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def same_vocabulary(a: Tokenizer, b: Tokenizer) -> bool:
    """Whether each id is the same token on both sides."""
    return a is b or _tokens(a) == _tokens(b)


def vocabularies(a: Tokenizer, b: Tokenizer) -> Vocabularies:
    """Return which tokens two vocabularies share, by their bytes; a control token is the same as a control token only.

    Tokens of the same bytes on one side, as a letter and the byte it is stored as, have one number.
    """
    known = _shared_by.setdefault(a, weakref.WeakKeyDictionary())
    if b not in known:
        known[b] = _numbered(_tokens(a), _tokens(b))
    return known[b]


def _numbered(left: _Tokens, right: _Tokens) -> Vocabularies:
    in_both = set(left) & set(right)
    numbers = {token: number for number, token in enumerate(sorted(in_both))}
    found = [np.array([numbers.get(token, -1) for token in side], np.int64) for side in (left, right)]
    return found[0], found[1]


def _tokens(tokenizer: Tokenizer) -> _Tokens:
    if tokenizer not in _tokens_of:
        control = set(tokenizer.special_tokens.values())
        found = tuple((tokenizer.token_bytes(i), i in control) for i in range(tokenizer.vocab_size))
        _tokens_of[tokenizer] = found
    return _tokens_of[tokenizer]


def _common(a: bytes, b: bytes) -> int:
    """Return how many bytes two texts begin with in common, by halving: a byte at a time is slow in Python."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low
