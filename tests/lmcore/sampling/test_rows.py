"""Every worked row of the engines' comparison, and the tests that hold it.

The rows are those of the specification: presets under the same knobs, floating point, stateful and random samplers.
A row that stands here without a test of its own is held below.
"""

import importlib

import numpy as np
import pytest
import torch

from lmcore.constraints import compare
from lmcore.sampling import SamplingSettings, preset, reshape
from lmcore.sampling.stages.memory import _zipf_count

from . import oracles

PRESETS, STAGES = "sampling.test_presets", "sampling.test_worked_stages"
FAULTS, SPECULATIVE = "sampling.test_known_faults", "generation.test_speculative"
HELD = {
    "T 1.5, k 3, p 0.9: four sets of presets": (PRESETS, "test_the_same_knobs_under_each_preset"),
    "T 0.8, k 3, p 0.95: SGLang as llama.cpp, exllamav2 with a hole": (
        PRESETS,
        "test_the_same_knobs_under_each_preset",
    ),
    "T 1.5, k 3, p 0.85: SGLang jointly, with min-p as HF": (PRESETS, "test_the_same_knobs_under_each_preset"),
    "T 1.5, p 0.8, min-p 0.2: before or after top-p": (PRESETS, "test_the_same_knobs_under_each_preset"),
    "p .5 .3 .2 at top-p 0.5": (PRESETS, "test_where_the_sum_is_exactly_p_some_engines_keep_one_more"),
    "the silent user of each server": (PRESETS, "test_what_a_silent_user_of_each_server_gets"),
    "ten equal logits at p 0.1": ("sampling.test_rows", "test_ten_equal_logits_keep_one_here_and_two_in_float32"),
    "V 151,936, p 0.99999": ("sampling.test_rows", "test_a_sum_in_float32_stops_early"),
    "a row of -inf; of the least finite number": (
        FAULTS,
        "test_a_row_at_the_least_finite_number_is_uniform_because_it_says_so",
    ),
    "T 1e-40": (FAULTS, "test_a_tiny_temperature_is_the_arg_max"),
    "DRY, and three breakers": (STAGES, "test_dry"),
    "DRY's stretch": (STAGES, "test_dry_says_where_the_stretch_stood"),
    "XTC: both branches and their mixture": (STAGES, "test_xtc_is_a_mixture_of_two_branches"),
    "XTC before and after the temperature": (STAGES, "test_xtc_before_and_after_the_temperature"),
    "mirostat 1 and 2, and the next mu": (STAGES, "test_mirostat"),
    "mirostat's surprises, and the k of version 1": ("sampling.test_rows", "test_mirostats_numbers_on_the_way"),
    "adaptive-p, and after two tokens": (STAGES, "test_adaptive_p"),
    "dynamic temperature": (STAGES, "test_dynamic_temperature"),
    "top-n-sigma 1 and 2": (STAGES, "test_shapes"),
    "top-n-sigma with n - 1": (STAGES, "test_top_n_sigma_of_a_loader_that_divides_by_one_less"),
    "min-k on three rows": (STAGES, "test_shapes"),
    "p-less and its norm at T 1 and 1.5": (STAGES, "test_shapes"),
    "p-less: the thresholds": ("sampling.test_rows", "test_the_thresholds_of_p_less"),
    "speculation: acceptance, residual, one-hot draft": (SPECULATIVE, "test_the_worked_example_of_a_draft"),
    "speculation: together p again": (SPECULATIVE, "test_what_is_drawn_is_distributed_as_the_target_exactly"),
    "the grammar retry": ("sampling.test_rows", "test_the_grammar_retry"),
    "penalties of SGLang": (PRESETS, "test_penalties_of_sglang_come_before_repetition_and_count_what_was_generated"),
}


def test_each_row_is_held_by_a_test():
    for row, (module, name) in HELD.items():
        assert callable(getattr(importlib.import_module(f"tests.lmcore.{module}"), name, None)), row


def test_ten_equal_logits_keep_one_here_and_two_in_float32():
    for name in ("lmcore", "transformers", "llama.cpp"):
        settings = SamplingSettings(top_p=0.1) if name == "lmcore" else preset(name, top_p=0.1, top_k=None, min_p=None)
        assert reshape([1.0] * 10, settings).candidates == 1, name
    rising = torch.full((10,), 0.1).cumsum(0)  # as transformers sums them
    assert int((rising > 1 - 0.1).sum()) == 2


def test_a_sum_in_float32_stops_early():
    logits = torch.randn(151_936, generator=torch.Generator().manual_seed(0)) * 3
    exact = np.sort(oracles.softmax(logits.double().numpy()))[::-1]
    right = int(np.searchsorted(np.cumsum(exact), 0.99999)) + 1
    assert reshape(logits, SamplingSettings(top_p=0.99999)).candidates == right
    float32 = int(np.searchsorted(np.cumsum(exact.astype(np.float32), dtype=np.float32), np.float32(0.99999))) + 1
    assert abs(float32 - right) > 100  # thousands of tokens of the tail come or go with it


def test_mirostats_numbers_on_the_way():
    p = torch.tensor(oracles.softmax(oracles.WORKED))
    assert (-p.log2()).tolist() == pytest.approx([2.685, 3.839, 0.521, 5.282, 4.272], abs=6e-4)
    falling = p.sort(descending=True).values
    assert _zipf_count(falling, 3.0, 5) == 3  # int(3.106)
    two = reshape(oracles.WORKED, SamplingSettings(mirostat=2, mirostat_tau=1.5))
    assert two.steps[0].note == "mu is 3.0000 bits" and two.kept_ids.tolist() == [0, 2]


def test_the_thresholds_of_p_less():
    for temperature, plain, norm in ((1, 0.5183, 0.3979), (1.5, 0.35, 0.1875)):
        p = oracles.softmax(np.array(oracles.WORKED) / temperature)
        assert (p**2).sum() == pytest.approx(plain, abs=6e-5)
        assert (5 * (p**2).sum() - 1) / 4 == pytest.approx(norm, abs=6e-5)
        for form, threshold in ((1, plain), (2, norm)):
            kept = reshape(oracles.WORKED, SamplingSettings(temperature=temperature, p_less=form)).kept_ids.tolist()
            assert kept == np.flatnonzero(p >= threshold).tolist(), (temperature, form)


def test_the_grammar_retry():
    found = compare(oracles.WORKED, torch.arange(5) != 2, SamplingSettings(top_k=2))
    for probs, expected in (
        (found.first.probs, [0.1824, 0, 0.8176, 0, 0]),
        (found.masked.probs, [0.69, 0.31, 0, 0, 0]),
        (found.retried, [0.7465, 0.2535, 0, 0, 0]),
    ):
        np.testing.assert_allclose(probs, expected, atol=6e-5)
