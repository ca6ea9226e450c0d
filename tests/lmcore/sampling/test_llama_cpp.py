"""The llama.cpp preset against llama.cpp's own sampler chain, through llama-cpp-python.

No model is needed: a chain is built from the settings and applied to an array of (id, logit) pairs.
"""

import ctypes
import itertools

import numpy as np
import pytest
import torch

from lmcore.sampling import History, SamplingSettings, preset, reshape

from . import oracles

llama_cpp = pytest.importorskip(
    "llama_cpp",
    minversion="0.3.36",
    reason='llama-cpp-python 0.3.36 or later is not installed; pip install "llama-cpp-python>=0.3.36" to compare',
)

OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


def theirs(logits, settings: SamplingSettings, history=()):
    """Kept ids, ascending, and their probabilities, after llama.cpp's chain in its default order."""
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    for sampler in (
        llama_cpp.llama_sampler_init_penalties(
            len(logits),
            settings.penalty_last_n,
            settings.repetition_penalty,
            settings.frequency_penalty,
            settings.presence_penalty,
        ),
        llama_cpp.llama_sampler_init_top_n_sigma(settings.top_n_sigma or -1.0),
        llama_cpp.llama_sampler_init_top_k(settings.top_k or 0),
        llama_cpp.llama_sampler_init_typical(settings.typical_p, 1),
        llama_cpp.llama_sampler_init_top_p(settings.top_p, 1),
        llama_cpp.llama_sampler_init_min_p(settings.min_p, 1),
        llama_cpp.llama_sampler_init_temp(settings.temperature),
    ):
        llama_cpp.llama_sampler_chain_add(chain, sampler)
    try:
        for token in history:
            llama_cpp.llama_sampler_accept(chain, token)
        size = len(logits)
        entries = (llama_cpp.llama_token_data * size)(
            *(llama_cpp.llama_token_data(token, float(logit), 0.0) for token, logit in enumerate(logits))
        )
        array = llama_cpp.llama_token_data_array(
            ctypes.cast(entries, ctypes.POINTER(llama_cpp.llama_token_data)), size, -1, False
        )
        llama_cpp.llama_sampler_apply(chain, ctypes.byref(array))
        left = sorted((array.data[i].id, array.data[i].logit) for i in range(array.size))
    finally:
        llama_cpp.llama_sampler_free(chain)
    possible = [(token, logit) for token, logit in left if logit > -np.inf]  # greedy and sigma leave -inf behind
    return [token for token, _ in possible], oracles.softmax([logit for _, logit in possible])


def assert_equal(logits, knobs, history=()):
    settings = preset("llama.cpp", **{**OFF, **knobs})
    ids, probs = theirs(logits, settings, history)
    result = reshape(logits, settings, History(prompt=history))
    assert result.kept_ids.tolist() == ids, knobs
    np.testing.assert_allclose(result.probs[ids].numpy(), probs, atol=2e-5)


@pytest.mark.parametrize("size", [5, 1000])
@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_kept_sets_and_probabilities_over_a_grid(size, spread):
    logits = torch.randn(size, generator=torch.Generator().manual_seed(size)) * spread
    for t, k, p, rest in itertools.product(
        (0.0, 0.31, 1.0, 1.7),
        (0, 1, 3, 40, 5000),
        (0.0, 0.3107, 0.9503, 1.0),
        ({}, {"min_p": 0.0513}, {"typical_p": 0.6107}, {"top_n_sigma": 1.37}),
    ):
        assert_equal(logits, {"temperature": t, "top_k": k, "top_p": p, **rest})


def test_the_worked_example_under_defaults():
    settings = preset("llama.cpp")
    ids, probs = theirs(oracles.WORKED, settings)
    result = reshape(oracles.WORKED, settings)
    assert result.kept_ids.tolist() == ids
    np.testing.assert_allclose(result.probs[ids].numpy(), probs, atol=1e-6)


@pytest.mark.parametrize(
    "knobs",
    [
        {"repetition_penalty": 1.3},
        {"repetition_penalty": 0.8, "frequency_penalty": 0.4},
        {"presence_penalty": 0.7, "frequency_penalty": -0.2, "penalty_last_n": 3},
        {"repetition_penalty": 1.5, "penalty_last_n": 0},
    ],
)
def test_penalties_over_a_window(knobs):
    logits = torch.randn(30, generator=torch.Generator().manual_seed(1)) * 2
    assert_equal(logits, knobs, history=[3, 7, 3, 9, 9, 9, 11])
    assert_equal(logits, knobs, history=[5] + [6] * 64)


def test_exactly_k_of_tied_tokens():
    for k in (1, 2, 3, 4):
        settings = preset("llama.cpp", **{**OFF, "top_k": k})
        assert len(theirs([1, 2, 2, 2, 3], settings)[0]) == reshape([1, 2, 2, 2, 3], settings).candidates == k


def test_a_typical_sum_exactly_at_p_goes_on():
    settings = preset("llama.cpp", **{**OFF, "typical_p": 0.5})
    assert len(theirs([0.0] * 4, settings)[0]) == reshape([0.0] * 4, settings).candidates == 3
