"""The models that ship: their weights, their record, and how near they are to the grammar they learned."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

import lmcore
from lmcore import builtin
from lmcore.checkpoints.weights import own_tensors, read_weights
from lmcore.corpus import Truth
from lmcore.model import Model
from lmcore.training import TrainingSettings, train
from lmcore.training.builtin_models import HELD_OUT_SEED, SEED, batches, held_out

pytestmark = pytest.mark.slow

NAMES = builtin.names()


@pytest.fixture(scope="module")
def lm():
    return lmcore.load("small-world")


@pytest.fixture(scope="module")
def truth(lm):
    return Truth(lm.tokenizer)


@pytest.mark.parametrize("name", NAMES)
def test_every_model_loads_and_its_record_fits(name):
    lm = lmcore.load(name)
    record = builtin.record(name)
    assert lm.name == name
    assert lmcore.ModelConfig.from_dict(record["config"]) == lm.config == builtin.configs()[name]
    assert len(record["loss_curve"]) == record["training"]["steps"]
    total = sum(parameter.numel() for parameter in lm.model.parameters())
    assert total == lmcore.parameters.count(lm.config).total
    assert 1_000_000 <= total <= 3_000_000


def test_together_they_stay_small():
    assert sum(path.stat().st_size for path in builtin.FOLDER.iterdir()) < 40e6


def test_the_default_model_knows_the_weather(lm, truth):
    ids = lm.tokenizer.encode("今天天气").ids
    assert len(ids) == 2
    probs = lm(ids)[-1].double().softmax(-1).numpy()
    assert np.abs(probs - truth.next_token_probs(ids)).sum() / 2 <= 0.03


def test_the_default_model_is_within_three_percent_of_the_grammar(lm):
    measured = held_out(lm)
    assert measured["excess"] <= 0.03
    recorded = builtin.record()["held_out"]
    for key in ("loss", "grammar_loss", "entropy_rate", "weather_total_variation"):
        assert measured[key] == pytest.approx(recorded[key], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_every_model_learned_the_small_world(name):
    """A model whose weights were mixed up scores several nats; one without positions stays behind."""
    assert held_out(lmcore.load(name), n_batches=2)["excess"] <= 0.35


def test_held_out_text_is_not_the_training_text():
    seen = {tuple(row) for ids in itertools.islice(batches(SEED), 50) for row in ids.tolist()}
    fresh = [tuple(row) for ids in itertools.islice(batches(HELD_OUT_SEED), 4) for row in ids.tolist()]
    assert not seen & set(fresh)


def test_the_record_can_be_made_again():
    """The first steps of the recorded curve come out again from its seed."""
    record = builtin.record()["training"]
    threads = torch.get_num_threads()
    torch.set_num_threads(record["threads"])
    try:
        torch.manual_seed(record["seed"])
        model = Model(builtin.configs()["small-world"])
        settings = TrainingSettings(steps=record["steps"])
        losses = [step.loss for step in itertools.islice(train(model, batches(record["seed"]), settings), 5)]
    finally:
        torch.set_num_threads(threads)
    # Processors add in different orders; five steps apart is as far as that is bound to stay small.
    assert losses == pytest.approx(builtin.record()["loss_curve"][:5], rel=1e-3)


def test_snapshots_begin_at_the_seed_and_end_at_the_model(lm):
    snapshots = builtin.embedding_snapshots()
    torch.manual_seed(builtin.record()["training"]["seed"])
    start = Model(lm.config).token_embedding.weight
    assert torch.equal(snapshots[0], start.detach().half().float())
    last = max(snapshots)
    assert last == builtin.record()["training"]["steps"]
    assert torch.equal(snapshots[last], lm.model.token_embedding.weight)


def test_a_tied_matrix_is_stored_once():
    for name in NAMES:
        stored = read_weights(builtin.BuiltinModel(name).weights_path)
        assert stored.keys() == own_tensors(lmcore.load(name).model).keys()
        assert ("head.weight" in stored) == (name == "small-world-untied")


def test_free_text_inside_the_world_goes_on_sensibly(lm, truth):
    """Sixty tokens drawn with the usual settings stay inside the grammar almost everywhere."""
    impossible = total = 0
    for seed, prompt in enumerate(["今天天气", "我喜欢", "小明喜欢小红", "The weather", "The king", "Apple"]):
        ids = lm.tokenizer.encode(prompt).ids
        settings = lmcore.SamplingSettings(temperature=0.8, top_p=0.9, seed=seed)
        drawn = [step.token_id for step in lmcore.generate(lm, ids, settings, max_new_tokens=60)]
        end = lm.tokenizer.special_tokens["<|endoftext|>"]
        if end in drawn:
            drawn = drawn[: drawn.index(end)]
        log_probs = truth.log_prob(ids + drawn)[len(ids) - 1 :]
        broken = np.flatnonzero(np.isneginf(log_probs))
        impossible += bool(broken.size)
        total += 1
    assert impossible <= total // 3


def test_the_same_word_has_two_meanings(lm):
    """苹果 has one row, and two hidden states by what stands before it."""
    hidden = []
    for text in ("水果店里，苹果", "手机店里，苹果"):
        trace = lmcore.Trace()
        ids = lm.tokenizer.encode(text).ids
        lm(ids, trace=trace)
        assert lm.tokenizer.token_bytes(ids[-1]).decode() == "苹果"
        hidden.append((trace["token_embedding"][-1], trace["hidden_state"][-1]))
    assert torch.equal(hidden[0][0], hidden[1][0])
    assert torch.cosine_similarity(hidden[0][1], hidden[1][1], dim=0) < 0.9


def test_an_unknown_name_says_what_there_is():
    with pytest.raises(ValueError, match="no model is called 'gpt-5'.*choose one of small-world, "):
        lmcore.load("gpt-5")
    assert [model.name for model in lmcore.available()][0] == "small-world"


def test_the_entropy_is_no_smaller_than_the_record_of_the_grammar():
    recorded = builtin.record()["held_out"]
    assert recorded["perplexity"] == pytest.approx(math.exp(recorded["loss"]))
    assert recorded["loss"] >= recorded["grammar_loss"] * 0.99


def test_every_position_encoding_works_in_bfloat16() -> None:
    for name in builtin.configs():
        exact, rounded = (lmcore.load(each)([5, 6, 7, 8]).log_softmax(-1) for each in (name, f"{name}:bfloat16"))
        assert (exact.argmax(-1) == rounded.argmax(-1)).all(), name
        assert (exact - rounded).abs().max() < 0.5, name  # bfloat16 has 8 bits of a number
