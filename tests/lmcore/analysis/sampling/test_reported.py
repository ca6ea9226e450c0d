"""Reported log-probabilities: against numpy over the whole vocabulary, and against transformers' own output."""

import math

import numpy as np
import pytest
import torch

from lmcore import SamplingSettings
from lmcore.analysis.sampling.reported import log_probs
from lmcore.sampling import PRESETS, History, preset
from tests.lmcore.sampling import oracles

Z = np.array(oracles.WORKED)
SEEN = [0, 3]


def ln(p):
    return np.log(np.maximum(p, 1e-300))


def edited(penalty):
    return np.array([z if i not in SEEN else z / penalty if z > 0 else z * penalty for i, z in enumerate(Z)])


def test_each_kind_is_the_logarithm_of_its_own_distribution():
    settings = SamplingSettings(repetition_penalty=1.3, temperature=0.7, top_k=3, top_p=0.9)
    z = edited(1.3)
    heated = oracles.softmax(z / 0.7)
    three = oracles.softmax(oracles.masked(z / 0.7, oracles.top_k(z, 3)))
    kept = oracles.top_p(np.where(three > 0, ln(three), -np.inf), 0.9)
    final = oracles.softmax(oracles.masked(z / 0.7, kept))
    share = sum(heated[token] for token in oracles.top_k(z, 3)) * sum(three[token] for token in kept)
    for token in range(5):
        found = log_probs(torch.tensor(Z), token, settings, History(SEEN))
        assert found.raw == pytest.approx(ln(oracles.softmax(Z))[token])
        assert found.edited == pytest.approx(ln(oracles.softmax(z))[token])
        assert found.heated == pytest.approx(ln(heated)[token])
        assert found.kept == pytest.approx(share)
        if token in kept:
            assert found.final == pytest.approx(ln(final)[token])
            assert found.final == pytest.approx(found.heated - math.log(found.kept))
        else:
            assert found.final == -math.inf


def test_at_temperature_0_the_number_before_the_filters_is_without_it():
    for settings in (SamplingSettings(temperature=0), preset("sglang", temperature=1e-7)):
        found = log_probs(torch.tensor(Z), 2, settings)
        assert found.final == 0 and found.heated == found.edited == pytest.approx(ln(oracles.softmax(Z))[2])


def test_a_token_that_is_impossible_from_the_beginning_stays_so():
    found = log_probs(torch.tensor([1.0, -math.inf, 2.0]), 2, SamplingSettings(temperature=0.5))
    assert found.raw == pytest.approx(-math.log(1 + math.exp(-1)))
    assert found.heated == found.final == pytest.approx(-math.log(1 + math.exp(-2))) and found.kept == 1


def test_which_one_an_engine_reports_is_one_of_those_measured():
    kinds = {kind for each in PRESETS.values() for kind in each.reports.values()}
    assert kinds == {"raw", "edited", "heated", "final", ""}
    assert next(iter(PRESETS["vllm"].reports.values())) == "raw"
    assert next(iter(PRESETS["sglang"].reports.values())) == "heated"
    assert PRESETS["exllamav2"].reports["probability"] == "final"


def test_scores_of_transformers_are_the_last_and_its_logits_the_first():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=20, n_positions=16, n_embd=8, n_layer=1, n_head=2)
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval()
    knobs = {"temperature": 0.7, "top_k": 5, "top_p": 0.8}
    told = model.generate(
        torch.tensor([[1, 2, 3]]),
        max_new_tokens=4,
        do_sample=True,
        output_logits=True,
        output_scores=True,
        return_dict_in_generate=True,
        pad_token_id=0,
        eos_token_id=None,
        **knobs,
    )
    for step, token in enumerate(told.sequences[0, 3:].tolist()):
        found = log_probs(told.logits[step][0], token, preset("transformers", **knobs))
        assert found.raw == pytest.approx(float(told.logits[step][0].log_softmax(-1)[token]), abs=1e-5)
        assert found.final == pytest.approx(float(told.scores[step][0].log_softmax(-1)[token]), abs=1e-5)
