"""A word-level tokenizer over a handful of words: the smallest example of text becoming ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TOY_VOCABULARY: Mapping[str, int] = {"PAD": 0, "UNK": 1, "我": 2, "喜欢": 3, "猫": 4, "狗": 5}
"""The six-entry table of the lessons: two special entries and four words."""


@dataclass(frozen=True)
class WordLevelTokenizer:
    """Splits a text into the longest words it knows; a character of none of them is unknown.

    Attributes:
        vocabulary: word -> id, the two special entries among them.
        unknown, padding: the special entries; as text they are unknown like any other.

    >>> toy = WordLevelTokenizer(TOY_VOCABULARY)
    >>> toy.encode("我喜欢猫"), toy.encode("我喜欢鱼")
    ([2, 3, 4], [2, 3, 1])
    """

    vocabulary: Mapping[str, int]
    unknown: str = "UNK"
    padding: str = "PAD"

    def __post_init__(self) -> None:
        """Check that the special entries are there."""
        for field in ("unknown", "padding"):
            if getattr(self, field) not in self.vocabulary:
                raise ValueError(f"{field} is {getattr(self, field)!r}, which is not in the vocabulary: add it.")

    def encode(self, text: str, length: int | None = None) -> list[int]:
        """Return the ids of a text.

        Args:
            text: any text.
            length: fill up with the padding id to this many ids; a longer text is not cut.
        """
        ids = [self.vocabulary[piece] for piece in self.pieces(text)]
        return ids + [self.vocabulary[self.padding]] * ((length or 0) - len(ids))

    def pieces(self, text: str) -> list[str]:
        """Return the words a text is read as, the unknown entry's name where there is none."""
        words = sorted(self.vocabulary.keys() - {self.unknown, self.padding}, key=len, reverse=True)
        found, start = [], 0
        while start < len(text):
            word = next((word for word in words if text.startswith(word, start)), None)
            found.append(word or self.unknown)
            start += len(word or text[start])
        return found

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words of some ids, joined; what was unknown does not come back.

        >>> WordLevelTokenizer(TOY_VOCABULARY).decode([2, 3, 1])
        '我喜欢UNK'
        """
        words = {token_id: word for word, token_id in self.vocabulary.items()}
        return "".join(words[token_id] for token_id in ids)
