"""Finding tokens: what is found is all there is, and the script is Unicode's."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import lmcore
from lmcore.tokenizer.vocabulary_index import MIXED, OTHER, PART, SPECIAL, VocabularyIndex, writing_of

TOKENIZER = lmcore.builtin.tokenizer()
INDEX = VocabularyIndex(TOKENIZER)
SCRIPTS = [
    "Latin",
    "Cyrillic",
    "Greek",
    "Arabic",
    "Hebrew",
    "Devanagari",
    "Thai",
    "Hangul",
    "Han",
    "Hiragana",
    "Katakana",
]


@pytest.mark.parametrize("wanted", ["天".encode(), b" the", b"\xe5", "😊".encode()[:1]])
def test_search_finds_each_token_once(wanted: bytes) -> None:
    every = {token_id: TOKENIZER.token_bytes(token_id) for token_id in range(TOKENIZER.vocab_size)}
    assert INDEX.search(wanted) == [i for i, token in every.items() if token.count(wanted)]
    assert INDEX.search(wanted, "begins") == [i for i, token in every.items() if token[: len(wanted)] == wanted]
    assert INDEX.search(wanted, "is") == [i for i, token in every.items() if token == wanted]
    assert INDEX.search(b"") == INDEX.search(b"no such token") == []


def test_the_longest_are_the_longest() -> None:
    found = INDEX.longest(10)
    lengths = [len(TOKENIZER.token_bytes(i).decode()) for i in found]
    assert lengths == sorted(lengths, reverse=True) and not set(found) & set(TOKENIZER.special_tokens.values())
    others = set(range(TOKENIZER.vocab_size)) - set(found) - set(TOKENIZER.special_tokens.values())
    assert lengths[-1] >= max(len(TOKENIZER.token_bytes(i).decode(errors="ignore")) for i in others)


def test_scripts_cover_the_vocabulary() -> None:
    counts = INDEX.by_script()
    assert sum(counts.values()) == TOKENIZER.vocab_size and counts[SPECIAL] == len(TOKENIZER.special_tokens)
    assert {script: len(INDEX.of_script(script)) for script in counts} == dict(counts)


@given(st.text(st.characters(exclude_categories=["Cs", "Cn"]), min_size=1, max_size=4))
def test_the_script_is_that_of_unicode(text: str) -> None:
    found = {name for name in SCRIPTS if regex.search(rf"(?=\p{{L}})\p{{Script={name}}}", text)}
    shown = writing_of(text.encode())
    if len(found) == 1 and regex.fullmatch(rf"[\p{{Script={next(iter(found))}}}\P{{L}}]*", text):
        assert shown in (*found, MIXED, OTHER)  # full-width letters and marks have names of their own
    if not regex.search(r"\p{L}|\p{M}", text):
        assert shown[0].islower() and shown != PART


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Größe", "Latin"),
        ("мир", "Cyrillic"),
        ("سلام", "Arabic"),
        ("हिन्दी", "Devanagari"),
        ("한국", "Hangul"),
        ("ひ", "Hiragana"),
    ],
)
def test_examples_of_scripts(text: str, script: str) -> None:
    assert writing_of(text.encode()) == script
