"""Searching a vocabulary by text and by id."""

import pytest

import lmcore
from lmcore.tokenizer.token_search import find_tokens, pieces, single_token

TOKENIZER = lmcore.builtin.tokenizer()


def bytes_of(tokens: list[int]) -> list[bytes]:
    return [TOKENIZER.token_bytes(token) for token in tokens]


def test_the_word_itself_comes_first_then_what_begins_with_it_then_what_contains_it() -> None:
    found = bytes_of(find_tokens(TOKENIZER, "ca", 500))
    kinds = [0 if b.strip().lower() == b"ca" else 1 if b.strip().lower().startswith(b"ca") else 2 for b in found]
    assert kinds == sorted(kinds) and {1, 2} <= set(kinds)
    everything = {b for b in map(TOKENIZER.token_bytes, range(TOKENIZER.vocab_size)) if b"ca" in b.lower()}
    assert set(found) == everything
    assert bytes_of(find_tokens(TOKENIZER, "CAT", 1)) == [b" cat"]
    assert len(find_tokens(TOKENIZER, "a", 7)) == 7


def test_a_number_sign_names_an_id() -> None:
    assert find_tokens(TOKENIZER, "#42", 5) == [42]
    assert 1600 not in find_tokens(TOKENIZER, "#1600", 5)  # there is no such id: it is text then


@pytest.mark.parametrize("text", ["", " ", "\ud800", "\0", "龘龘", "<|endoftext|>", "%{x}" * 20])
def test_any_text_can_be_searched(text: str) -> None:
    for token in find_tokens(TOKENIZER, text, 5):
        assert 0 <= token < TOKENIZER.vocab_size


def test_what_no_token_contains_gives_its_pieces() -> None:
    assert b"".join(bytes_of(find_tokens(TOKENIZER, "龘", 9))) == "龘".encode()


def test_a_word_is_one_token_with_or_without_its_space() -> None:
    assert TOKENIZER.token_bytes(single_token(TOKENIZER, "king")) == b" king"
    assert TOKENIZER.token_bytes(single_token(TOKENIZER, "国王")).decode() == "国王"
    assert single_token(TOKENIZER, "龘") is None
    assert bytes_of(pieces(TOKENIZER, "king")) == [b" king"]
    assert b"".join(bytes_of(pieces(TOKENIZER, "龘龘"))) == "龘龘".encode()
