"""Where in the model two runs over the same ids part first: the residual stream after each step, held side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lmcore.language_model import LanguageModel

__all__ = ["StreamStep", "comparable", "stream_differences"]


class StreamStep(NamedTuple):
    """How far two residual streams are apart after one step.

    Attributes:
        name: of the intermediate, as in `lmcore/model.py`.
        block: of which block; None for the embedding and what the head reads.
        apart: ‖a − b‖ / ‖a‖ over all positions; 0 where they are equal.
    """

    name: str
    block: int | None
    apart: float


def comparable(a: LanguageModel, b: LanguageModel) -> bool:
    """Whether the two have as many blocks, as wide."""
    return (a.config.n_layers, a.config.d_model) == (b.config.n_layers, b.config.d_model)


def stream_differences(a: LanguageModel, b: LanguageModel, ids: Sequence[int]) -> list[StreamStep]:
    """Return how far the streams of two models are apart: after the embedding, each attention, each MLP, the last norm.

    Raises:
        ValueError: the two have another number of blocks or another width.
    """
    if not comparable(a, b):
        raise ValueError(f"{a.name} and {b.name} have streams of different shapes, which cannot be subtracted.")
    names: list[tuple[str, int | None]] = [("token_embedding", None)]
    for block in range(a.config.n_layers):
        names += [(f"blocks.{block}.resid_mid", block), (f"blocks.{block}.resid_post", block)]
    names.append(("hidden_state", None))
    left, right = (_streams(lm, ids, [name for name, _block in names]) for lm in (a, b))
    found = []
    for name, within in names:
        x, y = left[name].double(), right[name].double()
        found.append(StreamStep(name, within, float((x - y).norm() / x.norm().clamp(min=1e-300))))
    return found


def _streams(lm: LanguageModel, ids: Sequence[int], names: Sequence[str]) -> dict[str, Tensor]:
    """Return some intermediates only: a whole trace of a long text takes hundreds of times their memory."""
    kept: dict[str, Tensor] = {}

    def keep(name: str, x: Tensor) -> Tensor:
        kept[name] = x.detach()
        return x

    with torch.inference_mode():
        lm(ids, edits={name: lambda x, name=name: keep(name, x) for name in names})  # type: ignore[misc]
    return kept
