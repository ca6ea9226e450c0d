"""One gradient step in detail: theta -> theta - eta g for one sentence, always on copies.

L(theta - eta g) = L - eta |g|^2 + o(eta): a step small enough lowers this loss by about eta |g|^2,
a larger one by less or not at all, and what it does to other sentences is a matter of measurement.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from lmcore.distribution import rank
from lmcore.model import Model


def target_loss(model: Model, ids: Sequence[int], last_only: bool = True) -> Tensor:
    """Return -ln P(last token | those before it) in nats, differentiable where gradients are enabled.

    Args:
        model: the model asked.
        ids: at least two ids; the last one is the target.
        last_only: score the last token alone; else the mean over every token that has one before it.

    Raises:
        ValueError: for fewer than two ids.
    """
    return _scored(model, ids, last_only)[0]


def _scored(model: Model, ids: Sequence[int], last_only: bool) -> tuple[Tensor, Tensor]:
    """Return the loss, and the logits [V] of the last token."""
    if len(ids) < 2:
        raise ValueError(f"ids has {len(ids)} tokens; a loss needs a target and at least one token before it.")
    whole = torch.as_tensor(ids, dtype=torch.long)
    logits = model(whole[:-1])
    if logits.dtype == torch.bfloat16:
        logits = logits.float()  # a loss in bfloat16 has three digits
    scored = slice(-1, None) if last_only else slice(None)
    return F.cross_entropy(logits[scored], whole[1:][scored]), logits[-1]


def gradients(model: Model, ids: Sequence[int], last_only: bool = True) -> dict[str, Tensor]:
    """Return the gradient of `target_loss` by parameter name; a tied matrix is listed once, as token_embedding.

    Nothing is stored in the model.
    """
    named = dict(model.named_parameters())
    with torch.enable_grad():
        found = torch.autograd.grad(
            target_loss(model, ids, last_only), list(named.values()), allow_unused=True, materialize_grads=True
        )
    return dict(zip(named, found, strict=True))


def stepped(model: Model, gradient: Mapping[str, Tensor], eta: float) -> Model:
    """Return a copy of the model with every parameter p moved to p - eta * gradient; plain SGD."""
    moved = _movable(model)
    with torch.no_grad():
        for name, parameter in moved.named_parameters():
            parameter.sub_(gradient[name].to(parameter.dtype), alpha=eta)
    return moved


def _movable(model: Model) -> Model:
    """Return a copy whose numbers are fine enough for small steps: bfloat16 would round them away."""
    moved = copy.deepcopy(model)
    return moved.float() if moved.token_embedding.weight.dtype == torch.bfloat16 else moved


@dataclass(frozen=True)
class StepPoint:
    """What a step of size eta gives: the loss in nats, and the target's probability and rank, 1 for the likeliest."""

    eta: float
    loss: float
    prob: float
    rank: int


def points_along(
    model: Model, gradient: Mapping[str, Tensor], etas: Sequence[float], ids: Sequence[int], last_only: bool = True
) -> Iterator[StepPoint]:
    """Yield what a step of each size gives, always from the same starting point; one copy of the model is moved."""
    moved = _movable(model)
    yield from (_point(moved, model, gradient, eta, ids, last_only) for eta in etas)


def _point(
    moved: Model, model: Model, gradient: Mapping[str, Tensor], eta: float, ids: Sequence[int], last_only: bool
) -> StepPoint:
    """Return what a step of size eta from `model` gives; `moved`, a copy of it, takes the step."""
    start = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in moved.named_parameters():
            torch.sub(start[name].to(parameter.dtype), gradient[name].to(parameter.dtype), alpha=eta, out=parameter)
        loss, logits = _scored(moved, ids, last_only)
    probs = logits.double().softmax(-1)
    return StepPoint(eta, loss.item(), probs[ids[-1]].item(), rank(probs, ids[-1]))


def losses_along(
    model: Model, gradient: Mapping[str, Tensor], etas: Sequence[float], ids: Sequence[int], last_only: bool = True
) -> list[float]:
    """Return `target_loss` in nats after a step of each size; see `points_along`."""
    return [point.loss for point in points_along(model, gradient, etas, ids, last_only)]


def squared_norm(gradient: Mapping[str, Tensor]) -> float:
    """Return |g|^2 over all parameters, summed in float64.

    >>> squared_norm({"a": torch.tensor([3.0]), "b": torch.tensor([[4.0]])})
    25.0
    """
    return sum(float(part.double().square().sum()) for part in gradient.values())


@dataclass(frozen=True)
class GroupGradient:
    """The gradient of a group of parameters.

    Attributes:
        group: the part of the model, such as "blocks.0.attn".
        n_parameters: how many numbers it has.
        gradient_norm: |g| of the group.
        parameter_norm: |theta| of the group.
        n_moved: how many numbers have a gradient other than 0.
    """

    group: str
    n_parameters: int
    gradient_norm: float
    parameter_norm: float
    n_moved: int


def by_group(model: Model, gradient: Mapping[str, Tensor]) -> list[GroupGradient]:
    """Return the gradient's norms by part of the model, in the order of the model."""
    parameters = dict(model.named_parameters())
    groups: dict[str, list[str]] = {}
    for name in parameters:
        groups.setdefault(group_of(name), []).append(name)
    return [
        GroupGradient(
            group,
            sum(parameters[name].numel() for name in names),
            squared_norm({name: gradient[name] for name in names}) ** 0.5,
            squared_norm({name: parameters[name].detach() for name in names}) ** 0.5,
            sum(int(gradient[name].count_nonzero()) for name in names),
        )
        for group, names in groups.items()
    ]


def group_of(name: str) -> str:
    """Return the part of the model that a parameter belongs to.

    >>> group_of("blocks.2.attn.q.weight"), group_of("blocks.2.mlp_norm.weight"), group_of("token_embedding.weight")
    ('blocks.2.attn', 'blocks.2.mlp_norm', 'token_embedding')
    """
    words = name.split(".")
    return ".".join(words[:3]) if words[0] == "blocks" else words[0]


def where_it_stops_helping(
    model: Model,
    gradient: Mapping[str, Tensor],
    ids: Sequence[int],
    etas: Sequence[float],
    last_only: bool = True,
    losses: Sequence[float] | None = None,
    precision: float = 1e-3,
) -> float | None:
    """Return the smallest eta at which the loss is as high as without a step; None when none of `etas` reaches that.

    Args:
        model, gradient, ids, last_only: as in `points_along`.
        etas: ascending sizes to look at, between which the crossing is then narrowed down.
        losses: what a step of each of `etas` gives, where that is known.
        precision: how far off the answer may be, as a share of it; each halving costs a pass.
    """
    moved = _movable(model)

    def loss_at(eta: float) -> float:
        return _point(moved, model, gradient, eta, ids, last_only).loss

    known = [loss_at(eta) for eta in etas] if losses is None else losses
    start = known[0] if etas[0] == 0 else loss_at(0.0)
    crossing = next((index for index, loss in enumerate(known) if loss >= start and etas[index] > 0), None)
    if crossing is None:
        return None
    low, high = (etas[crossing - 1] if crossing else 0.0), etas[crossing]
    while high - low > precision * high:
        middle = (low + high) / 2
        if loss_at(middle) >= start:
            high = middle
        else:
            low = middle
    return high
