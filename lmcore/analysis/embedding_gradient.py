"""The gradient of a tied embedding, in the two parts it is the sum of.

The table E is used twice. Looking up X = E[ids] sends back dX[i] to the row of the token at position i:
the input side, 0 for every token that is not in the text. The head, logits = H E^T, sends back
(softmax - one-hot)^T H: the output side, which reaches every row. Press and Wolf 2017, section 3.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmcore.model import Model


@dataclass(frozen=True)
class EmbeddingGradient:
    """The two parts of the gradient, as if the head had a matrix of its own.

    Attributes:
        input_side: [V, D], through the lookup.
        output_side: [V, D], through the head.
    """

    input_side: Tensor
    output_side: Tensor

    @property
    def total(self) -> Tensor:
        """Their sum [V, D]: what a tied matrix gets."""
        return self.input_side + self.output_side

    @property
    def norms(self) -> tuple[Tensor, Tensor]:
        """The length of each row, input side and output side, [V] each."""
        return self.input_side.norm(dim=-1), self.output_side.norm(dim=-1)

    @property
    def cosines(self) -> Tensor:
        """The cosine between the two parts of each row [V]; NaN where either is 0 and has no direction."""
        first, second = self.norms
        return (self.input_side * self.output_side).sum(-1) / (first * second)

    @property
    def cosine(self) -> float:
        """The cosine between the two parts as whole matrices; NaN when either is 0."""
        first, second = self.input_side.double().flatten(), self.output_side.double().flatten()
        return float(first @ second / (first.norm() * second.norm()))


def split_embedding_gradient(model: Model, ids: Tensor, last_only: bool = False) -> EmbeddingGradient:
    """Split the gradient of the embedding into what the lookup and what the head send back.

    Args:
        model: tied or not; it is not changed. Untied, the parts are the gradients of its two matrices.
        ids: [S + 1] or [B, S + 1]; each position is scored against the token that follows it.
        last_only: score the last position of each sequence only.

    Returns:
        Both parts for the mean loss in nats per scored token.

    Raises:
        ValueError: for fewer than two tokens.
    """
    apart = copy.deepcopy(model)
    apart.head.weight = nn.Parameter(apart.head.weight.detach().clone())
    with torch.enable_grad():
        loss = _loss(apart, ids, last_only)
        parts = torch.autograd.grad(loss, [apart.token_embedding.weight, apart.head.weight])
    return EmbeddingGradient(*parts)


def embedding_gradient(model: Model, ids: Tensor, last_only: bool = False) -> Tensor:
    """Return autograd's gradient of the token embedding [V, D] for the model as it is: tied, it is the whole sum.

    The arguments are those of `split_embedding_gradient`.
    """
    table = model.token_embedding.weight
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(_loss(model, ids, last_only), [table])
    return gradient


def _loss(model: Model, ids: Tensor, last_only: bool) -> Tensor:
    if ids.shape[-1] < 2:
        raise ValueError(f"ids has {ids.shape[-1]} tokens; a loss needs a target and at least one token before it.")
    logits, targets = model(ids[..., :-1]), ids[..., 1:]
    if last_only:
        logits, targets = logits[..., -1:, :], targets[..., -1:]
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())
