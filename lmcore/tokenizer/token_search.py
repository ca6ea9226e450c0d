"""Find tokens of a vocabulary by what the reader types."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate

from lmcore.tokenizer import Tokenizer


def single_token(tokenizer: Tokenizer, word: str) -> int | None:
    """Return the one token that a word is, as it stands or else with a space in front; None when it takes several.

    A vocabulary that marks the start of words has another row for "king" than for " king", and uses the second in
    running text, so for words of ASCII letters the one with the space comes first.
    """
    forms = [word, f" {word}"]
    for form in reversed(forms) if word.isascii() else forms:
        ids = _ids(tokenizer, form)
        if len(ids) == 1:
            return ids[0]
    return None


def pieces(tokenizer: Tokenizer, word: str) -> list[int]:
    """Return the one token of a word, see `single_token`, or else the several it is made of."""
    token = single_token(tokenizer, word)
    return _ids(tokenizer, word) if token is None else [token]


def find_tokens(tokenizer: Tokenizer, text: str, n: int) -> list[int]:
    """Return up to n tokens: the text itself, then those that begin with it, then those that contain it.

    Upper and lower case are alike, and a space in front does not matter; shorter tokens come first. "#42" is the
    token with that id. When nothing contains the text, its own pieces are returned.
    """
    return list(_find(tokenizer, text.encode("utf-8", "replace").decode("utf-8"), n))  # half a pair is in no token


@lru_cache(maxsize=64)  # a page asks again each time it runs
def _find(tokenizer: Tokenizer, text: str, n: int) -> tuple[int, ...]:
    number = text.removeprefix("#")
    if text.startswith("#") and number.isdecimal() and int(number) < tokenizer.vocab_size:
        return (int(number),)
    bare = text.lower().strip().encode("utf-8")
    if not bare:
        return ()
    found: list[tuple[int, int, int]] = []
    for token, plain in _containing(tokenizer, bare):
        stripped = plain.strip()
        kind = 0 if stripped == bare else 1 if stripped.startswith(bare) else 2
        found.append((kind, len(plain), token))
    own = _ids(tokenizer, text) if not found else []
    best = single_token(tokenizer, text.strip())
    ranked = _unique([*([] if best is None else [best]), *(token for _kind, _length, token in sorted(found)), *own])
    return tuple(ranked[:n])


def _containing(tokenizer: Tokenizer, bare: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tokens that contain some UTF-8, with their lower-case bytes; one search through all of them joined."""
    joined, ends = _joined(tokenizer)
    place = joined.find(bare)
    while place >= 0:
        token = bisect_right(ends, place)
        start = ends[token - 1] if token else 0
        yield token, joined[start : ends[token] - 1]
        place = joined.find(bare, ends[token])


@lru_cache(maxsize=4)
def _joined(tokenizer: Tokenizer) -> tuple[bytes, list[int]]:
    """Return all tokens in lower case, each followed by a byte that no UTF-8 has, and where each ends after it."""
    plain = [_lower(tokenizer.token_bytes(token)) for token in range(tokenizer.vocab_size)]
    return b"\xff".join([*plain, b""]), list(accumulate(len(token) + 1 for token in plain))


def _lower(token: bytes) -> bytes:
    try:
        return token.decode("utf-8").lower().encode("utf-8")
    except UnicodeDecodeError:
        return token


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    encoding = tokenizer.encode(text)
    return list(encoding.ids[encoding.n_added :])


def _unique(ids: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(ids))
