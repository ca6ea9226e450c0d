"""Which writing a token is in, from its bytes alone; Unicode's property Script says it of each character."""

from __future__ import annotations

from typing import Literal, get_args

import regex

Script = Literal["chinese", "latin", "other", "bytes"]
SCRIPTS: tuple[Script, ...] = get_args(Script)
Writing = Literal["latin", "chinese", "japanese or korean", "cyrillic or greek", "other letters", "no letters", "bytes"]
WRITINGS: tuple[Writing, ...] = get_args(Writing)

_IN_ORDER: tuple[tuple[Writing, regex.Pattern[str]], ...] = (
    ("japanese or korean", regex.compile(r"[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]")),
    ("chinese", regex.compile(r"\p{Script=Han}")),
    ("latin", regex.compile(r"\p{Script=Latin}")),
    ("cyrillic or greek", regex.compile(r"[\p{Script=Cyrillic}\p{Script=Greek}]")),
    ("other letters", regex.compile(r"\p{L}")),
)


def writing_of(token: bytes) -> Writing:
    """Return the writing of a token, told finely enough for vocabularies of many languages.

    Of a mixture the first in the order Japanese or Korean, Chinese, Latin, Cyrillic or Greek, other letters counts;
    Chinese characters that Japanese uses too are Chinese unless kana stands beside them. "no letters" are digits,
    punctuation and spaces; "bytes" is not whole UTF-8 characters.

    >>> [writing_of(token.encode()) for token in ("天気", "の天", " the", "мир", "سلام", "12,")]
    ['chinese', 'japanese or korean', 'latin', 'cyrillic or greek', 'other letters', 'no letters']
    >>> writing_of(b"\\xe5\\xa4")
    'bytes'
    """
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return "bytes"
    return next((writing for writing, pattern in _IN_ORDER if pattern.search(text)), "no letters")


def script_of(token: bytes) -> Script:
    """Return the kind of writing of a token of the small world.

    "chinese" when it has a Chinese character, else "latin" when it has a Latin letter, else "other" (digits,
    punctuation, spaces, other scripts); "bytes" when it is not whole UTF-8 characters.

    >>> [script_of(token) for token in ("天气".encode(), b" the", "，".encode(), b"\\xe5\\xa4")]
    ['chinese', 'latin', 'other', 'bytes']
    """
    writing = writing_of(token)
    return writing if writing in ("chinese", "latin", "bytes") else "other"  # type: ignore[return-value]
