"""A text under settings, against numpy over the whole vocabulary at each position."""

import math

import numpy as np
import pytest
import torch

import lmcore
from lmcore import SamplingSettings
from lmcore.analysis.sampling.through import ScoredThrough, TextLogits
from lmcore.corpus.truth import Truth
from lmcore.sampling import History, preset, reshape


@pytest.fixture(scope="module")
def text():
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode("The cat is in the garden. It is happy.").ids
    return TextLogits.of(lm(ids), ids)


def test_what_no_setting_changes(text):
    p = np.exp(text.logits.double().numpy() - text.totals.numpy()[:, None])
    np.testing.assert_allclose(p.sum(-1), 1, atol=1e-12)
    np.testing.assert_allclose(text.entropy_bits, -(p * np.log2(np.maximum(p, 1e-300))).sum(-1), atol=1e-9)
    came = p[np.arange(len(text)), list(text.ids[1:])]
    np.testing.assert_allclose(text.bits, -np.log2(came), atol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        SamplingSettings(temperature=0.7, top_p=0.9),
        preset("llama.cpp", temperature=1.3, repetition_penalty=1.2),
        SamplingSettings(mirostat=2, mirostat_tau=1.0),
        SamplingSettings(),
    ],
)
def test_each_position_is_reshaped_with_what_stands_before_it(text, settings):
    found = ScoredThrough.of(text, settings)
    state = None
    for place in range(len(text)):
        result = reshape(text.logits[place], settings, History(prompt=text.ids[: place + 1]), state)
        token = text.ids[place + 1]
        state = result.next_state(token)
        p = float(result.probs[token])
        assert found.candidates[place] == result.candidates
        assert float(found.bits[place]) == pytest.approx(-math.log2(p) if p else math.inf)
        assert float(found.removed_mass[place]) == pytest.approx(result.removed_mass, abs=1e-12)
        assert float(found.entropy_bits[place]) == pytest.approx(result.entropy_bits)
    assert found.possible.tolist() == [bits < math.inf for bits in found.bits.tolist()]


def test_where_settings_cut_too_hard_and_leave_too_loose(text):
    greedy = ScoredThrough.of(text, SamplingSettings(temperature=0))
    wrong = [place for place in range(len(text)) if int(text.logits[place].argmax()) != text.ids[place + 1]]
    assert sorted(greedy.too_hard) == wrong and not greedy.too_loose
    assert greedy.too_hard == sorted(wrong, key=lambda place: float(text.bits[place]))
    plain = ScoredThrough.of(text, SamplingSettings())
    assert not plain.too_hard and len(plain.too_loose) == len(text)
    assert float(plain.removed_mass.max()) == 0


def test_the_distance_to_the_small_worlds_truth(text):
    truth = Truth(lmcore.load("small-world").tokenizer)
    known = [truth.next_token_probs(text.ids[: place + 1]) for place in range(len(text))]
    assert any(row is not None for row in known)
    plain = ScoredThrough.of(text, SamplingSettings(), known)
    torch.testing.assert_close(plain.truth_before, plain.truth_after, equal_nan=True)
    hot = ScoredThrough.of(text, SamplingSettings(temperature=3), known)
    assert hot.truth_after.nanmean() > plain.truth_after.nanmean()
    assert list(hot.columns())[-1] == "truth_distance_after"


def test_a_text_of_one_token_is_refused():
    with pytest.raises(ValueError, match="2 tokens or more"):
        TextLogits.of(torch.zeros(1, 5), [0])
