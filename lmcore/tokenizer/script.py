"""Which kind of writing a token is, from its bytes alone."""

from __future__ import annotations

import unicodedata
from typing import Literal, get_args

Script = Literal["chinese", "latin", "other", "bytes"]
SCRIPTS: tuple[Script, ...] = get_args(Script)


def script_of(token: bytes) -> Script:
    """Return the kind of writing of a token.

    "chinese" when it has a Chinese character, else "latin" when it has a Latin letter, else "other" (digits,
    punctuation, spaces, other scripts); "bytes" when it is not whole UTF-8 characters.

    >>> [script_of(token) for token in ("天气".encode(), b" the", "，".encode(), b"\\xe5\\xa4")]
    ['chinese', 'latin', 'other', 'bytes']
    """
    try:
        text = token.decode("utf-8")
    except UnicodeDecodeError:
        return "bytes"
    names = [unicodedata.name(character, "") for character in text]
    if any(name.startswith("CJK UNIFIED IDEOGRAPH") for name in names):
        return "chinese"
    return "latin" if any(name.startswith("LATIN ") for name in names) else "other"
