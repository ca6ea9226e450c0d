"""Engine presets: order, defaults, what is off, what is ignored."""

import dataclasses

import numpy as np
import pytest

from lmcore.sampling import ENGINES, STAGES, History, SamplingSettings, preset, reshape

from . import oracles


def test_there_are_six_engines_and_each_says_what_it_does_and_how_that_is_known():
    assert list(ENGINES) == ["transformers", "vllm", "llama.cpp", "ollama", "exllamav2", "openai"]
    for name, engine in ENGINES.items():
        assert engine.name == name and engine.does and all(line.endswith(".") for line in engine.does)
        assert engine.source.split(":")[0] in ("run", "read", "assumed")
        assert engine.assumed == engine.source.startswith("assumed")
        assert set(engine.order) <= set(STAGES) and set(engine.defaults) <= set(engine.knobs)
        assert preset(name).engine == name
    assert "assumed" in ENGINES["openai"].title


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("transformers", {"top_k": 50}),
        ("vllm", {}),
        ("llama.cpp", {"top_k": 40, "top_p": 0.95, "min_p": 0.05, "temperature": 0.8}),
        ("ollama", {"repetition_penalty": 1.1, "top_k": 40, "top_p": 0.9, "temperature": 0.8}),
        ("exllamav2", {"repetition_penalty": 1.025, "temperature": 0.8, "top_k": 50, "top_p": 0.8}),
        ("openai", {}),
    ],
)
def test_defaults_and_order(name, active):
    settings = preset(name)
    assert {stage: getattr(settings, stage) for stage in settings.active} == active
    assert list(settings.active) == list(active)


@pytest.mark.parametrize(
    ("name", "knobs"),
    [
        ("transformers", {"top_k": 0, "top_p": 1.0, "min_p": None}),
        ("transformers", {"top_k": None, "top_p": 1.5, "min_p": 0}),
        ("vllm", {"top_k": -1, "top_p": 1, "min_p": 0}),
        ("llama.cpp", {"top_k": -5, "top_p": 2, "min_p": -1, "temperature": 1, "top_n_sigma": -1, "typical_p": 1.5}),
        ("ollama", {"top_k": 0, "top_p": 1, "min_p": 0, "temperature": 1, "repetition_penalty": 1}),
        ("exllamav2", {"top_k": -1, "top_p": 0, "min_p": 1, "typical_p": 0, "temperature": 1, "repetition_penalty": 1}),
    ],
)
def test_each_engines_way_of_saying_off(name, knobs):
    assert preset(name, **knobs).active == ()
    assert preset(name, **knobs).ignored == ()


def test_top_p_zero_is_off_in_exllamav2_and_one_token_elsewhere():
    for name in ENGINES:
        candidates = reshape(oracles.WORKED, preset(name, top_p=0.0, top_k=None, min_p=None)).candidates
        assert candidates == (5 if name == "exllamav2" else 1)


def test_a_knob_the_engine_lacks_is_ignored_and_named():
    assert preset("openai", temperature=1.5, top_k=3, top_p=0.9).ignored == ("top_k",)
    assert preset("vllm", typical_p=0.5, penalty_last_n=5).ignored == ("typical_p", "penalty_last_n")
    assert preset("transformers", presence_penalty=1).ignored == ("presence_penalty",)
    assert preset("openai", top_k=0, min_p=0, typical_p=1, logit_bias={1: 1.0}).ignored == ()


def test_bad_names_and_values_are_refused():
    with pytest.raises(ValueError, match="name is 'gpt'"):
        preset("gpt")
    with pytest.raises(ValueError, match="heat is not a sampling setting"):
        preset("vllm", heat=1)
    with pytest.raises(ValueError, match="top_k is -1"):
        preset("transformers", top_k=-1)
    with pytest.raises(ValueError, match="top_p is 'high'"):
        preset("llama.cpp", top_p="high")


@pytest.mark.parametrize(
    ("name", "temperature", "kept"),
    [("vllm", 0, 1), ("vllm", 9e-6, 1), ("vllm", 2e-5, 3), ("exllamav2", 0.009, 1), ("exllamav2", 0.02, 3)]
    + [(name, 0, 1) for name in ("llama.cpp", "ollama", "exllamav2", "openai")],
)
def test_where_greedy_begins(name, temperature, kept):
    off = {"top_k": None, "top_p": None, "min_p": None, "repetition_penalty": None}
    result = reshape([1.0, 1.0, 1.0], preset(name, temperature=temperature, **off))
    assert result.candidates == kept and result.kept_ids[0] == 0


def test_llama_cpp_is_greedy_among_what_typical_left():
    # One token is so probable that its surprisal is far from the entropy of the many others: typical removes it, and
    # the temperature, last, picks among the rest.
    logits = [np.log(0.3)] + [np.log(0.7 / 20)] * 20
    assert reshape(logits, preset("llama.cpp", temperature=0, typical_p=0.3)).kept_ids.tolist() == [1]
    assert reshape(logits, preset("llama.cpp", temperature=0)).kept_ids.tolist() == [0]


def test_temperature_last_leaves_the_filters_alone():
    for t in (0.1, 1.0, 5.0):
        assert reshape(oracles.WORKED, preset("llama.cpp", temperature=t)).kept_ids.tolist() == [0, 1, 2, 4]


@pytest.mark.parametrize(
    ("name", "knobs", "seen"),
    [
        ("transformers", {"repetition_penalty": 2}, {0, 1, 2}),
        ("vllm", {"repetition_penalty": 2}, {0, 1, 2}),
        ("vllm", {"presence_penalty": 1}, {2}),
        ("vllm", {"frequency_penalty": 1}, {2}),
        ("openai", {"presence_penalty": 1}, {2}),
        ("llama.cpp", {"presence_penalty": 1}, {0, 1, 2}),
        ("llama.cpp", {"presence_penalty": 1, "penalty_last_n": 2}, {1, 2}),
        ("ollama", {"repetition_penalty": 2}, {0, 1, 2}),
        ("exllamav2", {"frequency_penalty": 1}, {0, 1, 2}),
    ],
)
def test_which_tokens_each_engine_penalises(name, knobs, seen):
    off = {"top_k": None, "top_p": None, "min_p": None, "repetition_penalty": None, "temperature": 1}
    result = reshape([1.0] * 4, preset(name, **{**off, **knobs}), History(prompt=[0, 1], generated=[2]))
    assert set((result.probs < result.probs.max()).nonzero().squeeze(1).tolist()) == seen


def test_llama_cpp_forgets_tokens_older_than_its_window():
    history = [3] + [0] * 64
    result = reshape([1.0] * 4, preset("llama.cpp", repetition_penalty=2, top_k=0, top_p=1, min_p=0), history)
    assert result.probs[3] == result.probs[1] > result.probs[0]


def test_typical_in_exllamav2_uses_its_own_score_and_drops_the_crossing_token():
    probs = np.array([0.5, 0.3, 0.15, 0.05])
    score = probs + np.log(probs)
    order = np.argsort(np.abs(score - (probs * score).sum()), kind="stable")
    for mass in (0.1, 0.4, 0.6, 0.9):
        below = np.cumsum(probs[order]) < mass
        kept = sorted(order[: max(below.sum(), 1)].tolist())
        off = {"top_k": None, "top_p": None, "repetition_penalty": None, "temperature": 1}
        assert reshape(np.log(probs), preset("exllamav2", typical_p=mass, **off)).kept_ids.tolist() == kept


def test_order_and_rules_can_be_overridden():
    settings = preset("transformers", top_k=3, order=("top_k",))
    assert settings.order == ("top_k",)
    rules = dataclasses.replace(ENGINES["transformers"].rules, top_k_ties="lowest")
    assert reshape([1, 2, 2, 2, 3], preset("transformers", top_k=3, rules=rules)).candidates == 3


def test_presets_are_equal_hashable_settings():
    assert preset("vllm", top_k=5) == preset("vllm", top_k=5)
    assert len({preset(name) for name in ENGINES}) == 6
    assert isinstance(preset("vllm"), SamplingSettings)
