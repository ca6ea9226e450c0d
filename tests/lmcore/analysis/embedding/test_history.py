"""The start of training made again, and the tables between it and the end."""

import pytest
import torch

import lmcore
from lmcore.analysis.embedding.history import embedding_history
from lmcore.analysis.embedding.initial import initial_model
from lmcore.language_model import LanguageModel


def test_the_start_made_from_the_seed_is_the_first_snapshot() -> None:
    record = lmcore.builtin.record()
    made = initial_model(lmcore.builtin.configs()[lmcore.builtin.DEFAULT], record["training"]["seed"])
    first = lmcore.builtin.embedding_snapshots()[0]
    assert torch.equal(made.token_embedding.weight.detach().half().float(), first)
    assert first.std().item() == pytest.approx(made.config.init_std, rel=0.01)


def test_making_the_start_leaves_the_random_state_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    initial_model(lmcore.load("small-world").config, seed=7)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("name", lmcore.builtin.names())
def test_tables_go_from_the_start_to_the_models_own(name: str) -> None:
    lm = lmcore.load(name)
    tables = embedding_history(lm)
    steps = list(tables)
    assert steps == sorted(steps) and steps[0] == 0 and len(steps) >= 2
    assert steps[-1] == lmcore.builtin.record(name)["training"]["steps"]
    assert torch.equal(tables[steps[-1]], lm.model.token_embedding.weight)
    assert tables[0].std().item() == pytest.approx(lm.config.init_std, rel=0.01)


def test_the_last_snapshot_is_the_shipped_table() -> None:
    snapshots = lmcore.builtin.embedding_snapshots()
    assert torch.equal(snapshots[max(snapshots)], lmcore.load().model.token_embedding.weight)


def test_a_model_without_a_record_has_no_history() -> None:
    lm = lmcore.load()
    assert embedding_history(LanguageModel("another", lm.model, lm.tokenizer)) == {}
