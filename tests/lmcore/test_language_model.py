"""What a language model is called with: ids, and a sentence for everything else."""

from __future__ import annotations

import pytest
import torch

import lmcore


@pytest.fixture(scope="module")
def lm() -> lmcore.LanguageModel:
    return lmcore.load()


def test_ids_come_in_any_of_their_forms(lm) -> None:
    expected = lm([1, 2, 3])
    for ids in (
        (1, 2, 3),
        range(1, 4),
        torch.tensor([1, 2, 3], dtype=torch.int32),
        torch.tensor([1, 2, 3], dtype=torch.uint8),
    ):
        assert torch.equal(lm(ids), expected)
    assert lm([[1, 2], [3, 4]]).shape[:2] == (2, 2)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("今天天气", TypeError, r"ids is text; give token ids: lm\.tokenizer\.encode\(text\)\.ids"),
        (b"text", TypeError, "ids is text"),
        (["今天", "天气"], TypeError, r"must be whole numbers, as in lm\.tokenizer\.encode\(text\)\.ids, got a list"),
        ([[1, 2], [3]], ValueError, "texts of 1 and 2 tokens; a batch is texts of one length"),
        ([[1], [2, 3], [4, 5, 6]], ValueError, "texts of 1, 2 and 3 tokens"),
        ([1.5, 2.0], TypeError, "must be a list of whole numbers, one for each token, got a list"),
        (torch.tensor([True]), TypeError, "must be a list of whole numbers"),
        (7, TypeError, "must be a list of whole numbers, one for each token, got a int: '7'"),
        (None, TypeError, "must be whole numbers"),
        ([], ValueError, "ids is empty; give at least one token"),
        ([[], []], ValueError, "ids is empty"),
    ],
)
def test_what_is_no_ids_is_said_in_words(lm, given, error, words) -> None:
    with pytest.raises(error, match=words):
        lm(given)
    with pytest.raises(error):
        lmcore.generate(lm, given, max_new_tokens=1)


def test_an_encoding_in_place_of_its_ids_is_named(lm) -> None:
    with pytest.raises(TypeError, match="got a Encoding"):
        lm(lm.tokenizer.encode("今天天气"))
