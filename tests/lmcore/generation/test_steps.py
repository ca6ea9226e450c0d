"""Generation: the same draws with and without cache, in one piece or in several, looked at or not."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import lmcore
from lmcore import SamplingSettings, generate
from lmcore.checkpoints.families import LLAMA
from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.weights import build
from lmcore.generation.tree import GenerationTree
from lmcore.sampling import new_generator


@pytest.fixture(scope="module")
def lm():
    return lmcore.load("small-world")


@pytest.fixture(scope="module")
def prompt(lm):
    return lm.tokenizer.encode("今天天气").ids


SETTINGS = SamplingSettings(temperature=0.9, top_p=0.95, repetition_penalty=1.1, seed=5)


def test_the_cache_changes_nothing(lm, prompt):
    cached = list(generate(lm, prompt, SETTINGS, max_new_tokens=30))
    uncached = list(generate(lm, prompt, SETTINGS, max_new_tokens=30, use_cache=False))
    assert [step.token_id for step in cached] == [step.token_id for step in uncached]
    for one, other in zip(cached, uncached, strict=True):
        torch.testing.assert_close(one.logits, other.logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("knobs", [{"mirostat": 2, "mirostat_tau": 1.0, "mirostat_eta": 1.0}, {"adaptive_target": 0.4}])
def test_a_stage_with_a_state_carries_it_from_token_to_token(lm, prompt, knobs):
    settings = SamplingSettings(**knobs, seed=3)
    steps = list(generate(lm, prompt, settings, max_new_tokens=8))
    state, stateless = None, []
    for step in steps:
        history = lmcore.History(prompt, [each.token_id for each in steps[: step.position - len(prompt)]])
        expected = lmcore.reshape(step.logits, settings, history, state)
        assert torch.equal(step.result.probs, expected.probs)
        stateless.append(torch.equal(expected.probs, lmcore.reshape(step.logits, settings, history).probs))
        state = expected.next_state(step.token_id)
    assert stateless[0] and not all(stateless)
    tree = GenerationTree(lm, prompt)
    node = tree.root
    for step in steps:
        node = tree.draw(node, settings)
        assert node.token_id == step.token_id
        assert tree.result(node).probs.allclose(step.result.probs, atol=1e-6)


def test_each_step_is_the_models_own_distribution(lm, prompt):
    ids = list(prompt)
    for step in generate(lm, prompt, SETTINGS, max_new_tokens=12):
        logits = lm(ids)[-1]
        torch.testing.assert_close(step.logits, logits, rtol=1e-4, atol=1e-4)
        history = lmcore.History(prompt, ids[len(prompt) :])
        expected = lmcore.reshape(step.logits, SETTINGS, history)
        assert torch.equal(step.result.probs, expected.probs)
        assert step.prob == expected.probs[step.token_id] > 0
        assert (step.position, step.token) == (len(ids), lm.tokenizer.token_bytes(step.token_id))
        ids.append(step.token_id)


@pytest.mark.slow
def test_same_seed_same_text_and_looking_changes_nothing(lm, prompt):
    def text(look: bool, seed: int) -> list[int]:
        found = []
        for step in generate(lm, prompt, SamplingSettings(seed=seed), max_new_tokens=25):
            if look:
                assert step.result.probs.sum().item() == pytest.approx(1)
                torch.rand(3)  # someone else draws from the global generator
            found.append(step.token_id)
        return found

    assert text(False, 1) == text(True, 1)
    assert len({tuple(text(False, seed)) for seed in range(5)}) > 1


def test_a_generation_in_pieces_is_the_same_text(lm, prompt):
    whole = [step.token_id for step in generate(lm, prompt, SETTINGS, max_new_tokens=20)]
    generator, ids = new_generator(SETTINGS.seed), list(prompt)
    for count in (1, 4, 15):
        steps = generate(lm, ids, SETTINGS, max_new_tokens=count, generator=generator, prompt_length=len(prompt))
        ids += [step.token_id for step in steps]
    assert ids[len(prompt) :] == whole


def test_greedy_text_equals_transformers():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=60,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.3,
        eos_token_id=None,
        bos_token_id=None,
    )
    reference = LlamaForCausalLM(config).eval()
    ours = LLAMA.config_from(Fields(config.to_dict()))

    class Sixty:
        vocab_size, special_tokens = 60, {}
        token_bytes = staticmethod(lambda token_id: bytes([token_id]))

    lm = lmcore.LanguageModel("tiny", build(ours, LLAMA.weights_from(reference.state_dict(), ours), "tiny"), Sixty())
    prompt = [3, 14, 15, 9]
    theirs = reference.generate(torch.tensor([prompt]), max_new_tokens=40, do_sample=False, pad_token_id=0)
    steps = generate(lm, prompt, SamplingSettings(temperature=0), max_new_tokens=40)
    assert [step.token_id for step in steps] == theirs[0, 4:].tolist()


def test_it_ends_at_a_stop_id_and_at_a_full_context(lm, prompt):
    greedy = SamplingSettings(temperature=0)
    first = next(generate(lm, prompt, greedy, max_new_tokens=1)).token_id
    assert [s.token_id for s in generate(lm, prompt, greedy, max_new_tokens=9, stop_ids=[first])] == [first]
    learned = lmcore.load("small-world-learned")
    full = (prompt * 100)[:127]
    assert len(list(generate(learned, full, greedy, max_new_tokens=50))) == 2


def test_bad_requests_are_refused_before_the_first_step(lm, prompt):
    with pytest.raises(ValueError, match="max_new_tokens must be a whole number of at least 1, got 0"):
        generate(lm, prompt, max_new_tokens=0)
    with pytest.raises(ValueError, match="ids is empty"):
        generate(lm, [], max_new_tokens=1)
    with pytest.raises(ValueError, match="the prompt's 513 tokens are more than context_length = 512"):
        generate(lm, [1] * 513, max_new_tokens=1)
