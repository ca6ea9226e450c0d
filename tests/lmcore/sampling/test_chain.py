"""reshape: the steps it returns, its laziness, its input."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import lmcore.sampling
from lmcore.sampling import NOTES, History, SamplingSettings, preset, reshape

from . import oracles

Z = oracles.WORKED


def test_without_settings_it_is_the_softmax_with_no_step():
    result = reshape(Z)
    np.testing.assert_allclose(result.probs.numpy(), oracles.softmax(Z), atol=1e-15)
    assert result.steps == () and result.candidates == 5 and result.removed_mass == 0
    assert torch.equal(result.initial_probs, result.probs)


def test_each_step_says_what_it_kept_removed_and_how_much():
    result = reshape(Z, SamplingSettings(temperature=1.5, top_k=3, top_p=0.8))
    assert [step.name for step in result.steps] == ["temperature", "top_k", "top_p"]
    assert [step.settings for step in result.steps] == [{"temperature": 1.5}, {"top_k": 3}, {"top_p": 0.8}]
    assert [step.kept for step in result.steps] == [5, 3, 2]
    assert [step.kept_ids.tolist() for step in result.steps] == [[0, 1, 2, 3, 4], [0, 1, 2], [0, 2]]
    assert [step.removed_ids.tolist() for step in result.steps] == [[], [3, 4], [1]]
    tempered = oracles.softmax(np.array(Z) / 1.5)
    survivors = oracles.softmax(oracles.masked(np.array(Z) / 1.5, {0, 1, 2}))
    masses = [step.removed_mass for step in result.steps]
    np.testing.assert_allclose(masses, [0, tempered[3] + tempered[4], survivors[1]], atol=1e-15)
    np.testing.assert_allclose(result.steps[1].probs.numpy(), survivors, atol=1e-15)
    assert torch.equal(result.steps[-1].probs, result.probs)


def test_the_result_says_which_step_removed_each_token():
    logits = [*Z, -math.inf]
    result = reshape(logits, SamplingSettings(top_k=3, top_p=0.8))
    assert result.removed_by.tolist() == [-1, 1, -1, 0, 0, -2]
    initial = oracles.softmax(logits)
    assert result.removed_mass == pytest.approx(initial[1] + initial[3] + initial[4])


def test_entropy_and_effective_vocabulary_are_of_the_final_distribution():
    result = reshape([0.0] * 8, SamplingSettings(top_k=4))
    assert result.entropy_bits == 2 and result.effective_vocabulary == 4
    assert result.steps[0].entropy_bits == 2


def test_notes():
    def notes(logits, **knobs):
        return [str(step.note) for step in reshape(logits, SamplingSettings(**knobs)).steps]

    assert notes(Z, top_k=500) == ["top_k 500 was clamped to the 5 tokens of the vocabulary"]
    assert notes(Z, top_k=5) == [""]
    assert notes(Z, top_p=0) == ["top_p 0 keeps one token"]
    assert notes(Z, repetition_penalty=1.1) == ["no token has been seen yet, so there is nothing to penalise"]
    assert notes([1, 2, 2], temperature=0) == [
        "temperature 0 is greedy: of 2 equally probable tokens the one with the lowest id is kept"
    ]
    assert notes([0, 0, 0, 0], epsilon_cutoff=0.9) == ["no token qualifies, so the most probable is kept"]
    step = reshape(Z, preset("vllm", top_k=500)).steps[0]
    assert step.note == "top_k 500 is more than the 5 tokens of the vocabulary, so it is off"
    assert step.note.template in NOTES and step.note.values == {"k": 500, "size": 5}
    ties = reshape([1, 2, 2, 2, 3], preset("transformers", top_k=3)).steps[0]
    assert ties.kept == 4 and ties.note == "1 more tokens have the same logit as the last of the 3 and are kept as well"


def test_only_the_end_is_computed_until_more_is_asked_for():
    result = reshape(torch.randn(1000), SamplingSettings(temperature=0.8, top_k=50, top_p=0.9))
    assert "probs" not in vars(result.start) and all("probs" not in vars(step.after) for step in result.steps)


def test_the_callers_logits_are_neither_changed_nor_followed():
    logits = torch.tensor(Z)
    before = logits.clone()
    result = reshape(logits, SamplingSettings(repetition_penalty=2, temperature=0.5, top_k=2), [2])
    expected = reshape(before, result.settings, [2])
    assert torch.equal(logits, before)
    logits.zero_()  # a reused buffer
    assert torch.equal(result.probs, expected.probs) and torch.equal(result.initial_probs, expected.initial_probs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64])
def test_any_real_dtype_is_taken_and_float64_comes_out(dtype):
    logits = torch.tensor([3, 1, 2], dtype=dtype)
    result = reshape(logits, SamplingSettings(temperature=0.7, top_p=0.95))
    assert result.probs.dtype == torch.float64
    assert torch.equal(result.probs, reshape([3.0, 1.0, 2.0], result.settings).probs)


def test_arrays_lists_and_tensors_that_require_grad_are_taken():
    readonly = np.array(Z)
    readonly.setflags(write=False)
    expected = reshape(Z).probs
    for logits in (readonly, tuple(Z), torch.tensor(Z, dtype=torch.float64, requires_grad=True)):
        assert torch.equal(reshape(logits).probs, expected)


def test_history_can_be_a_tensor_an_array_or_a_pair():
    settings = SamplingSettings(repetition_penalty=2)
    expected = reshape(Z, settings, [2, 0]).probs
    for history in (torch.tensor([2, 0]), np.array([2, 0]), (2, 0), History([2], [0]), History(torch.tensor([2, 0]))):
        assert torch.equal(reshape(Z, settings, history).probs, expected)


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        ([], "empty"),
        ([[1.0, 2.0]], r"shape \[1, 2\]; one position"),
        (1.0, "one position"),
        ([1.0, math.nan], "NaN"),
        ([1.0, math.inf], r"\+inf"),
        ([-math.inf, -math.inf], "-inf for every token"),
        (["a"], "other than numbers"),
    ],
)
def test_bad_logits_are_refused_in_a_sentence(logits, message):
    with pytest.raises(ValueError, match=message):
        reshape(logits)


def test_the_package_knows_nothing_of_models_text_or_pages():
    imported = set()
    for file in Path(lmcore.sampling.__file__).parent.rglob("*.py"):
        if file.name == "__main__.py":  # a program, which runs a model
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module)
    ours = {name for name in imported if name.startswith("lmcore")}
    assert {".".join(name.split(".")[:2]) for name in ours} == {"lmcore.sampling", "lmcore.distribution"}
    assert not {"transformers", "streamlit", "plotly"} & {name.split(".")[0] for name in imported}
