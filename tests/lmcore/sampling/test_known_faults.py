"""Faults people reported in programs like this one, under "Sampling": an input that shows each."""

import math
import warnings

import numpy as np
import pytest
import torch

from lmcore.sampling import PRESETS, SamplingSettings, draw, draws, new_generator, preset, reshape

from . import oracles


def test_the_token_that_crosses_top_p_is_kept():
    assert reshape(np.log([0.4, 0.3, 0.2, 0.1]), SamplingSettings(top_p=0.8)).kept_ids.tolist() == [0, 1, 2]


def test_top_p_zero_keeps_exactly_one():
    for logits in ([1.0, 3.0, 2.0], [2.0, 2.0, 2.0]):
        result = reshape(logits, SamplingSettings(top_p=0))
        assert result.candidates == 1 and result.probs.max() == 1


@pytest.mark.parametrize("t", [1e-4, 1e-40, 1e-300, 5e-324])
def test_a_tiny_temperature_is_the_arg_max(t):
    for top in (3.8, 1e30):
        probs = reshape([2.3, 1.5, top, 0.5, 1.2], SamplingSettings(temperature=t)).probs
        assert probs.tolist() == [0, 0, 1, 0, 0]
    assert reshape([1.0, 2.0, 2.0], SamplingSettings(temperature=t)).probs.tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_one_nan_logit_is_a_named_error_before_anything_is_drawn(dtype):
    logits = torch.randn(1000).to(dtype)
    logits[517] = math.nan
    generator = new_generator(0)
    state = generator.get_state()
    with pytest.raises(ValueError, match=r"logits holds NaN at index \[517\]"):
        draw(reshape(logits, SamplingSettings(temperature=0.8, top_k=5)), generator)
    assert torch.equal(generator.get_state(), state)


def test_temperature_zero_is_greedy_said_so_and_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = reshape(oracles.WORKED, SamplingSettings(temperature=0))
    assert result.probs.tolist() == [0, 0, 1, 0, 0]
    assert result.steps[0].note == "temperature 0 is greedy: the most probable token is kept"


@pytest.mark.parametrize("engine", PRESETS)
def test_k_larger_than_the_vocabulary_is_clamped_and_said_so(engine):
    result = reshape(oracles.WORKED, preset(engine, top_k=500, top_p=1, temperature=1, min_p=0, repetition_penalty=1))
    np.testing.assert_allclose(result.probs.numpy(), oracles.softmax(oracles.WORKED), atol=1e-15)
    if engine != "openai":
        assert "top_k 500" in result.steps[0].note


def test_ties_at_the_kth_follow_the_presets_rule():
    engines = ("transformers", "vllm", "sglang", "llama.cpp", "ollama", "exllamav2")
    kept = {
        engine: reshape([1, 2, 2, 2, 3], preset(engine, top_k=3, top_p=1, min_p=0)).kept_ids.tolist()
        for engine in engines
    }
    every, exactly = [1, 2, 3, 4], [1, 2, 4]
    assert kept == {
        "transformers": every,
        "vllm": every,
        "sglang": every,
        "llama.cpp": exactly,
        "ollama": exactly,
        "exllamav2": exactly,
    }


def test_a_penalty_makes_a_negative_logit_less_likely():
    result = reshape([-1.0, -1.0], SamplingSettings(repetition_penalty=1.5), [0])
    np.testing.assert_allclose(result.probs.numpy(), oracles.softmax([-1.5, -1.0]), atol=1e-15)


def test_the_seed_is_obeyed_and_generators_are_not_shared():
    probs = reshape(torch.randn(500, generator=torch.Generator().manual_seed(1))).probs
    assert torch.equal(draws(probs, 100, seed=7), draws(probs, 100, seed=7))
    assert not torch.equal(draws(probs, 100, seed=7), draws(probs, 100, seed=8))
    alone = [draw(probs, generator) for generator in [new_generator(7)] for _ in range(20)]
    mine, theirs = new_generator(7), new_generator(7)
    beside = []
    for _ in range(20):
        beside.append(draw(probs, mine))
        draw(probs, theirs)  # another session, the same seed
        torch.rand(3)  # and whatever else uses the global generator
    assert beside == alone


def test_one_candidate_is_said_to_make_the_seed_have_no_effect():
    result = reshape(oracles.WORKED, SamplingSettings(top_k=1))
    assert result.note == "1 candidate is left: the seed has no effect"
    assert {draw(result, new_generator(seed)) for seed in range(20)} == {2}
    assert reshape(oracles.WORKED, SamplingSettings(top_k=2)).note == ""


def test_no_hidden_top_k():
    assert reshape(torch.randn(1000), SamplingSettings(temperature=0.8)).candidates == 1000
    # Where an engine has one, it is among the steps.
    assert [step.name for step in reshape(torch.randn(1000), preset("transformers")).steps] == ["top_k"]


def test_top_p_is_computed_over_the_whole_vocabulary():
    logits = torch.randn(50_257, generator=torch.Generator().manual_seed(0)) * 3
    tempered = np.sort(oracles.softmax(logits.double().numpy() / 0.8))[::-1]
    right = int(np.searchsorted(np.cumsum(tempered), 0.9)) + 1
    over_top_50 = reshape(logits, SamplingSettings(temperature=0.8, top_k=50, top_p=0.9)).candidates
    assert over_top_50 < 50 < right
    assert reshape(logits, SamplingSettings(temperature=0.8, top_p=0.9)).candidates == right


def test_tokens_are_told_apart_by_id():
    # Two tokens with the same logit stay two entries, whatever their text.
    result = reshape([1.0, 1.0, 1.0], SamplingSettings(top_k=2))
    assert result.kept_ids.tolist() == [0, 1] and result.probs.tolist() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize("logits", [[3.0], [0.0, -0.0], [1e30, 1e30, -1e30], [-1e30] * 3])
def test_extreme_logits_under_every_engine(logits):
    for engine in PRESETS:
        probs = reshape(logits, preset(engine), history=[0]).probs
        assert probs.sum().item() == pytest.approx(1) and torch.isfinite(probs).all()


def test_a_row_at_the_least_finite_number_is_uniform_because_it_says_so():
    # Unlike -inf for every token, which is refused: these are numbers, and they are equal.
    least = torch.finfo(torch.float32).min
    assert reshape(torch.full((4,), least)).probs.tolist() == [0.25] * 4
