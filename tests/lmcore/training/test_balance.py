"""The balance loss against Switch Transformers' formula in plain numbers, and what it does to a router."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lmcore.config import ModelConfig
from lmcore.model import Model
from lmcore.training.balance import Routing, balance_loss
from lmcore.training.loop import TrainingSettings, train


def test_it_is_the_formula():
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(6, 4))
    chosen = np.argsort(-logits, 1)[:, :2]
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    shares = np.array([(chosen == expert).mean() for expert in range(4)])
    expected = 4 * (shares * probs.mean(0)).sum()
    assert balance_loss(torch.tensor(logits), torch.tensor(chosen)).item() == pytest.approx(expected)


def test_a_heavy_weight_evens_the_experts_out():
    config = ModelConfig(
        vocab_size=7, d_model=8, n_layers=1, n_heads=1, context_length=16, d_mlp=8, n_experts=4, n_experts_used=1
    )
    torch.manual_seed(3)
    model = Model(config)
    with torch.no_grad():
        model.blocks[0].mlp.router.weight.mul_(30)
    batches = (torch.randint(0, 7, (4, 13)) for _ in range(40))
    settings = TrainingSettings(steps=40, learning_rate=1e-2, warmup_steps=0, balance_weight=5.0)
    balances = [step.balance for step in train(model, batches, settings)]
    assert balances[0] > 1.1 * balances[-1] and balances[-1] < 1.3


def test_a_model_without_experts_has_none():
    routing = Routing(ModelConfig(vocab_size=7, d_model=8, n_layers=1, n_heads=1, context_length=16))
    assert routing.edits() == {} and routing.loss().item() == 0
