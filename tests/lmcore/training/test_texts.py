"""Texts of a trial: windows come from where they should, what is held out stays out, limits are said."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lmcore
from lmcore.training.texts import MAX_CHARACTERS, WINDOW, OwnText, SmallWorldText, character_tokenizer
from lmcore.training.trial import Trial, TrialSettings

TOKENIZER = lmcore.builtin.tokenizer()
POEM = "".join(chr(0x4E00 + number % 180) for number in range(900))


def test_windows_of_an_own_text_are_pieces_of_it_and_never_of_the_held_out_part() -> None:
    text = OwnText(POEM, character_tokenizer(POEM))
    whole = text.ids.tolist()
    n_held_out = 90
    seen = torch.cat(list(itertools.islice(text.batches(3, 8), 40)))
    assert seen.shape == (320, WINDOW + 1)
    starts = {next(i for i in range(len(whole)) if whole[i : i + WINDOW + 1] == row) for row in seen.tolist()}
    assert max(starts) <= len(whole) - n_held_out - WINDOW - 1 and len(starts) > 50
    assert text.held_out().flatten()[: WINDOW + 1].tolist() == whole[-n_held_out : -n_held_out + WINDOW + 1]


def test_the_same_seed_gives_the_same_batches() -> None:
    for text in (OwnText(POEM, TOKENIZER), SmallWorldText(TOKENIZER)):
        first, again, other = (next(text.batches(seed, 4)) for seed in (1, 1, 2))
        assert torch.equal(first, again) and not torch.equal(first, other)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_characters_are_tokens_and_come_back(text: str) -> None:
    tokenizer = character_tokenizer(text)
    found = tokenizer.encode(text)
    assert found.tokens == [character.encode() for character in text]
    assert tokenizer.decode_bytes(found.ids) == text.encode()
    assert b"".join(tokenizer.encode("龘 and 😊").tokens).decode() == "龘 and 😊"


@pytest.mark.parametrize(("text", "said"), [("x" * (MAX_CHARACTERS + 1), "20,001 characters"), ("今天", "2 tokens")])
def test_a_text_that_does_not_fit_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        OwnText(text, character_tokenizer(text))


def test_the_shortest_text_trains() -> None:
    short = "ab" * 50
    tokenizer = character_tokenizer(short)
    settings = TrialSettings(d_model=16, batch_size=2, steps=3)
    trial = Trial(settings, tokenizer, ("ab",), OwnText(short, tokenizer))
    losses = [step.loss for step in trial.steps()]
    assert len(losses) == 3 and trial.measure().loss < losses[0]
