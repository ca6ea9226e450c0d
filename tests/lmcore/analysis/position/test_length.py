"""Losses by position, against one pass a window, the corpus itself and numpy; runs that stop and go on."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import lmcore
from lmcore import Model, ModelConfig
from lmcore.analysis.position.length import binned, grammar_losses_by_position, losses_by_position
from lmcore.analysis.position.length_run import HeldOutLosses, LengthRun
from lmcore.analysis.position.rope_extension import with_rope_scaling
from lmcore.config import RopeScaling
from lmcore.corpus import Truth, windows
from lmcore.position import make_rotation, rope_frequencies


@pytest.fixture(scope="module")
def batch() -> np.ndarray:
    return next(windows(4711, 3, 160, lmcore.builtin.tokenizer()))


def test_losses_are_those_of_one_pass_a_window(batch):
    lm = lmcore.load("small-world-alibi")
    found = losses_by_position(lm, batch)
    assert found.shape == (3, 160) and found.dtype == np.float64
    for row, window in zip(found, batch, strict=True):
        logits = lm(window[:-1].tolist()).double().numpy()
        wanted = np.log(np.exp(logits).sum(-1)) - logits[np.arange(160), window[1:]]
        np.testing.assert_allclose(row, wanted, atol=1e-5)


def test_a_learned_table_is_asked_as_far_as_it_goes(batch):
    lm = lmcore.load("small-world-learned")
    found = losses_by_position(lm, batch)
    assert found.shape == (3, 128)
    np.testing.assert_allclose(found, losses_by_position(lm, batch[:, :129]), atol=1e-5)
    with pytest.raises(ValueError, match="context_length = 128"):
        lm(batch[0, :129].tolist())


def test_the_grammars_losses_are_its_next_token_distributions(batch):
    truth = Truth(lmcore.builtin.tokenizer())
    found = grammar_losses_by_position(truth, batch)
    assert found.shape == (3, 160)
    for position in (0, 1, 77, 159):
        probs = truth.next_token_probs(batch[2, : position + 1].tolist())
        assert found[2, position] == pytest.approx(-np.log(probs[batch[2, position + 1]]))


def test_bins_average_windows_and_neighbours():
    losses = np.random.default_rng(0).normal(size=(5, 10))
    bins = binned(losses, 4)
    assert bins.starts.tolist() == [0, 4, 8] and bins.ends.tolist() == [3, 7, 9]
    np.testing.assert_allclose(bins.means[2], losses[:, 8:].mean())
    per_window = losses[:, 4:8].mean(1)
    np.testing.assert_allclose(bins.errors[1], per_window.std(ddof=1) / np.sqrt(5))
    assert np.isnan(binned(losses[:1], 4).errors).all()


def test_a_run_measures_each_batch_once_and_the_next_run_goes_on_from_there():
    asked = []

    def measure(ids):
        asked.append(int(ids[0, 0]))
        return ids[:, :-1].astype(float)

    batches = [np.full((2, 4), number) for number in range(3)]
    losses = HeldOutLosses(batches)
    first = LengthRun(losses, {"a": measure}, 2)
    first.join()
    assert first.done == 1 and not first.running and first.error is None
    second = LengthRun(losses, {"a": measure}, 3)
    second.join()
    assert asked == [0, 1, 2]
    np.testing.assert_array_equal(losses.measured("a", 3)[:, 0], [0, 0, 1, 1, 2, 2])
    assert losses.measured("a", 1).shape == (2, 3)
    assert losses.measured("b", 3) is None


def test_a_run_stops_between_batches_and_keeps_what_it_has():
    entered, leave = threading.Event(), threading.Event()

    def measure(ids):
        entered.set()
        assert leave.wait(30)
        return ids[:, :-1].astype(float)

    losses = HeldOutLosses([np.zeros((1, 3), dtype=int)] * 5)
    run = LengthRun(losses, {"a": measure}, 5)
    assert entered.wait(30) and run.running
    run.stop()
    leave.set()
    run.join()
    assert not run.running and run.done == pytest.approx(1 / 5)


def test_what_goes_wrong_is_told():
    def measure(ids):
        raise ValueError("no such batch")

    run = LengthRun(HeldOutLosses([np.zeros((1, 3), dtype=int)]), {"a": measure}, 1)
    run.join()
    assert str(run.error) == "no such batch" and run.done == 0


def test_a_scaled_model_rotates_more_slowly_and_leaves_the_other_as_it_was():
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=1600, d_model=16, n_layers=1, n_heads=2, context_length=64, init_std=0.4)
    lm = lmcore.LanguageModel("tiny", Model(config), lmcore.builtin.tokenizer())
    ids = torch.arange(40)
    plain = lm(ids)
    scaled = with_rope_scaling(lm, RopeScaling(kind="linear", factor=2.0))
    trace = lmcore.Trace()
    scaled(ids, trace=trace)
    q = trace["blocks.0.attn.q"][1]
    half_way = make_rotation(torch.arange(40) / 2, rope_frequencies(8))(q)
    torch.testing.assert_close(trace["blocks.0.attn.q_rotated"][1], half_way, atol=1e-5, rtol=1e-5)
    assert scaled.model.head.weight is scaled.model.token_embedding.weight
    torch.testing.assert_close(lm(ids), plain)
    torch.testing.assert_close(with_rope_scaling(lm, None)(ids), plain)


def test_yarn_sharpens_scores_by_the_square_of_its_factor():
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=1600, d_model=16, n_layers=1, n_heads=2, context_length=64, init_std=0.4)
    lm = lmcore.LanguageModel("tiny", Model(config), lmcore.builtin.tokenizer())
    scaling = RopeScaling(kind="yarn", factor=4.0, original_context_length=16)
    trace = lmcore.Trace()
    with_rope_scaling(lm, scaling)(torch.arange(40), trace=trace)
    lengths = {name: trace[f"blocks.0.attn.{name}"][0].double().norm(dim=-1) for name in ("q", "q_rotated")}
    factor = 0.1 * np.log(4) + 1  # YaRN, section 3.4: on q and on k
    np.testing.assert_allclose(lengths["q_rotated"], factor * lengths["q"], rtol=1e-5)
    q, k = (trace[f"blocks.0.attn.{name}_rotated"][0].double().numpy() for name in "qk")
    wanted = q @ k.T / np.sqrt(8)
    np.testing.assert_allclose(trace["blocks.0.attn.scores"][0], wanted, atol=1e-4)


def test_only_rope_can_be_scaled():
    with pytest.raises(ValueError, match="'alibi'"):
        with_rope_scaling(lmcore.load("small-world-alibi"), None)
