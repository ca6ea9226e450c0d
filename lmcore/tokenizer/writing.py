"""The script of a token, with enough distinctions for vocabularies of many languages."""

from __future__ import annotations

import unicodedata
from typing import Literal, get_args

Writing = Literal["latin", "chinese", "japanese or korean", "cyrillic or greek", "other letters", "no letters", "bytes"]
WRITINGS: tuple[Writing, ...] = get_args(Writing)

_BY_NAME: tuple[tuple[tuple[str, ...], Writing], ...] = (
    (("HIRAGANA", "KATAKANA", "HANGUL"), "japanese or korean"),
    (("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH"), "chinese"),
    (("LATIN",), "latin"),
    (("CYRILLIC", "GREEK"), "cyrillic or greek"),
)


def writing_of(token: bytes) -> Writing:
    """Return the script of a token, from its bytes alone.

    Of a mixture the first in the order Japanese or Korean, Chinese, Latin, Cyrillic or Greek, other letters counts;
    Chinese characters that Japanese uses too are Chinese unless kana stands beside them. "no letters" are digits,
    punctuation and spaces; "bytes" is not whole UTF-8 characters.

    >>> [writing_of(token.encode()) for token in ("天気", "の天", " the", "мир", "سلام", "12,")]
    ['chinese', 'japanese or korean', 'latin', 'cyrillic or greek', 'other letters', 'no letters']
    >>> writing_of(b"\\xe5\\xa4")
    'bytes'
    """
    try:
        letters = [character for character in token.decode("utf-8") if character.isalpha()]
    except UnicodeDecodeError:
        return "bytes"
    names = [unicodedata.name(letter, "") for letter in letters]
    for starts, writing in _BY_NAME:
        if any(name.startswith(starts) for name in names):
            return writing
    return "other letters" if letters else "no letters"
