"""Training: the loss, its rate, and that the same seed makes the same curve."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.nn import functional as F

from lmcore import builtin
from lmcore.config import ModelConfig
from lmcore.model import Model
from lmcore.training import TrainingSettings, next_token_loss, train
from lmcore.training.builtin_models import batches


def tiny(**changes) -> Model:
    torch.manual_seed(0)
    vocab_size = builtin.tokenizer().vocab_size
    return Model(ModelConfig(vocab_size=vocab_size, d_model=32, n_layers=1, n_heads=2, context_length=128, **changes))


def test_the_loss_is_the_mean_of_minus_ln_p():
    logits = torch.randn(2, 5, 7, dtype=torch.float64)
    ids = torch.randint(0, 7, (2, 6))
    by_hand = -torch.stack([logits[b, s].softmax(-1)[ids[b, s + 1]].log() for b in range(2) for s in range(5)]).mean()
    assert next_token_loss(logits, ids).item() == pytest.approx(by_hand.item())


@pytest.mark.slow
def test_the_same_seed_gives_the_same_curve_and_it_falls():
    def curve() -> list[float]:
        return [step.loss for step in train(tiny(), batches(3), TrainingSettings(steps=12, warmup_steps=2))]

    first = curve()
    assert first == curve()
    assert first[-1] < first[0] - 0.5


def test_a_step_reports_the_loss_before_it_and_the_gradient_it_had():
    model, ids = tiny(), next(iter(batches(3)))
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    step = next(train(model, [ids], TrainingSettings(steps=5)))
    assert step.loss == pytest.approx(loss.item(), rel=1e-5)
    assert step.gradient_norm == pytest.approx(norm.item(), rel=1e-4)
    assert step.n_tokens == ids[:, 1:].numel()


def test_a_tied_matrix_moves_once_and_stays_tied():
    model = tiny()
    before = model.token_embedding.weight.clone()
    for _ in train(model, batches(3), TrainingSettings(steps=2)):
        pass
    assert model.head.weight is model.token_embedding.weight
    assert not torch.equal(before, model.token_embedding.weight)


def test_it_trains_whatever_the_callers_grad_mode_and_leaves_it_alone():
    with torch.no_grad():
        for _ in train(tiny(), itertools.islice(batches(3), 1), TrainingSettings(steps=1)):
            assert not torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("steps", 0),
        ("steps", 1.5),
        ("warmup_steps", -1),
        ("learning_rate", 0),
        ("learning_rate", float("nan")),
        ("max_gradient_norm", 0),
        ("weight_decay", -0.1),
    ],
)
def test_bad_settings_are_named(field, value):
    with pytest.raises(ValueError, match=f"{field} must be"):
        TrainingSettings(**({"steps": 5} | {field: value}))
