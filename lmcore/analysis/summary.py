"""One line about each tensor of a trace."""

from __future__ import annotations

from dataclasses import dataclass

import torch

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


def summarise(trace: Trace) -> list[TensorSummary]:
    """Summarise every tensor of a trace, in the order of the pass.

    >>> trace = Trace()
    >>> trace.record("scores", torch.tensor([1.0, 3.0, -torch.inf]), ("key",))
    >>> row = summarise(trace)[0]
    >>> (row.minimum, row.mean, row.maximum, row.not_finite)
    (1.0, 2.0, 3.0, 1)
    """
    rows = []
    for name, tensor in trace.items():
        finite = tensor[torch.isfinite(tensor)]
        low, mean, high = (
            (finite.min().item(), finite.double().mean().item(), finite.max().item())
            if finite.numel()
            else (float("nan"),) * 3
        )
        rows.append(
            TensorSummary(
                name,
                trace.axes(name),
                tuple(tensor.shape),
                str(tensor.dtype).removeprefix("torch."),
                low,
                mean,
                high,
                tensor.numel() - finite.numel(),
            )
        )
    return rows
