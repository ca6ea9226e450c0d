"""The gradient of a tied embedding, in the two parts it is the sum of.

The table E is used twice. Looking up X = E[ids] sends back dX[i] to the row of the token at position i:
the input side, 0 for every token that is not in the text. The head, logits = H E^T, sends back
(softmax - one-hot)^T H: the output side, which reaches every row. Press and Wolf 2017, section 3.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
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


@dataclass(frozen=True)
class SidesSummary:
    """The two parts in short, light enough to be kept for many moments of a training.

    Attributes:
        input_norms, output_norms: [V] float32, the length of each row's part.
        cosines: [V] float32, between the parts of each row; NaN where either is 0.
        input_norm, output_norm, cosine: of the parts as whole matrices.
    """

    input_norms: np.ndarray
    output_norms: np.ndarray
    cosines: np.ndarray
    input_norm: float
    output_norm: float
    cosine: float


def summarise_sides(parts: EmbeddingGradient) -> SidesSummary:
    """Return norms and cosines of both parts, by row and as a whole."""
    first, second = parts.norms
    return SidesSummary(
        first.float().numpy(),
        second.float().numpy(),
        parts.cosines.float().numpy(),
        parts.input_side.norm().item(),
        parts.output_side.norm().item(),
        parts.cosine,
    )


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
    # A second set of modules around the same storages: nothing is copied, and the model given is left alone.
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    apart = copy.deepcopy(model, memo=shared)
    apart.head.weight = nn.Parameter(model.head.weight.detach())
    with torch.enable_grad():
        loss = _loss(apart, ids, last_only)
        parts = torch.autograd.grad(loss, [apart.token_embedding.weight, apart.head.weight])
    return EmbeddingGradient(*parts)


def rows_touched(ids: Tensor) -> Tensor:
    """Return how many different rows the lookup has used after each token [n], for ids of any shape in reading order.

    Only these rows have an input-side part, so a gradient of the lookup alone may be kept sparse.

    >>> rows_touched(torch.tensor([7, 2, 7, 5])).tolist()
    [1, 2, 2, 3]
    """
    _, place = ids.flatten().unique(return_inverse=True)
    first = torch.full((int(place.max()) + 1,), len(place))
    first.scatter_reduce_(0, place, torch.arange(len(place)), "amin")
    return torch.zeros(len(place), dtype=torch.long).index_fill_(0, first, 1).cumsum(0)


def embedding_gradient(model: Model, ids: Tensor, last_only: bool = False) -> Tensor:
    """Return autograd's gradient of the token embedding [V, D] of the model; for a tied model it is the whole sum.

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
