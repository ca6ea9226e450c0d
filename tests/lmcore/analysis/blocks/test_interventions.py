"""Interventions: what they edit, how far each moves the distribution, and which do not exist."""

from __future__ import annotations

import re

import pytest
import torch

import lmcore
from lmcore.analysis import each_component, edits_of, effects_alone
from lmcore.config import ModelConfig
from lmcore.language_model import LanguageModel
from lmcore.model import Model
from lmcore.trace import Trace
from tests.lmcore.analysis.models import CONFIGS, IDS, traced


def run(model: Model, interventions: list[str]) -> Trace:
    trace = Trace()
    with torch.inference_mode():
        model(torch.tensor(IDS), trace, edits=edits_of(interventions, model.config, len(IDS)))
    return trace


@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_switched_off_adds_nothing(name: str) -> None:
    model, intact = traced(name)
    edited = run(model, ["blocks.1", "blocks.2.attn.head.0", "blocks.2.attn.head.3", "blocks.2.mlp"])
    for state in ("resid_mid", "resid_post"):
        assert torch.equal(edited[f"blocks.1.{state}"], edited["blocks.1.resid_pre"])
    torch.testing.assert_close(edited["blocks.1.resid_pre"], intact["blocks.1.resid_pre"])
    z = edited["blocks.2.attn.z"]
    assert (z[[0, 3]] == 0).all() and (z[[1, 2]] != 0).all()
    assert torch.equal(edited["blocks.2.resid_post"], edited["blocks.2.resid_mid"])
    assert not torch.equal(edited["blocks.2.resid_mid"], edited["blocks.2.resid_pre"])
    assert torch.equal(run(model, ["blocks.0.attn"])["blocks.0.resid_mid"], intact["blocks.0.resid_pre"])
    torch.testing.assert_close(run(model, [])["logits"], intact["logits"])  # the model is as it was


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_swapped_tokens_are_the_text_with_its_ids_swapped(name: str) -> None:
    model, _trace = traced(name)
    ids = list(IDS)
    ids[0], ids[4] = ids[4], ids[0]
    with torch.inference_mode():
        torch.testing.assert_close(run(model, ["swap.0.4"])["logits"], model(torch.tensor(ids)))
        ids[4], ids[6] = ids[6], ids[4]
        torch.testing.assert_close(run(model, ["swap.0.4", "swap.4.6"])["logits"], model(torch.tensor(ids)))


@pytest.mark.slow
@pytest.mark.parametrize("length", [3, 300])  # many rows in a batch, and one
def test_effects_are_those_of_passes_made_one_by_one(length: int) -> None:
    lm = lmcore.load("small-world")
    ids = (lm.tokenizer.encode("我喜欢吃苹果，" * 90).ids)[: length + 2]
    names = each_component(lm.config)
    assert len(names) == 4 * (4 + 2)
    found = dict(effects_alone(lm, ids, length - 1, names))
    assert list(found) == list(names)
    intact = lm(ids)[length - 1].double().softmax(-1)
    for name in ("blocks.0.attn.head.0", "blocks.3.attn.head.2", "blocks.1.attn", "blocks.0.mlp"):
        probs = lm(ids, edits=edits_of([name], lm.config, len(ids)))[length - 1].double().softmax(-1)
        assert found[name] == pytest.approx(0.5 * (probs - intact).abs().sum().item(), abs=1e-5)
    assert found["blocks.0.mlp"] > 0.01


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("blocks.9", "block 9 does not exist; they run from 0 to 2"),
        ("blocks.0.attn.head.4", "head 4 does not exist; they run from 0 to 3"),
        ("swap.0.7", "position 7 does not exist; they run from 0 to 6"),
        ("blocks.0.attn.z", "is no intervention"),
        ("blocks.-1.mlp", "is no intervention"),
        ("", "is no intervention"),
    ],
)
def test_what_does_not_exist_is_said(text: str, message: str) -> None:
    config = ModelConfig(vocab_size=23, d_model=16, n_layers=3, n_heads=4, context_length=16)
    with pytest.raises(ValueError, match=re.escape(message)):
        edits_of([text], config, 7)


def test_a_position_outside_the_text_is_refused() -> None:
    model, _trace = traced("alibi")
    lm = LanguageModel.__new__(LanguageModel)
    lm.model = model
    with pytest.raises(ValueError, match="position is 7: the text has positions 0 to 6"):
        next(effects_alone(lm, IDS, 7, ["blocks.0"]))
