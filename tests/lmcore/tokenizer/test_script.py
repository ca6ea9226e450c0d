"""The kind of writing of tokens of every kind."""

import pytest

import lmcore
from lmcore.tokenizer.script import SCRIPTS, script_of


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
def test_examples(token: bytes, script: str) -> None:
    assert script_of(token) == script


def test_every_kind_is_in_the_built_in_vocabulary() -> None:
    tokenizer = lmcore.builtin.tokenizer()
    assert {script_of(tokenizer.token_bytes(token)) for token in range(tokenizer.vocab_size)} == set(SCRIPTS)
