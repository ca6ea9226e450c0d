"""An embedding table before training, as different models begin."""

from __future__ import annotations

import math
from typing import Literal, get_args

import torch
from torch import Tensor

RandomKind = Literal["normal", "uniform"]
RANDOM_KINDS: tuple[RandomKind, ...] = get_args(RandomKind)
NORMAL_STD = 0.02  # GPT-2's, Radford et al. 2019


def uniform_limit(d_model: int) -> float:
    """Return the a of a uniform start on [-a, a] that gives rows of length 1 on the average: sqrt(3 / d_model).

    >>> uniform_limit(12)
    0.5
    """
    return math.sqrt(3 / d_model)


def random_table(n_rows: int, d_model: int, kind: RandomKind, seed: int) -> Tensor:
    """Return a table [n_rows, d_model] float32 as it is before any training; torch's own random state is left alone.

    Args:
        n_rows: vocab_size, or fewer rows for a part of it.
        d_model: numbers a row.
        kind: "normal" with σ = 0.02, or "uniform" from -sqrt(3 / d_model) to sqrt(3 / d_model).
        seed: the same seed gives the same table.

    Raises:
        ValueError: for an unknown kind.

    >>> random_table(1000, 64, "uniform", seed=1).norm(dim=-1).mean().round(decimals=2).item()
    1.0
    """
    if kind not in RANDOM_KINDS:
        raise ValueError(f"kind must be one of {', '.join(RANDOM_KINDS)}, got {kind!r}.")
    generator = torch.Generator().manual_seed(seed)
    if kind == "normal":
        return NORMAL_STD * torch.randn(n_rows, d_model, generator=generator)
    return uniform_limit(d_model) * (2 * torch.rand(n_rows, d_model, generator=generator) - 1)
