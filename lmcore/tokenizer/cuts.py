"""A text of any length cut into tokens, in arrays: what counting and drawing a part of it need."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from lmcore.tokenizer.encoding import utf8

# A word is a run of letters and digits. Scripts written without spaces have no such words: Han, kana, Thai, Lao, Khmer.
_WORD = re.compile(
    "(?:[^\\W_\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    "[\u0300-\u036f]*)+"
)


@dataclass(frozen=True)
class Cuts:
    """Where a vocabulary cuts a text.

    Attributes:
        ids: [n] the tokens.
        starts, ends: [n] the bytes of the text's UTF-8 each token stands for; equal for one that is none of the text.
        decoded: the text that decoding the ids gives; another than the text, where something was lost or added.
        n_added: how many tokens at the beginning are none of the text.
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    decoded: str
    n_added: int = 0

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self.ids)

    def touching(self, start: int, end: int) -> slice:
        """Return which tokens, in a row, stand for bytes from `start` to `end`, end excluded.

        >>> cuts_of_lengths(np.array([7, 8, 9]), np.array([2, 3, 1])).touching(1, 3)
        slice(0, 2, None)
        """
        first = int(np.searchsorted(self.ends[self.n_added :], start, side="right")) + self.n_added
        last = int(np.searchsorted(self.starts[self.n_added :], end, side="left")) + self.n_added
        return slice(first, max(first, last))


def cuts_of_lengths(ids: np.ndarray, lengths: np.ndarray, decoded: str = "", n_added: int = 0) -> Cuts:
    """Return the cuts of tokens that lie one after the other, from the number of bytes of each.

    >>> cuts_of_lengths(np.array([5, 6]), np.array([3, 1])).starts.tolist()
    [0, 3]
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    return Cuts(ids, ends - lengths, ends, decoded, n_added)


def byte_of_character(text: str) -> np.ndarray:
    """Return where each character's UTF-8 begins, and at last the text's number of bytes: [characters + 1].

    >>> byte_of_character("a好!").tolist()
    [0, 1, 4, 5]
    """
    utf8(text)  # or says what is wrong with it
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    sizes = 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000)
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def word_ranges(text: str) -> np.ndarray:
    """Return the words of a text, (start, end) in characters: [words, 2].

    Runs of letters and digits, with the accents on them. What is written without spaces, as Chinese, has none.

    >>> word_ranges("The 3rd 天气 rain.").tolist()
    [[0, 3], [4, 7], [11, 15]]
    """
    found = [match.span() for match in _WORD.finditer(text)]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def broken(ranges: np.ndarray, cuts: Cuts) -> np.ndarray:
    """Return which ranges are cut: a token begins inside, or two begin at the start.

    Args:
        ranges: [n, 2] (start, end) in bytes.
        cuts: where the tokens lie.

    >>> broken(np.array([[0, 3], [3, 6]]), cuts_of_lengths(np.array([1, 2]), np.array([4, 2]))).tolist()
    [False, True]
    """
    starts = cuts.starts[cuts.n_added :]
    at, after = (np.searchsorted(starts, ranges[:, 0], side=side) for side in ("left", "right"))
    inside = np.searchsorted(starts, ranges[:, 1], side="left") - after
    return (inside > 0) | (after - at > 1)


@dataclass(frozen=True)
class Landmarks:
    """Where the characters and words of a text lie, found once for all its vocabularies.

    Attributes:
        places: [characters + 1] the bytes at which characters begin, and the text's number of bytes.
        words: [words, 2] (start, end) in characters.
    """

    places: np.ndarray
    words: np.ndarray

    @classmethod
    def of(cls, text: str) -> Landmarks:
        """Find them."""
        return cls(byte_of_character(text), word_ranges(text))


@dataclass(frozen=True)
class CutMeasures:
    """How a vocabulary fares on a text.

    Attributes:
        tokens: how many, without those added in front.
        characters, n_bytes: the text's.
        words: how many words it has.
        broken_words: [k, 2] (start, end) in characters of the words that are more than one token.
        split_characters: how many characters are spread over several tokens.
    """

    tokens: int
    characters: int
    n_bytes: int
    words: int
    broken_words: np.ndarray
    split_characters: int

    @property
    def characters_per_token(self) -> float:
        """Characters a token; NaN where there is no token."""
        return self.characters / self.tokens if self.tokens else float("nan")

    @property
    def bytes_per_token(self) -> float:
        """Bytes a token; NaN where there is no token."""
        return self.n_bytes / self.tokens if self.tokens else float("nan")


def measure(marks: Landmarks, cuts: Cuts) -> CutMeasures:
    """Return how a vocabulary fares on a text.

    >>> found = measure(Landmarks.of("a 好"), cuts_of_lengths(np.arange(4), np.array([1, 2, 1, 1])))
    >>> found.tokens, found.words, found.split_characters, found.characters_per_token
    (4, 1, 1, 0.75)
    """
    places, words = marks.places, marks.words
    starts = cuts.starts[cuts.n_added :]
    begins = np.zeros(places[-1] + 1, dtype=bool)  # whether a character begins at a byte
    begins[places] = True
    within = ~begins[starts]
    within[1:] |= starts[1:] == starts[:-1]
    return CutMeasures(
        len(starts),
        len(places) - 1,
        int(places[-1]),
        len(words),
        words[broken(places[words], cuts)],
        len(np.unique(np.searchsorted(places, starts[within], side="right"))),
    )
