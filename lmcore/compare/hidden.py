"""Where in the model two runs over the same ids part first: the residual stream after each step, held side by side."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from lmcore.language_model import LanguageModel

__all__ = ["StreamStep", "comparable", "first_parting", "stream_differences"]


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
    return _differences(a, b, ids, _steps(a, b))


def first_parting(a: LanguageModel, b: LanguageModel, ids: Sequence[int], beyond: float = 1e-6) -> StreamStep | None:
    """Return the first step after which the streams are apart by more than rounding; None where none is.

    Models part early as a rule, so that the first steps are run first: two, then four times as many as the last time.

    Raises:
        ValueError: as for `stream_differences`.
    """
    steps = _steps(a, b)
    n = 2
    while True:
        found = next((step for step in _differences(a, b, ids, steps[:n]) if step.apart > beyond), None)
        if found is not None or n >= len(steps):
            return found
        n *= 4


def _steps(a: LanguageModel, b: LanguageModel) -> list[tuple[str, int | None]]:
    """Return the names of the streams in the order of a pass, each with its block."""
    if not comparable(a, b):
        raise ValueError(f"{a.name} and {b.name} have streams of different shapes, which cannot be subtracted.")
    names: list[tuple[str, int | None]] = [("token_embedding", None)]
    for block in range(a.config.n_layers):
        names += [(f"blocks.{block}.resid_mid", block), (f"blocks.{block}.resid_post", block)]
    return [*names, ("hidden_state", None)]


def _differences(
    a: LanguageModel, b: LanguageModel, ids: Sequence[int], steps: Sequence[tuple[str, int | None]]
) -> list[StreamStep]:
    left, right = (_streams(lm, ids, [name for name, _block in steps]) for lm in (a, b))
    found = []
    for name, block in steps:
        x, y = left[name].double(), right[name].double()
        found.append(StreamStep(name, block, float((x - y).norm() / x.norm().clamp(min=1e-300))))
    return found


class _EnoughError(Exception):
    """All that was wanted of a pass is there."""


def _streams(lm: LanguageModel, ids: Sequence[int], names: Sequence[str]) -> dict[str, Tensor]:
    """Return some intermediates only, and end the pass there: a whole trace takes hundreds of times their memory."""
    kept: dict[str, Tensor] = {}

    def keep(name: str, x: Tensor) -> Tensor:
        kept[name] = x.detach()
        if len(kept) == len(names):
            raise _EnoughError
        return x

    with torch.inference_mode(), suppress(_EnoughError):
        lm(ids, edits={name: partial(keep, name) for name in names})
    return kept
