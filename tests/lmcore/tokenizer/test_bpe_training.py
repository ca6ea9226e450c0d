"""The merges learned are those of the tokenizers library's trainer, and applying them gives what was watched."""

from __future__ import annotations

import random
from itertools import islice

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, trainers

from lmcore.corpus import small_world
from lmcore.tokenizer.bpe_training import growing, learn_merges, split_words, tokenizer_of

rng = random.Random(1)
WORLD = "".join(small_world().sample_document(rng) for _ in range(60))
PAIRS = [merge.pair for merge in islice(learn_merges(split_words(WORLD)), 300)]


def library(text: str, vocab_size: int) -> tokenizers.Tokenizer:
    """Return what the library's trainer learns from the text."""
    learner = tokenizers.Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    learner.train_from_iterator([text], trainer)
    return learner


@pytest.mark.parametrize(
    ("text", "n"),
    [
        (WORLD, 500),
        ("the cat sat on the mat, then the hat. " * 3 + "今天天气不错，今天很好😊😊", 200),
        ("ab" * 50, 9),
        ("a" * 1000 + " aaa" * 7, 9),
    ],
    ids=["small world", "mixed", "repeated", "one letter"],
)
def test_merges_and_ids_are_those_of_the_library(text: str, n: int) -> None:
    learned = list(islice(learn_merges(split_words(text)), n))
    ours = tokenizer_of(merge.pair for merge in learned)
    theirs = library(text, ours.vocab_size)
    assert theirs.get_vocab() == ours._as_text.get_vocab()
    assert ours.encode(text).ids == theirs.encode(text).ids
    assert len(ours.encode(text)) == learned[-1].n_tokens


@settings(max_examples=60)
@given(st.text(alphabet="ab c今", max_size=60))
def test_counts_and_lengths_are_those_counted_anew(text: str) -> None:
    words = split_words(text)
    before = [[bytes([byte]) for byte in word] for word in words]
    learned = list(learn_merges(words))
    for merge, step in zip(learned, growing(words, [merge.pair for merge in learned]), strict=True):
        assert merge.count == sum(pair == merge.pair for word in before for pair in zip(word, word[1:], strict=False))
        assert merge.n_tokens == len(step.pieces) and b"".join(step.pieces) == text.encode()
        rest = iter(step.pieces)
        after = []
        for word in words:
            pieces: list[bytes] = []
            while len(b"".join(pieces)) < len(word):
                pieces.append(next(rest))
            after.append(pieces)
        before = after


@given(st.text(alphabet="天气今 weathr", max_size=40), st.integers(0, 300))
def test_watching_ends_where_encoding_does(text: str, n: int) -> None:
    pairs = PAIRS[:n]
    steps = growing(split_words(text), pairs)
    expected = tokenizer_of(pairs).encode(text).tokens
    assert (steps[-1].pieces if steps else [bytes([byte]) for byte in text.encode()]) == expected


def test_nothing_is_learned_from_what_does_not_repeat() -> None:
    assert list(learn_merges(split_words("abc"))) == []
    assert list(learn_merges([])) == []
    assert [merge.pair for merge in learn_merges([b"xyxy"])][0] == (b"x", b"y")
