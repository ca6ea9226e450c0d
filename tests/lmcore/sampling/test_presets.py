"""Engine presets: order, defaults, what is off, what is ignored."""

import dataclasses
import re

import numpy as np
import pytest
import torch

from lmcore.sampling import ENGINES, PRESETS, STAGES, Engine, History, Preset, SamplingSettings, preset, reshape
from lmcore.sampling.presets import Refused

from . import oracles


def test_each_engine_says_what_it_does_how_that_is_known_and_when():
    assert (ENGINES, Engine) == (PRESETS, Preset)  # their old names
    assert {"transformers", "vllm", "sglang", "llama.cpp", "ollama", "ollama-v1", "openai"} < set(PRESETS)
    for name, engine in PRESETS.items():
        assert engine.version and re.fullmatch(r"20\d\d-\d\d(-\d\d)?", engine.date)
        assert engine.name == name and engine.does and all(line.endswith(".") for line in engine.does)
        assert engine.source.split(":")[0] in ("run", "read", "assumed")
        assert engine.assumed == engine.source.startswith("assumed")
        assert set(engine.order) <= set(STAGES) and set(engine.defaults) <= set(engine.knobs)
        assert preset(name).engine == name
    assert "assumed" in PRESETS["openai"].title


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("transformers", {"top_k": 50}),
        ("vllm", {}),
        ("llama.cpp", {"top_k": 40, "top_p": 0.95, "min_p": 0.05, "temperature": 0.8}),
        ("ollama", {"top_k": 40, "top_p": 0.9, "temperature": 0.8}),  # its repeat penalty is 1.0 since 2026-08-11
        ("ollama-v1", {"top_k": 40}),
        ("ollama-mlx", {"top_k": 40, "temperature": 0.8, "top_p": 0.9}),
        ("sglang", {}),
        ("exllamav3", {"min_p": 0.08, "temperature": 0.8}),
        ("koboldcpp", {"top_k": 100, "top_p": 0.9, "temperature": 0.7}),
        ("text-generation-webui", {"top_p": 0.95}),
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
        ("text-generation-webui", {"top_k": 0, "top_p": 1, "adaptive_target": 0}),
        ("exllamav2", {"top_k": -1, "top_p": 0, "min_p": 1, "typical_p": 0, "temperature": 1, "repetition_penalty": 1}),
    ],
)
def test_each_engines_way_of_saying_off(name, knobs):
    assert preset(name, **knobs).active == ()
    assert preset(name, **knobs).ignored == ()


def test_top_p_zero_is_off_in_exllamav2_and_in_ollamas_mlx_runner_and_one_token_elsewhere():
    for name in PRESETS.keys() - {"vllm", "sglang", "sglang-pytorch", "tgi"}:  # these refuse it
        candidates = reshape(oracles.WORKED, preset(name, top_p=0.0, top_k=None, min_p=None)).candidates
        assert candidates == (5 if name in ("exllamav2", "ollama-mlx") else 1), name


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
    [
        ("vllm", 0, 1),
        ("vllm", 9e-6, 3),
        ("sglang", 9e-7, 1),
        ("sglang", 2e-6, 3),
        ("exllamav2", 0.009, 1),
        ("exllamav2", 0.02, 3),
    ]
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
    rules = dataclasses.replace(PRESETS["transformers"].rules, top_k_ties="lowest")
    assert reshape([1, 2, 2, 2, 3], preset("transformers", top_k=3, rules=rules)).candidates == 3


def test_presets_are_equal_hashable_settings():
    assert preset("vllm", top_k=5) == preset("vllm", top_k=5)
    assert len({preset(name) for name in PRESETS}) == len(PRESETS)
    assert isinstance(preset("vllm"), SamplingSettings)


@pytest.mark.parametrize(
    ("name", "probs"),
    [
        *(
            (n, [0.1555, 0.0699, 0.6971, 0.0257, 0.0518])
            for n in ("transformers", "vllm", "sglang", "ollama-v1", "openai")
        ),
        ("llama.cpp", [0.1228, 0.0452, 0.8009, 0, 0.0311]),
        *((n, [0.1268, 0.0466, 0.8266, 0, 0]) for n in ("ollama", "exllamav3")),
        ("ollama-mlx", [0.1330, 0, 0.8670, 0, 0]),
        ("koboldcpp", [0.1016, 0.0324, 0.8660, 0, 0]),
        ("text-generation-webui", [0.1596, 0.0717, 0.7155, 0, 0.0531]),
        ("exllamav2", [0, 0, 1, 0, 0]),
        ("sglang-pytorch", [0.1555, 0.0699, 0.6971, 0.0257, 0.0518]),
        ("ollama-go", [0.1330, 0, 0.8670, 0, 0]),  # the temperature comes before top-p there
    ],
)
def test_what_a_silent_user_of_each_server_gets(name, probs):
    np.testing.assert_allclose(reshape(oracles.WORKED, preset(name)).probs.numpy(), probs, atol=5e-5)


TEMPERED, HALF = [0.2323, 0.1363, 0.6314, 0, 0], [0.2689, 0, 0.7311, 0, 0]


def test_tabbyapi_under_the_preset_of_its_sample_configuration():
    assert preset("tabbyapi").active == ()
    probs = reshape(oracles.WORKED, preset("tabbyapi", temperature=0.8, top_p=0.9)).probs
    np.testing.assert_allclose(probs, [0.1330, 0, 0.8670, 0, 0], atol=5e-5)
    assert preset("tabbyapi", dry_multiplier=1, typical_p=0.5, mirostat=2).ignored == (
        *("dry_multiplier", "typical_p", "mirostat"),
    )


def test_where_the_sum_is_exactly_p_some_engines_keep_one_more():
    logits = np.log([0.5, 0.3, 0.2])
    for name in PRESETS.keys() - {"exllamav2"}:
        kept = reshape(logits, preset(name, temperature=1, top_k=None, min_p=None, top_p=0.5)).candidates
        assert kept == (2 if name in ("sglang-pytorch", "ollama-go") else 1), name


def test_top_p_of_sglangs_pytorch_backend_looks_at_the_whole_vocabulary_with_min_p_too():
    knobs = {"temperature": 1.5, "top_k": 3, "top_p": 0.85, "min_p": 0.01}
    assert reshape(oracles.WORKED, preset("sglang-pytorch", **knobs)).candidates == 3
    assert reshape(oracles.WORKED, preset("sglang", **knobs)).candidates == 2
    assert reshape([1, 2, 2, 2, 3], preset("sglang-pytorch", top_k=2)).candidates == 2


UNTEMPERED = [0.1268, 0.0466, 0.8266, 0, 0]
WORKED_KNOBS = [
    (
        {"temperature": 1.5, "top_k": 3, "top_p": 0.9},
        TEMPERED,
        (*("transformers", "vllm", "sglang", "exllamav3"), *("tabbyapi", "ollama-mlx", "ollama-go")),
    ),
    ({"temperature": 1.5, "top_k": 3, "top_p": 0.9}, HALF, ("llama.cpp", "ollama", "exllamav2")),
    ({"temperature": 1.5, "top_k": 3, "top_p": 0.9}, [0.2090, 0.1226, 0.5681, 0, 0.1004], ("openai",)),
    ({"temperature": 0.8, "top_k": 3, "top_p": 0.95}, [0.1330, 0, 0.8670, 0, 0], ("transformers",)),
    ({"temperature": 0.8, "top_k": 3, "top_p": 0.95}, UNTEMPERED, ("llama.cpp", "sglang")),
    ({"temperature": 0.8, "top_k": 3, "top_p": 0.95}, [0, 0.0534, 0.9466, 0, 0], ("exllamav2",)),  # a hole
    ({"temperature": 1.5, "top_k": 3, "top_p": 0.85}, HALF, ("transformers", "vllm")),
    ({"temperature": 1.5, "top_k": 3, "top_p": 0.85}, TEMPERED, ("sglang",)),  # jointly
    ({"temperature": 1.5, "top_k": 3, "top_p": 0.85, "min_p": 0.01}, HALF, ("sglang",)),
    ({"temperature": 1.5, "top_p": 0.8, "min_p": 0.2}, TEMPERED, ("transformers", "sglang")),
    ({"temperature": 1.5, "top_p": 0.8, "min_p": 0.2}, HALF, ("vllm", "exllamav3")),
]


@pytest.mark.parametrize(("knobs", "probs", "names"), WORKED_KNOBS)
def test_the_same_knobs_under_each_preset(knobs, probs, names):
    for name in names:
        settings = preset(name, **{**dict.fromkeys(PRESETS[name].defaults), **knobs})
        np.testing.assert_allclose(reshape(oracles.WORKED, settings).probs.numpy(), probs, atol=6e-5, err_msg=name)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("vllm", "temperature", 2.1),
        ("vllm", "top_p", 0),
        ("vllm", "presence_penalty", 2.5),
        ("sglang", "top_k", 0),
        ("sglang", "top_p", 0),
        ("openai", "temperature", 2.1),
        ("openai", "frequency_penalty", -2.1),
        ("llama.cpp", "penalty_last_n", -1),
        ("ollama", "penalty_last_n", -1),
    ],
)
def test_a_knob_out_of_range_is_refused_as_the_server_does(name, field, value):
    with pytest.raises(Refused, match=f"refuses {field} = {value}") as error:
        preset(name, **{field: value})
    assert (error.value.preset.name, error.value.field) == (name, field)


@pytest.mark.parametrize(
    ("name", "window", "seen"),
    [
        ("llama.cpp", 0, set()),  # off
        ("llama.cpp", 2, {1, 2}),
        ("ollama", 0, set()),
        ("exllamav2", 0, set()),
        ("exllamav2", -1, {0, 1, 2}),
        ("text-generation-webui", 0, {0, 1, 2}),
    ],
)
def test_what_a_penalty_window_means_to_each_engine(name, window, seen):
    off = {"top_k": None, "top_p": None, "min_p": None, "temperature": 1, "repetition_penalty": 2}
    settings = preset(name, **{**off, "penalty_last_n": window})
    result = reshape([1.0] * 4, settings, History(prompt=[0, 1], generated=[2]))
    assert set((result.probs < result.probs.max()).nonzero().squeeze(1).tolist()) == seen


def test_a_small_temperature_is_raised_in_vllm():
    result = reshape(oracles.WORKED, preset("vllm", temperature=0.001))
    assert torch.equal(result.probs, reshape(oracles.WORKED, preset("vllm", temperature=0.01)).probs)


def test_penalties_of_sglang_come_before_repetition_and_count_what_was_generated():
    history = History(prompt=[2], generated=[0])
    settings = preset("sglang", repetition_penalty=1.2, presence_penalty=0.5)
    after = reshape(oracles.WORKED, settings, history).final.logits
    np.testing.assert_allclose(after.numpy(), [(2.3 - 0.5) / 1.2, 1.5, 3.8, 0.5, 1.2], atol=1e-12)


def test_mirostat_of_llama_cpp_leaves_the_bias_and_the_temperature():
    settings = preset("llama.cpp", mirostat=2, temperature=1.5, logit_bias={0: 1.0})
    assert settings.active == ("logit_bias", "temperature", "mirostat")
    assert set(settings.ignored) == {"top_k", "top_p", "min_p"}


QWEN = {"temperature": 0.6, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.05}


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("transformers", QWEN),
        ("vllm", QWEN),
        ("sglang", QWEN),
        ("llama.cpp", {**QWEN, "min_p": 0.05}),
        ("ollama", {"top_k": 40, "top_p": 0.9, "temperature": 0.8}),  # it sends its own with every request
        ("tabbyapi", {}),
        ("openai", {}),
    ],
)
def test_what_each_engine_takes_from_the_models_own_files(name, active):
    settings = preset(name, model={**QWEN, "unheard_of": 3, "min_p": "low"})
    assert {stage: getattr(settings, stage) for stage in settings.active} == active
    asked = preset(name, model=QWEN, temperature=1.5, top_k=7)
    assert asked.temperature == 1.5  # what is asked for comes before all


def test_vllm_passes_over_what_transformers_would_do_anyway():
    assert preset("vllm", model={"top_k": 50, "temperature": 1.0}).active == ()
    assert preset("sglang", model={"top_k": 50}).top_k == 50
    assert preset("llama.cpp", model={"mirostat": 2}).active == ("temperature", "mirostat")


@pytest.mark.parametrize("name", PRESETS)
def test_dynamic_temperature_is_ignored_by_engines_without_it(name):
    has = name in ("llama.cpp", "koboldcpp", "text-generation-webui")
    assert ("dynatemp_range" in preset(name, temperature=1.0, dynatemp_range=0.5).ignored) is not has
