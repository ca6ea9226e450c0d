"""One step and the split embedding gradient, against finite differences, autograd and formulas written out."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from lmcore import Model, ModelConfig, Trace
from lmcore.analysis.training.embedding_gradient import embedding_gradient, rows_touched, split_embedding_gradient
from lmcore.analysis.training.one_step import (
    by_group,
    gradients,
    losses_along,
    points_along,
    squared_norm,
    stepped,
    target_loss,
    where_it_stops_helping,
)

IDS = [3, 7, 3, 5, 1]


def tiny(**choices) -> Model:
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=11, d_model=8, n_layers=2, n_heads=2, context_length=16, init_std=0.3, **choices)
    return Model(config).double()


@pytest.mark.slow
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("encoding", ["rope", "learned", "relative", "none"])
def test_gradients_by_finite_differences(encoding, tied):
    model = tiny(position_encoding=encoding, tie_embeddings=tied)
    found = gradients(model, IDS)
    assert ("head.weight" in found) == (not tied)
    rng = np.random.default_rng(1)
    for name, gradient in found.items():
        for index in rng.integers(gradient.numel(), size=3):
            nudge = {key: torch.zeros_like(value) for key, value in found.items()}
            nudge[name].view(-1)[index] = 1.0
            low, high = (target_loss(stepped(model, nudge, eta), IDS).item() for eta in (1e-6, -1e-6))
            assert gradient.flatten()[index].item() == pytest.approx((high - low) / 2e-6, abs=1e-6)


def test_loss_is_of_the_last_token_and_needs_one_before_it():
    model = tiny()
    log_probs = model(torch.tensor(IDS[:-1]))[-1].log_softmax(-1)
    assert target_loss(model, IDS).item() == pytest.approx(-log_probs[IDS[-1]].item())
    with pytest.raises(ValueError, match="ids has 1 tokens"):
        target_loss(model, [3])


def test_gradients_do_not_need_the_callers_grad_mode_and_leave_nothing_in_the_model():
    model = tiny()
    before = copy.deepcopy(model.state_dict())
    with torch.inference_mode(False), torch.no_grad():
        found = gradients(model, IDS)
    stepped(model, found, 0.5)
    losses_along(model, found, [0.1, 1.0], IDS)
    split_embedding_gradient(model, torch.tensor(IDS))
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model.head.weight is model.token_embedding.weight


def test_a_step_is_plain_sgd_and_keeps_the_tie():
    model = tiny()
    found = gradients(model, IDS)
    moved = stepped(model, found, 0.25)
    theirs = copy.deepcopy(model)
    F.cross_entropy(theirs(torch.tensor(IDS[:-1]))[-1:], torch.tensor(IDS[-1:])).backward()
    torch.optim.SGD(theirs.parameters(), lr=0.25).step()
    for (name, ours), (_name, wanted) in zip(moved.named_parameters(), theirs.named_parameters(), strict=True):
        torch.testing.assert_close(ours, wanted, msg=name)
    assert moved.head.weight is moved.token_embedding.weight


def test_losses_along_are_those_of_single_steps_and_begin_on_the_first_order_line():
    model = tiny()
    found = gradients(model, IDS)
    etas = [0.0, 1e-6, 0.3, 2.0]
    losses = losses_along(model, found, etas, IDS)
    assert losses == pytest.approx([target_loss(stepped(model, found, eta), IDS).item() for eta in etas])
    slope = (losses[1] - losses[0]) / 1e-6
    assert slope == pytest.approx(-squared_norm(found), rel=1e-3)


def test_groups_add_up():
    model = tiny(position_encoding="learned")
    found = gradients(model, IDS)
    groups = by_group(model, found)
    assert [group.group for group in groups][:3] == ["token_embedding", "position", "blocks.0.attn_norm"]
    assert sum(group.n_parameters for group in groups) == sum(p.numel() for p in model.parameters())
    assert sum(group.gradient_norm**2 for group in groups) == pytest.approx(squared_norm(found))
    position = next(group for group in groups if group.group == "position")
    assert position.n_moved == 4 * 8  # only the rows of the four positions the model was given


@pytest.mark.parametrize("last_only", [True, False])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_tied_gradient_is_the_sum_of_its_sides(last_only, scale):
    model = tiny(embedding_scale=scale)
    ids = torch.tensor(IDS)
    split = split_embedding_gradient(model, ids, last_only)
    logits, targets = model(ids[:-1]), ids[1:]
    if last_only:
        logits, targets = logits[-1:], targets[-1:]
    (wanted,) = torch.autograd.grad(F.cross_entropy(logits, targets), [model.token_embedding.weight])
    torch.testing.assert_close(split.total, wanted)
    torch.testing.assert_close(embedding_gradient(model, ids, last_only), wanted)
    if last_only:
        torch.testing.assert_close(split.total, gradients(model, IDS)["token_embedding.weight"])


def test_sides_are_the_formulas_of_the_text():
    model = tiny()
    ids = torch.tensor(IDS)
    split = split_embedding_gradient(model, ids)
    trace = Trace()
    logits = model(ids[:-1], trace=trace).detach()
    error = (logits.softmax(-1) - F.one_hot(ids[1:], 11)) / 4
    torch.testing.assert_close(split.output_side, error.T @ trace["hidden_state"])
    assert (split.output_side.norm(dim=-1) > 0).all()
    touched = split.input_side.norm(dim=-1).nonzero().flatten().tolist()
    assert touched == [3, 5, 7]  # the target of the last position, 1, is never looked up


def test_norms_and_cosines_by_row():
    split = split_embedding_gradient(tiny(), torch.tensor([IDS, IDS[::-1]]))
    first, second = split.input_side.numpy(), split.output_side.numpy()
    np.testing.assert_allclose(split.norms[0], np.linalg.norm(first, axis=1))
    row = 3
    wanted = first[row] @ second[row] / np.linalg.norm(first[row]) / np.linalg.norm(second[row])
    assert split.cosines[row].item() == pytest.approx(wanted)
    assert torch.isnan(split.cosines[0])
    assert split.cosine == pytest.approx(np.sum(first * second) / np.linalg.norm(first) / np.linalg.norm(second))


def test_untied_parts_are_the_gradients_of_the_two_matrices():
    model = tiny(tie_embeddings=False)
    ids = torch.tensor(IDS)
    split = split_embedding_gradient(model, ids)
    loss = F.cross_entropy(model(ids[:-1]), ids[1:])
    wanted = torch.autograd.grad(loss, [model.token_embedding.weight, model.head.weight])
    torch.testing.assert_close(split.input_side, wanted[0])
    torch.testing.assert_close(split.output_side, wanted[1])


def test_too_short_is_refused():
    with pytest.raises(ValueError, match="ids has 1 tokens"):
        split_embedding_gradient(tiny(), torch.tensor([3]))


def test_points_tell_probability_and_rank_of_the_target_and_every_token_can_be_scored():
    model = tiny()
    found = gradients(model, IDS, last_only=False)
    (point,) = points_along(model, found, [0.2], IDS, last_only=False)
    moved = stepped(model, found, 0.2)
    logits = moved(torch.tensor(IDS[:-1]))
    assert point.loss == pytest.approx(F.cross_entropy(logits, torch.tensor(IDS[1:])).item())
    probs = logits[-1].softmax(-1)
    assert point.prob == pytest.approx(probs[IDS[-1]].item())
    assert point.rank == 1 + int((probs > probs[IDS[-1]]).sum())


def test_a_step_too_small_for_bfloat16_is_taken_all_the_same():
    model = tiny().bfloat16()
    found = gradients(model, IDS)
    low, high = losses_along(model, found, [0.0, 1e-5], IDS)
    assert (low - high) / 1e-5 == pytest.approx(squared_norm(found), rel=0.1)
    assert model.token_embedding.weight.dtype == torch.bfloat16


def test_rows_touched_are_counted_as_the_ids_are_read():
    ids = torch.randint(0, 30, (4, 9), generator=torch.Generator().manual_seed(1))
    flat = ids.flatten().tolist()
    assert rows_touched(ids).tolist() == [len(set(flat[: n + 1])) for n in range(len(flat))]


def test_splitting_copies_no_weights_and_leaves_the_model_tied():
    model = tiny()
    table = model.token_embedding.weight
    split_embedding_gradient(model, torch.tensor(IDS))
    assert model.token_embedding.weight is table is model.head.weight and table.grad is None


@pytest.mark.slow
def test_where_a_step_stops_helping():
    model = tiny()
    found = gradients(model, IDS)
    start = target_loss(model, IDS).item()
    etas = [0.0, *np.geomspace(1e-3, 1e3, 61)]
    eta = where_it_stops_helping(model, found, IDS, etas)
    before, after = losses_along(model, found, [0.995 * eta, 1.005 * eta], IDS)
    assert before < start <= after
    assert all(loss < start for loss in losses_along(model, found, np.linspace(1e-3, 0.99 * eta, 50).tolist(), IDS))
    assert where_it_stops_helping(model, found, IDS, [0.0, 1e-4]) is None
