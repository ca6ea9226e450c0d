"""Settings applied to a partial view: the truth, computed from the whole distribution, always lies inside."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lmcore
from lmcore.distribution.partial import PartialDistribution
from lmcore.engines.partial_sampling import reshape_partial

ROOM = 1e-7  # what float32 logits and sums of a thousand terms may round


@st.composite
def cases(draw):
    size = draw(st.integers(2, 60))
    spread = draw(st.sampled_from([0.1, 1.0, 3.0, 8.0]))
    seed = draw(st.integers(0, 2**20))
    logits = torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * spread
    logits = logits.sort(descending=True).values
    return (
        logits,
        draw(st.integers(1, size)),
        {
            "temperature": draw(st.sampled_from([0.0, 0.3, 0.8, 1.0, 1.5, 2.0])),
            "top_k": draw(st.sampled_from([0, 1, 3, 10, 40])),
            "top_p": draw(st.sampled_from([0.0, 0.2, 0.5, 0.9, 0.99, 1.0])),
            "min_p": draw(st.sampled_from([0.0, 0.01, 0.2, 1.0])),
        },
    )


def truth(logits, temperature, top_k, top_p, min_p):
    chosen = lmcore.SamplingSettings(
        temperature=temperature,
        top_k=top_k or None,
        top_p=top_p,
        min_p=min_p,
        order=("temperature", "top_k", "top_p", "min_p"),
    )
    return lmcore.reshape(logits, chosen)


@pytest.mark.slow
@settings(max_examples=600)
@given(cases())
def test_the_truth_lies_inside(case):
    logits, n, knobs = case
    known = PartialDistribution(logits.log_softmax(0)[:n], len(logits))
    found, whole = reshape_partial(known, **knobs), truth(logits, **knobs)
    probs = whole.probs.double()
    assert (found.low <= probs[:n] + ROOM).all() and (probs[:n] <= found.high + ROOM).all()
    assert found.kept.low <= whole.candidates <= found.kept.high
    assert found.rest.low - ROOM <= probs[n:].sum() <= found.rest.high + ROOM
    assert found.entropy_bits.low - 1e-6 <= whole.entropy_bits <= found.entropy_bits.high + 1e-6
    temperature = knobs["temperature"]
    if temperature > 0:
        removed = (logits / temperature).softmax(0)[probs == 0].sum()
        assert found.removed.low - 1e-6 <= removed <= found.removed.high + 1e-6


def test_of_the_k_most_probable_all_is_known_at_any_temperature():
    logits = torch.randn(1000, generator=torch.Generator().manual_seed(3), dtype=torch.float64).sort(descending=True)[0]
    known = PartialDistribution(logits.log_softmax(0)[:20], 1000)
    for temperature in (0.4, 1.0, 1.7):
        found = reshape_partial(known, temperature, top_k=20)
        assert found.exact
        expected = (logits[:20] / temperature).softmax(0)
        torch.testing.assert_close(found.low, expected, atol=1e-12, rtol=0)
        torch.testing.assert_close(found.high, expected, atol=1e-12, rtol=0)
        assert not reshape_partial(known, temperature, top_k=21).exact


def test_with_the_whole_vocabulary_nothing_is_a_bound():
    logits = torch.linspace(4, -4, 50, dtype=torch.float64)
    known = PartialDistribution(logits.log_softmax(0), 50)
    found = reshape_partial(known, 1.3, top_p=0.8)
    assert found.exact and found.entropy_bits.exact
    assert found.kept.low == truth(logits, 1.3, 0, 0.8, 0.0).candidates


def test_more_log_probabilities_close_the_bounds():
    logits = torch.randn(5000, generator=torch.Generator().manual_seed(5), dtype=torch.float64).sort(descending=True)[0]
    widths = []
    for n in (10, 100, 1000):
        found = reshape_partial(PartialDistribution(logits.log_softmax(0)[:n], 5000), 0.7)
        widths.append(float(found.high[0] - found.low[0]))
    assert widths[0] > widths[1] > widths[2] > 0


@pytest.mark.parametrize("temperature", [-1.0, math.inf, math.nan])
def test_a_temperature_that_is_none_is_refused(temperature):
    known = PartialDistribution(torch.tensor([0.5, 0.3]).log(), 10)
    with pytest.raises(ValueError, match="temperature"):
        reshape_partial(known, temperature)
