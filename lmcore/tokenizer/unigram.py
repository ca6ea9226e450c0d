"""Scored vocabularies (Unigram): every way to cut a text has a probability; the most probable one is the encoding.

Each piece of the vocabulary has a score, the ln of its probability. A segmentation's score is the sum over its pieces,
as if they were drawn one after another without regard to their neighbours (Kudo 2018, "Subword Regularization",
sections 3.2 and 3.3). A character that no piece begins with alone can stand as the unknown piece, at a score below all
others.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import tokenizers
from tokenizers import decoders, models

from lmcore.tokenizer.cuts import Cuts, cuts_of_lengths
from lmcore.tokenizer.encoding import utf8
from lmcore.tokenizer.tokenizer import Tokenizer

_UNKNOWN_PENALTY = 10.0  # below the lowest score, as in SentencePiece and the tokenizers library
_UNKNOWN = "<unk>"


@dataclass(frozen=True)
class Piece:
    """A piece of a segmentation: its text, id, score (ln of its probability), and whether it is the unknown piece."""

    text: str
    token_id: int
    score: float
    unknown: bool = False


@dataclass(frozen=True)
class Segmentation:
    """One way to cut a text; `score` is the sum of its pieces'."""

    pieces: tuple[Piece, ...]
    score: float

    def cuts(self) -> Cuts:
        """Return where it cuts the text as the pieces have it."""
        lengths = np.array([len(piece.text.encode()) for piece in self.pieces], dtype=np.int64)
        return cuts_of_lengths(np.array([piece.token_id for piece in self.pieces], dtype=np.int64), lengths)


@dataclass(frozen=True)
class Segmented:
    """The best ways to cut a text.

    Attributes:
        text: the text as it was cut: normalised, a space often written ▁.
        best: the segmentations, the most probable first.
        count: how many there are in all.
        total: ln of the sum of the probabilities of all of them.
    """

    text: str
    best: tuple[Segmentation, ...]
    count: int
    total: float


@dataclass(frozen=True)
class _Way:
    """A way to get to a place in the text: its score, its last piece, the way before that."""

    score: float
    piece: Piece | None = None
    before: _Way | None = None
    ends_word: bool = False


class Unigram:
    """The scored pieces of a tokenizer.json.

    Args:
        scores: each piece with its score; the place is the id.
        unknown: the id of the unknown piece; None when there is none, and a text that needs it has no segmentation.
    """

    def __init__(self, scores: Sequence[tuple[str, float]], unknown: int | None) -> None:
        self._pieces = {text: Piece(text, token_id, score) for token_id, (text, score) in enumerate(scores)}
        self._unknown = unknown
        self._unknown_score = min((score for _text, score in scores), default=0.0) - _UNKNOWN_PENALTY
        self._longest = max(map(len, self._pieces), default=0)

    @classmethod
    def of_library(cls, library: tokenizers.Tokenizer) -> Unigram:
        """Read the pieces of a library's object whose model is a Unigram."""
        model = json.loads(library.to_str())["model"]
        return cls([(text, float(score)) for text, score in model["vocab"]], model["unk_id"])

    def segment(self, words: Sequence[str], n: int) -> Segmented:
        """Return the n most probable segmentations of a text.

        Args:
            words: the text in the parts that no piece crosses.
            n: how many; fewer come back where there are fewer.

        >>> found = Unigram([("a", -1.0), ("b", -2.0), ("ab", -2.5)], None).segment(["ab"], 5)
        >>> [([piece.text for piece in each.pieces], each.score) for each in found.best], found.count
        ([(['ab'], -2.5), (['a', 'b'], -3.0)], 2)
        """
        ways, count, total = [_Way(0.0)], 1, 0.0
        for word in words:
            # At each place: the best ways to get there, how many there are, ln of the sum of their probabilities.
            at = [(ways, count, total)]
            for end in range(1, len(word) + 1):
                arriving = [(at[end - len(piece.text)], piece) for piece in self._ending(word, end)]
                extended = (
                    _Way(way.score + piece.score, piece, way, end == len(word))
                    for (before, _count, _total), piece in arriving
                    for way in before
                )
                at.append(
                    (
                        heapq.nlargest(n, extended, key=lambda way: way.score),
                        sum(ways_before for (_best, ways_before, _total), _piece in arriving),
                        _log_sum([total_before + piece.score for (_best, _count, total_before), piece in arriving]),
                    )
                )
            ways, count, total = at[-1]
        return Segmented("".join(words), tuple(map(_walked, ways)), count, total)

    def _ending(self, word: str, end: int) -> list[Piece]:
        """The pieces that the part of a word before `end` can end with."""
        starts = range(max(end - self._longest, 0), end)
        found = [self._pieces[word[start:end]] for start in starts if word[start:end] in self._pieces]
        last = word[end - 1]
        if last not in self._pieces and self._unknown is not None:
            found.append(Piece(last, self._unknown, self._unknown_score, unknown=True))
        return found


def words_of(library: tokenizers.Tokenizer, text: str) -> list[str]:
    """Return a text as a library's object gives it to its model: normalised, in the parts that no piece crosses.

    Raises:
        ValueError: the text holds half of a surrogate pair.
    """
    utf8(text)
    if library.normalizer is not None:
        text = library.normalizer.normalize_str(text)
    if library.pre_tokenizer is None:
        return [text] if text else []
    return [word for word, _place in library.pre_tokenizer.pre_tokenize_str(text)]


def scored(tokenizer: Tokenizer, text: str) -> tokenizers.Tokenizer:
    """Return the pieces of a BPE tokenizer with scores, as the library's object: the same pieces under another rule.

    A piece's score is ln((c + 1) / (N + V)): it occurs c times among the N tokens that the tokenizer makes of the text.
    Tokens that are no whole characters are left out; a character without a piece is unknown.

    Args:
        tokenizer: whose tokens are the pieces; the unknown piece gets id 0, and they the ids after it, in their order.
        text: what the tokens are counted in.
    """
    counts = np.bincount(tokenizer.encode_ids(text), minlength=tokenizer.vocab_size) + 1
    special = set(tokenizer.special_tokens.values())
    pieces: dict[str, float] = {}
    for token_id in range(tokenizer.vocab_size):
        written = tokenizer.token_bytes(token_id).decode("utf-8", errors="ignore")
        if token_id not in special and written and written.encode() == tokenizer.token_bytes(token_id):
            pieces.setdefault(written, math.log(counts[token_id] / counts.sum()))
    unknown = (_UNKNOWN, min(pieces.values(), default=0.0))
    library = tokenizers.Tokenizer(models.Unigram([unknown, *pieces.items()], unk_id=0))
    library.decoder = decoders.Fuse()
    return library


def _walked(way: _Way | None) -> Segmentation:
    """Return the segmentation of a way; neighbouring unknown characters are one unknown piece, as in the library."""
    assert way is not None
    score, pieces = way.score, list[Piece]()
    while way is not None and way.piece is not None:
        first = pieces[-1] if pieces else None
        if first is not None and first.unknown and way.piece.unknown and not way.ends_word:
            pieces[-1] = replace(first, text=way.piece.text + first.text, score=way.piece.score + first.score)
        else:
            pieces.append(way.piece)
        way = way.before
    return Segmentation(tuple(reversed(pieces)), score)


def _log_sum(values: Sequence[float]) -> float:
    highest = max(values, default=-math.inf)
    if highest == -math.inf:
        return highest
    return highest + math.log(math.fsum(math.exp(value - highest) for value in values))
