"""The balance loss of a mixture of experts: what keeps a router from sending every token to the same few."""

from __future__ import annotations

import torch
from torch import Tensor

from lmcore.config import ModelConfig
from lmcore.trace import Edit


def balance_loss(router_logits: Tensor, chosen: Tensor) -> Tensor:
    """Return n_experts * sum over the experts of (share of the choices) * (mean probability): 1 when all are even.

    Fedus et al. 2022, "Switch Transformers", eq. 4-6; the gradient flows through the probabilities only.

    Args:
        router_logits: [..., n_experts].
        chosen: int64 [..., n_used].

    >>> balance_loss(torch.zeros(4, 2), torch.tensor([[0], [1], [0], [1]])).item()
    1.0
    """
    n_experts = router_logits.shape[-1]
    shares = torch.bincount(chosen.flatten(), minlength=n_experts) / chosen.numel()
    mean_probs = router_logits.softmax(-1).flatten(0, -2).mean(0)
    return n_experts * (shares * mean_probs).sum()


class Routing:
    """Takes note of what every router does in one pass, with its gradient; a trace keeps numbers only."""

    def __init__(self, config: ModelConfig) -> None:
        self._blocks = range(config.n_layers) if config.n_experts is not None else range(0)
        self._seen: dict[str, Tensor] = {}

    def edits(self) -> dict[str, Edit]:
        """Return edits of the next pass that change nothing and note the routers' logits and choices."""
        self._seen = {}
        names = [f"blocks.{block}.mlp.{name}" for block in self._blocks for name in ("router_logits", "chosen")]
        return {name: self._noting(name) for name in names}

    def loss(self) -> Tensor:
        """Return the mean of the blocks' balance losses in the last pass; 0 for a model without experts."""
        losses = [
            balance_loss(self._seen[f"blocks.{block}.mlp.router_logits"], self._seen[f"blocks.{block}.mlp.chosen"])
            for block in self._blocks
        ]
        return torch.stack(losses).mean() if losses else torch.zeros(())

    def _noting(self, name: str) -> Edit:
        def note(tensor: Tensor) -> Tensor:
            self._seen[name] = tensor
            return tensor

        return note
