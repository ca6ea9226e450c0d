"""A vocabulary to look things up in: by text, bytes or id, the longest tokens, the tokens of each script."""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache, cached_property
from typing import Literal

from lmcore.tokenizer.tokenizer import Tokenizer

How = Literal["contains", "begins", "is"]

PART, SPECIAL, MIXED, OTHER = "part of a character", "special", "several scripts", "other letters"
DIGITS, SIGNS, SPACES = "digits", "punctuation and symbols", "spaces and controls"
_LETTERS = {"CJK": "Han"}  # where a script's name is not the first word of its characters' names
_SCRIPTS = frozenset(
    (
        "LATIN",
        "CYRILLIC",
        "GREEK",
        "ARMENIAN",
        "HEBREW",
        "ARABIC",
        "SYRIAC",
        "THAANA",
        "DEVANAGARI",
        "BENGALI",
        "GURMUKHI",
        "GUJARATI",
        "ORIYA",
        "TAMIL",
        "TELUGU",
        "KANNADA",
        "MALAYALAM",
        "SINHALA",
        "THAI",
        "LAO",
        "TIBETAN",
        "MYANMAR",
        "GEORGIAN",
        "HANGUL",
        "ETHIOPIC",
        "CHEROKEE",
        "KHMER",
        "MONGOLIAN",
        "HIRAGANA",
        "KATAKANA",
        "BOPOMOFO",
        "CJK",
    )
)


class VocabularyIndex:
    """The tokens of a tokenizer, by id, and ways to find some of them.

    Args:
        tokenizer: whose vocabulary.

    Attributes:
        tokens: the bytes of each token.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokens = [tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)]
        self._special = set(tokenizer.special_tokens.values())

    def search(self, wanted: bytes, how: How = "contains") -> list[int]:
        """Return the ids of the tokens that contain the bytes, begin with them, or are these; none for no bytes."""
        if not wanted:
            return []
        if how == "is":
            return [token_id for token_id, token in enumerate(self.tokens) if token == wanted]
        if how == "begins":
            return [token_id for token_id, token in enumerate(self.tokens) if token.startswith(wanted)]
        return [token_id for token_id, token in enumerate(self.tokens) if wanted in token]

    def longest(self, n: int) -> list[int]:
        """Return the n tokens of the most characters, special ones left out; ties in the order of their ids."""
        lengths = {
            token_id: len(token.decode("utf-8", errors="ignore"))
            for token_id, token in enumerate(self.tokens)
            if token_id not in self._special
        }
        return sorted(lengths, key=lambda token_id: -lengths[token_id])[:n]

    @cached_property
    def scripts(self) -> list[str]:
        """Which writing each token is, as `writing_of` calls it, or SPECIAL."""
        return [
            SPECIAL if token_id in self._special else writing_of(token) for token_id, token in enumerate(self.tokens)
        ]

    def by_script(self) -> Counter[str]:
        """Return how many tokens there are of each writing."""
        return Counter(self.scripts)

    def of_script(self, script: str) -> list[int]:
        """Return the ids of the tokens of a writing."""
        return [token_id for token_id, each in enumerate(self.scripts) if each == script]


def writing_of(token: bytes) -> str:
    """Return the writing of a token: the script of its letters, or what it consists of where it has none.

    >>> [writing_of(token.encode()) for token in (" the", "天气", "天a", "42", "——", "\\n")]
    ['Latin', 'Han', 'several scripts', 'digits', 'punctuation and symbols', 'spaces and controls']
    >>> writing_of("天".encode()[:2])
    'part of a character'
    """
    try:
        kinds = set(map(_kind, token.decode("utf-8")))
    except UnicodeDecodeError:
        return PART
    letters = kinds - {DIGITS, SIGNS, SPACES, ""}
    if letters:
        return letters.pop() if len(letters) == 1 else MIXED
    return next((kind for kind in (DIGITS, SIGNS) if kind in kinds), SPACES)


@cache
def _kind(character: str) -> str:
    """The script of a letter, else the kind of character; "" for a mark that goes with any script."""
    category = unicodedata.category(character)
    if category[0] == "N":
        return DIGITS
    if category[0] in "PS":
        return SIGNS
    if category[0] in "ZC":
        return SPACES
    first = unicodedata.name(character, "").split(" ")[0]
    if first in _SCRIPTS:
        return _LETTERS.get(first, first.title())
    return "" if category[0] == "M" else OTHER
