"""Training as an iterator of steps: one loss, one backward pass, all parameters at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmcore.model import Model
from lmcore.training.balance import Routing


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a model is trained.

    Attributes:
        steps: number of optimizer steps.
        learning_rate: the highest rate, reached after warm-up; it falls along a cosine to a hundredth.
        warmup_steps: steps over which the rate rises from 0.
        weight_decay: decoupled decay of all matrices (Loshchilov and Hutter 2019).
        max_gradient_norm: gradients longer than this are scaled down to it.
        balance_weight: what the balance loss of a mixture of experts is multiplied by.

    Raises:
        ValueError: for a field out of its range, naming the field and the value.
    """

    steps: int
    learning_rate: float = 3e-3
    warmup_steps: int = 50
    weight_decay: float = 0.05
    max_gradient_norm: float = 1.0
    balance_weight: float = 0.01

    def __post_init__(self) -> None:
        for name in ("steps", "warmup_steps"):
            value, least = getattr(self, name), 1 if name == "steps" else 0
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
        for name in ("learning_rate", "max_gradient_norm"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a finite number above 0, got {getattr(self, name)!r}.")
        for name in ("weight_decay", "balance_weight"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a finite number of at least 0, got {getattr(self, name)!r}.")

    def rate_at(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0.

        >>> settings = TrainingSettings(steps=100, learning_rate=1.0, warmup_steps=10)
        >>> settings.rate_at(4), settings.rate_at(9), round(settings.rate_at(99), 3)
        (0.5, 1.0, 0.01)
        """
        if step < self.warmup_steps:
            return self.learning_rate * (step + 1) / self.warmup_steps
        progress = (step - self.warmup_steps + 1) / max(1, self.steps - self.warmup_steps)
        return self.learning_rate * (0.505 + 0.495 * math.cos(math.pi * progress))


@dataclass(frozen=True)
class TrainingStep:
    """What one step did: its number from 0, the batch loss before it in nats per token, rate, gradient norm, tokens,
    and the balance loss of the experts, 0 where there are none."""

    step: int
    loss: float
    learning_rate: float
    gradient_norm: float
    n_tokens: int
    balance: float = 0.0


def next_token_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """Return the mean of -ln P(next token), in nats.

    Args:
        logits: [..., S, V], the model's answer to ids[..., :S].
        ids: [..., S + 1]; each position is scored against the token that follows it.

    >>> next_token_loss(torch.zeros(2, 4), torch.tensor([0, 1, 2])).item() == torch.tensor(4.0).log().item()
    True
    """
    return F.cross_entropy(logits.flatten(0, -2), ids[..., 1:].flatten())


def make_optimizer(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    """Return AdamW with decay on matrices only; a tied matrix is one parameter and is stepped once."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.98), fused=True)


def train(model: Model, batches: Iterable[Tensor], settings: TrainingSettings) -> Iterator[TrainingStep]:
    """Train the model in place, yielding after each step; stop iterating to stop the training.

    Args:
        model: the model to train.
        batches: id batches [B, S + 1], one per step.
        settings: steps, learning rate and so on.
    """
    optimizer, routing = make_optimizer(model, settings), Routing(model.config)
    for step, ids in zip(range(settings.steps), batches, strict=False):
        rate = settings.rate_at(step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        # Only around the arithmetic: a generator must not leave a thread's grad mode changed between its steps.
        with torch.enable_grad():
            loss = next_token_loss(model(ids[:, :-1], edits=routing.edits()), ids)
            balance = routing.loss()
            optimizer.zero_grad(set_to_none=True)
            (loss + settings.balance_weight * balance).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), settings.max_gradient_norm)
        optimizer.step()
        yield TrainingStep(step, loss.item(), rate, norm.item(), ids[:, 1:].numel(), balance.item())
