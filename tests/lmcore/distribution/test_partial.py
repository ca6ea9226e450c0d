"""What is said of a distribution whose tail is hidden holds for the one it was hidden from."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import lmcore
from lmcore.distribution.partial import PartialDistribution

TEMPERATURES = st.floats(0.05, 20.0)


@st.composite
def hidden(draw):
    """A whole distribution, descending, and how much of it is known."""
    seed, size = draw(st.integers(0, 2**32 - 1)), draw(st.integers(2, 400))
    spread = draw(st.floats(0.0, 6.0))
    logits = np.random.default_rng(seed).normal(size=size) * spread
    probs = np.exp(np.sort(logits)[::-1] - logits.max())
    probs, n = probs / probs.sum(), draw(st.integers(1, size))
    assume(n == size or probs[n:].sum() > 1e-6)  # 1 minus the known sum loses a smaller rest to rounding
    return probs, n


def tempered(probs, temperature):
    weights = np.exp(np.log(probs) / temperature - np.log(probs[0]) / temperature)
    return weights / weights.sum()


def known(probs, n):
    return PartialDistribution(torch.from_numpy(np.log(probs[:n])), len(probs))


def inside(value, low, high):
    return low - 1e-9 <= value <= high + 1e-9


@given(hidden(), TEMPERATURES)
def test_the_truth_lies_within_the_bounds(case, temperature):
    probs, n = case
    partial, truth = known(probs, n), tempered(probs, temperature)
    low, high = partial.probs(temperature)
    assert all(inside(p, *bounds) for p, *bounds in zip(truth[:n], low.tolist(), high.tolist(), strict=True))
    assert inside(truth[n:].sum(), *partial.tail_probs(temperature))
    entropy = -sum(p * math.log2(p) for p in truth if p > 0)
    assert inside(entropy, *partial.entropy_bits(temperature))


@pytest.mark.slow
@given(hidden(), TEMPERATURES, st.floats(0.01, 0.999))
def test_the_number_of_kept_tokens_lies_within_the_bounds(case, temperature, share):
    probs, n = case
    partial, truth = known(probs, n), tempered(probs, temperature)
    cumulative = truth.cumsum()
    assume(np.abs(cumulative - share).min() > 1e-9)  # at the boundary itself rounding decides
    low, high = partial.top_p_count(share, temperature)
    assert low <= int((cumulative < share).sum()) + 1 <= high
    assume(np.abs(truth / truth[0] - share).min() > 1e-9)
    low, high = partial.min_p_count(share, temperature)
    assert low <= int((truth >= share * truth[0]).sum()) <= high


@pytest.mark.slow
@given(hidden())
def test_at_temperature_one_probabilities_are_exact(case):
    probs, n = case
    low, high = known(probs, n).probs(1.0)
    np.testing.assert_allclose(low, probs[:n], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(high, probs[:n], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
@given(hidden(), TEMPERATURES)
def test_more_known_tokens_never_widen_the_bounds(case, temperature):
    probs, n = case
    fewer, more = (known(probs, count).tail_probs(temperature) for count in (max(n // 2, 1), n))
    top_of_fewer, top_of_more = (
        [bound[0].item() for bound in known(probs, count).probs(temperature)] for count in (max(n // 2, 1), n)
    )
    assert top_of_fewer[0] <= top_of_more[0] + 1e-9 and top_of_more[1] <= top_of_fewer[1] + 1e-9
    assert fewer.high <= 1 and more.low >= 0


@pytest.mark.slow
@given(hidden(), TEMPERATURES)
def test_with_the_whole_vocabulary_nothing_is_left_open(case, temperature):
    probs, _n = case
    partial, truth = known(probs, len(probs)), tempered(probs, temperature)
    low, high = partial.probs(temperature)
    assert torch.equal(low, high)
    np.testing.assert_allclose(low, truth, rtol=1e-7, atol=1e-15)
    assert partial.entropy_bits(temperature).exact and partial.tail_probs(temperature) == (0, 0)


@pytest.mark.parametrize("temperature", [0.25, 4.0, 20.0])
def test_equal_tokens_are_known_exactly_however_many_are_given(temperature):
    probs = np.full(164, 1 / 164)
    for n in (1, 81, 82, 163):
        for bound in known(probs, n).probs(temperature):
            np.testing.assert_allclose(bound, probs[:n], rtol=1e-6)


def test_the_bounds_are_reached():
    # Two known, four hidden that share .3 and are at most .2 each: .075 four times, or .2 and .1.
    partial = PartialDistribution(torch.tensor([0.5, 0.2]).log(), 6)
    for tail in ([0.075] * 4, [0.2, 0.1, 0, 0]):
        weights = np.array([0.5, 0.2, *tail]) ** 2
        reached = weights[:2] / weights.sum()
        assert any(np.allclose(reached, bound) for bound in partial.probs(0.5))


@pytest.mark.slow
def test_top_20_of_a_real_model(smollm_logits):
    probs = torch.softmax(smollm_logits.double(), 0).sort(descending=True).values.numpy()
    partial = known(probs, 20)
    assert partial.top_p_count(0.8) == (2, 2)
    low, high = partial.top_p_count(0.95)
    assert low == 21 and high == len(probs)  # beyond what is known, and said so
    low, high = partial.probs(0.7)
    assert inside(tempered(probs, 0.7)[0], low[0], high[0]) and high[0] - low[0] < 0.01


@pytest.fixture(scope="module")
def smollm_logits():
    if not {model.name: model for model in lmcore.available()}["smollm2-135m-instruct"].installed:
        pytest.skip("smollm2-135m-instruct is not installed")
    lm = lmcore.load("smollm2-135m-instruct")
    return lm(lm.tokenizer.encode("The capital of France is").ids)[-1]


@pytest.mark.parametrize(
    ("log_probs", "vocab_size", "sentence"),
    [
        ([], 3, "0 log-probabilities were given for 3"),
        ([-0.1, -3.0, -4.0], 2, "3 log-probabilities were given for 2"),
        ([-2.0, -1.0], 9, "must be finite and descend"),
        ([-1.0, float("nan")], 9, "must be finite and descend"),
        ([-0.1, -0.1], 9, "more than 1"),
        ([-1.0, -9.0], 9, "are these the most probable ones"),
    ],
)
def test_what_cannot_be_is_refused(log_probs, vocab_size, sentence):
    with pytest.raises(ValueError, match=sentence):
        PartialDistribution(torch.tensor(log_probs), vocab_size)


def test_temperature_zero_is_not_asked_here():
    with pytest.raises(ValueError, match="0 is greedy, and exact"):
        PartialDistribution(torch.tensor([0.0]), 1).probs(0.0)
