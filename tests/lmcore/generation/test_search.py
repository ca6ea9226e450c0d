"""Beam and exhaustive search against brute force and transformers' beam search."""

import itertools
import math

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import lmcore
from lmcore.checkpoints.families import LLAMA
from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.weights import build
from lmcore.generation.beam import beam_search
from lmcore.generation.exhaustive import exhaustive_search

PROMPT = [3, 1, 4]


class Letters:
    """As much of a tokenizer as a language model without a text needs."""

    special_tokens: dict[str, int] = {}

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id])


def pair(vocab_size: int, seed: int = 0) -> tuple[LlamaForCausalLM, lmcore.LanguageModel]:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.25,
        eos_token_id=None,
        bos_token_id=None,
        pad_token_id=None,
    )
    reference = LlamaForCausalLM(config).eval()
    ours = LLAMA.config_from(Fields(config.to_dict()))
    model = build(ours, LLAMA.weights_from(reference.state_dict(), ours), "tiny")
    return reference, lmcore.LanguageModel("tiny", model, Letters(vocab_size))


def brute_force(lm: lmcore.LanguageModel, n: int, stop: int | None = None) -> list[tuple[tuple[int, ...], float]]:
    """Run the model over every text there is; a text is cut after its first stop token."""
    texts = torch.tensor(list(itertools.product(range(lm.config.vocab_size), repeat=n)))
    ids = torch.cat([torch.tensor(PROMPT).expand(len(texts), -1), texts], dim=1)
    log_probs = torch.log_softmax(lm(ids)[:, len(PROMPT) - 1 : -1].double(), dim=-1)
    each = log_probs.gather(-1, texts.unsqueeze(-1)).squeeze(-1)
    found = {}
    for text, row in zip(texts.tolist(), each.tolist(), strict=True):
        length = text.index(stop) + 1 if stop in text else n
        found[tuple(text[:length])] = math.fsum(row[:length])
    assert math.fsum(map(math.exp, found.values())) == pytest.approx(1)
    return sorted(found.items(), key=lambda item: -item[1])


@pytest.mark.parametrize("stop", [None, 2])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_exhaustive_search_finds_the_most_probable_of_all_texts(seed: int, stop: int | None) -> None:
    _reference, lm = pair(7, seed)
    expected = brute_force(lm, 4, stop)[:6]
    *steps, last = exhaustive_search(lm, PROMPT, 4, 6, [] if stop is None else [stop])
    assert last.done and not any(step.done for step in steps)
    assert [each.ids for each in last.found] == [ids for ids, _log_prob in expected]
    for each, (_ids, log_prob) in zip(last.found, expected, strict=True):
        assert each.log_prob == pytest.approx(log_prob, abs=1e-4) and each.prob == pytest.approx(
            math.exp(each.log_prob)
        )
        assert each.ended == (each.ids[-1] == stop)
    assert last.examined < 7 + 7**2 + 7**3


def test_exhaustive_search_proves_it_where_there_are_fewer_texts_than_asked_for() -> None:
    _reference, lm = pair(7)
    *_, last = exhaustive_search(lm, PROMPT, 1, 20)
    assert [each.ids for each in last.found] == [ids for ids, _log_prob in brute_force(lm, 1)]


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("stop", [None, 26])
def test_beam_search_is_that_of_transformers(width: int, stop: int | None) -> None:
    reference, lm = pair(40)
    *_, last = beam_search(lm, PROMPT, width, 9, [] if stop is None else [stop])
    theirs = reference.generate(
        torch.tensor([PROMPT]),
        max_new_tokens=9,
        num_beams=width,
        do_sample=False,
        length_penalty=0.0,
        num_return_sequences=width,
        return_dict_in_generate=True,
        output_scores=True,
        early_stopping=False,
        eos_token_id=stop,
        pad_token_id=39,
    )
    ours = [list(each.ids) for each in last.best]
    cut = [row[len(PROMPT) :][: len(mine)] for row, mine in zip(theirs.sequences.tolist(), ours, strict=True)]
    assert ours == cut
    if width > 1:
        assert [each.log_prob for each in last.best] == pytest.approx(theirs.sequences_scores.tolist(), abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n_stop", [2, 5, 12])
def test_many_stop_tokens_do_not_narrow_the_beam(seed: int, n_stop: int) -> None:
    reference, lm = pair(20, seed)
    stops = list(range(n_stop))
    steps = list(beam_search(lm, PROMPT, 4, 6, stops))
    assert all(len(step.kept) == 4 for step in steps) and all(len(step.dropped) <= 4 for step in steps)
    theirs = reference.generate(
        torch.tensor([PROMPT]),
        max_new_tokens=6,
        num_beams=4,
        do_sample=False,
        length_penalty=0.0,
        num_return_sequences=4,
        return_dict_in_generate=True,
        output_scores=True,
        early_stopping=False,
        eos_token_id=stops,
        pad_token_id=19,
    )
    assert [each.log_prob for each in steps[-1].best] == pytest.approx(theirs.sequences_scores.tolist(), abs=1e-4)


def test_a_stop_token_is_met_in_these_searches() -> None:
    _reference, lm = pair(40)
    *_, last = beam_search(lm, PROMPT, 5, 9, [26])
    assert last.finished  # else the comparison with transformers would not see one


def test_a_beam_of_one_is_greedy() -> None:
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode("今天天气").ids
    *_, last = beam_search(lm, ids, 1, 12)
    greedy = lmcore.generate(lm, ids, lmcore.SamplingSettings(temperature=0), max_new_tokens=12)
    assert list(last.best[0].ids) == [step.token_id for step in greedy]


def test_a_wide_beam_finds_what_exhaustive_search_finds() -> None:
    _reference, lm = pair(7, 3)
    *_, beam = beam_search(lm, PROMPT, 7**3, 4)
    *_, all_ = exhaustive_search(lm, PROMPT, 4, 3)
    assert [each.ids for each in beam.best[:3]] == [each.ids for each in all_.found]


@pytest.mark.parametrize(("prompt", "n"), [("I like", 2), ("我喜欢", 6), ("小明", 4)])
def test_greedy_misses_the_more_probable_sentence_in_the_small_world(prompt: str, n: int) -> None:
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode(prompt).ids
    *_, greedy = beam_search(lm, ids, 1, n)
    *_, last = exhaustive_search(lm, ids, n, 1)
    assert last.found[0].prob > 1.2 * greedy.best[0].prob
    assert last.found[0].log_probs[0] < greedy.best[0].log_probs[0] or last.found[0].ids[0] == greedy.best[0].ids[0]


def test_each_step_says_what_was_kept_and_given_up() -> None:
    _reference, lm = pair(40)
    for step in beam_search(lm, PROMPT, 3, 4):
        assert len(step.kept) == 3 and len(step.dropped) == 3
        assert min(each.log_prob for each in step.kept) >= max(each.log_prob for each in step.dropped)
        whole = torch.log_softmax(lm([*PROMPT, *step.kept[1].ids])[:-1].double(), dim=-1)[len(PROMPT) - 1 :]
        expected = [float(row[token]) for row, token in zip(whole, step.kept[1].ids, strict=True)]
        assert list(step.kept[1].log_probs) == pytest.approx(expected, abs=1e-4)


def test_bad_searches_are_refused() -> None:
    _reference, lm = pair(7)
    with pytest.raises(ValueError, match="width is 0"):
        next(beam_search(lm, PROMPT, 0, 2))
    with pytest.raises(ValueError, match="n_tokens is 0"):
        next(beam_search(lm, PROMPT, 1, 0))
    with pytest.raises(ValueError, match="n_best is 0"):
        next(exhaustive_search(lm, PROMPT, 1, 0))
    with pytest.raises(ValueError, match="ids is empty"):
        next(exhaustive_search(lm, [], 1, 1))
    with pytest.raises(ValueError, match="context_length = 64"):
        next(beam_search(lm, [1] * 60, 1, 5))
