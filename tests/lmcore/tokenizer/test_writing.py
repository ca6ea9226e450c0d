"""Writings of tokens of several kinds."""

import pytest

import lmcore
from lmcore.tokenizer.writing import SCRIPTS, WRITINGS, script_of, writing_of


@pytest.mark.parametrize(
    ("text", "writing"),
    [
        ("猫", "chinese"),
        ("々", "chinese"),
        ("猫が", "japanese or korean"),
        ("고양이", "japanese or korean"),
        ("ñ", "latin"),
        ("Ａ", "latin"),
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


@pytest.mark.parametrize(
    ("token", "script"),
    [
        ("天".encode(), "chinese"),
        ("A天".encode(), "chinese"),
        (b" Apple", "latin"),
        ("É".encode(), "latin"),
        (b" 12", "other"),
        ("。".encode(), "other"),
        ("カ".encode(), "other"),
        ("Я".encode(), "other"),
        (b"\n", "other"),
        (b"", "other"),
        ("天".encode()[:2], "bytes"),
        ("天".encode()[1:], "bytes"),
        (b"a\xff", "bytes"),
    ],
)
def test_the_kinds_of_the_small_world(token: bytes, script: str) -> None:
    assert script_of(token) == script


def test_every_kind_is_in_the_built_in_vocabulary() -> None:
    tokenizer = lmcore.builtin.tokenizer()
    assert {script_of(tokenizer.token_bytes(token)) for token in range(tokenizer.vocab_size)} == set(SCRIPTS)
