"""A logit as the dot product of a hidden state with a row of the head: length, angle, and dimension by dimension."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Readout:
    """One hidden state h [d_model] against all rows of the head W [V, d_model]. Tensors are float64.

    logits = products + bias; products = length of h * row_lengths * cosines. In a model with a logit_scale or a
    logit_softcap its own logits follow from these.

    Attributes:
        length: the Euclidean length of h.
        row_lengths: [V], lengths of the rows.
        cosines: [V], cosine of the angle between h and each row.
        products: [V], h · row.
        bias: [V], the head's bias; None without one.
        logits: [V].
    """

    length: float
    row_lengths: Tensor
    cosines: Tensor
    products: Tensor
    bias: Tensor | None
    logits: Tensor


def read_out(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Readout:
    """Split the logits of one position into lengths and angles.

    Args:
        hidden: [d_model], what the head reads (after the final norm).
        weight: [V, d_model], the head's matrix; the embedding table when it is tied.
        bias: [V] or None.

    >>> import torch
    >>> out = read_out(torch.tensor([3.0, 4.0]), torch.tensor([[5.0, 0.0], [1.5, 2.0]]))
    >>> out.logits.tolist(), [round(c, 9) for c in out.cosines.tolist()]  # longer beats nearer
    ([15.0, 12.5], [0.6, 1.0])
    """
    h = hidden.detach().double()
    rows = weight.detach().split(16_384)  # one part at a time is widened: a large vocabulary would fill the memory
    products = torch.cat([part.double() @ h for part in rows])
    lengths = torch.cat([part.double().norm(dim=-1) for part in rows])
    added = None if bias is None else bias.detach().double()
    return Readout(
        h.norm().item(),
        lengths,
        products / (lengths * h.norm()).clamp(min=1e-300),
        products,
        added,
        products if added is None else products + added,
    )


def by_dimension(hidden: Tensor, row: Tensor) -> Tensor:
    """Return what each dimension adds to h · row: float64 [d_model], which sums to the product.

    >>> import torch
    >>> by_dimension(torch.tensor([3.0, 4.0]), torch.tensor([1.0, -1.0])).tolist()
    [3.0, -4.0]
    """
    return hidden.detach().double() * row.detach().double()
