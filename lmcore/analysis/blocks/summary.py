"""One line about each tensor of a trace."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from lmcore.trace import Trace


@dataclass(frozen=True)
class TensorSummary:
    """A named tensor in short. The statistics are over its finite entries; NaN when it has none.

    `not_finite` counts the others: in masked_scores, the keys in a query's future, which are -inf.
    """

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    minimum: float
    mean: float
    maximum: float
    not_finite: int


def summarise(trace: Trace, names: Iterable[str] | None = None) -> list[TensorSummary]:
    """Summarise every tensor of a trace, in the order of the pass, or those named.

    >>> trace = Trace()
    >>> trace.record("scores", torch.tensor([1.0, 3.0, -torch.inf]), ("key",))
    >>> row = summarise(trace)[0]
    >>> (row.minimum, row.mean, row.maximum, row.not_finite)
    (1.0, 2.0, 3.0, 1)
    """
    return [_summary(name, trace.axes(name), trace[name]) for name in (trace if names is None else names)]


def _summary(name: str, axes: tuple[str, ...], tensor: Tensor) -> TensorSummary:
    low, high = (end.item() for end in tensor.aminmax())
    total, n_finite = tensor.sum(dtype=torch.float64).item(), tensor.numel()
    if not math.isfinite(total):  # the rarer case costs more passes over the tensor
        finite = tensor.isfinite()
        n_finite = int(finite.sum())
        low = tensor.where(finite, torch.inf).min().item()
        high = tensor.where(finite, -torch.inf).max().item()
        total = tensor.where(finite, 0).sum(dtype=torch.float64).item()
    low, mean, high = (low, total / n_finite, high) if n_finite else (math.nan,) * 3
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorSummary(name, axes, tuple(tensor.shape), dtype, low, mean, high, tensor.numel() - n_finite)
