"""Writings of tokens of several kinds."""

import pytest

from lmcore.tokenizer.writing import WRITINGS, writing_of


@pytest.mark.parametrize(
    ("text", "writing"),
    [
        ("猫", "chinese"),
        ("々", "other letters"),
        ("猫が", "japanese or korean"),
        ("고양이", "japanese or korean"),
        ("ñ", "latin"),
        ("Ａ", "other letters"),
        ("γάτα", "cyrillic or greek"),
        ("кот", "cyrillic or greek"),
        ("बिल्ली", "other letters"),
        (" 42", "no letters"),
        ("，", "no letters"),
        ("😀", "no letters"),
        ("", "no letters"),
    ],
)
def test_writing(text: str, writing: str) -> None:
    assert writing_of(text.encode()) == writing


def test_part_of_a_character_and_every_writing_is_listed() -> None:
    assert writing_of("猫".encode()[:2]) == "bytes"
    assert set(WRITINGS) >= {"bytes", "latin"} and len(WRITINGS) == 7
