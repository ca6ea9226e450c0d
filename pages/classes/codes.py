"""Codes of classes, which are read aloud and typed; secrets, which only browsers see."""

from __future__ import annotations

import hashlib
import secrets

ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"  # without 0 and O, 1, I and L, and U, which looks like V
LENGTH = 8  # 30 ** 8: 39 bits
_NAME = 4


def new_code() -> str:
    """Return a code nobody can guess: some 39 bits."""
    return _letters(LENGTH)


def new_name() -> str:
    """Return the random name that a student's row has."""
    return _letters(_NAME)


def new_secret() -> str:
    """Return what a browser shows that it is the teacher's, or a student's: 128 bits."""
    return secrets.token_hex(16)


def as_typed(text: str) -> str:
    """Return the code that somebody means by what they typed.

    >>> as_typed(" 7kq2-mx9r ")
    '7KQ2MX9R'
    """
    return "".join(text.upper().replace("-", " ").split())[: 2 * LENGTH]


def as_shown(code: str) -> str:
    """Return a code as it is read aloud.

    >>> as_shown("7KQ2MX9R")
    '7KQ2-MX9R'
    """
    return f"{code[: LENGTH // 2]}-{code[LENGTH // 2 :]}"


def hashed(secret: str) -> bytes:
    """Return what is stored of a secret. It has 128 random bits, so that a plain hash gives nothing away."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()  # a browser says anything


def _letters(n: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(n))
