"""Reading logits and probabilities from a caller: to a tensor without loss, or a sentence on what is wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["ArrayLike", "as_tensor", "check_logits", "check_probs"]

ArrayLike = Tensor | Sequence[Any] | Any  # Any: numpy arrays, which lmcore does not import


def check_logits(logits: ArrayLike) -> Tensor:
    """Return logits as a floating-point tensor on the CPU, or say what is wrong with them.

    Args:
        logits: `[..., V]`. -inf is allowed (a token that cannot come), unless a whole row is.

    Returns:
        The same numbers, `[..., V]`: float32 stays, half precision becomes float32, all else float64.

    Raises:
        ValueError: an empty vocabulary, NaN, +inf, or a row of nothing but -inf.
    """
    tensor = as_tensor(logits, "logits")
    if tensor.ndim == 0 or tensor.shape[-1] == 0:
        raise ValueError(f"logits has shape {list(tensor.shape)}: the vocabulary is empty; give at least one logit.")
    largest_logit = tensor.amax(dim=-1)  # a NaN anywhere in the row comes out as NaN
    if bool(torch.isfinite(largest_logit).all()):
        return tensor
    if bool(torch.isnan(tensor).any()):
        where = torch.isnan(tensor).nonzero()[0].tolist()
        count = int(torch.isnan(tensor).sum())
        raise ValueError(f"logits holds NaN at index {where} ({count} in all): no distribution follows from it.")
    if bool((largest_logit == math.inf).any()):
        where = (tensor == math.inf).nonzero()[0].tolist()
        raise ValueError(f"logits holds +inf at index {where}: logits must be finite, or -inf for an impossible token.")
    raise ValueError("logits is -inf for every token: at least one token must be possible.")


def check_probs(probs: ArrayLike, name: str = "probs") -> Tensor:
    """Return probabilities as a float64 tensor, or say what is wrong with them.

    Args:
        probs: `[..., V]`, each row summing to 1 (within 1e-3, which float16 reaches).
        name: What to call them in an error.

    Raises:
        ValueError: an empty vocabulary, NaN, a negative entry, or a row that does not sum to 1.
    """
    tensor = as_tensor(probs, name).double()
    if tensor.ndim == 0 or tensor.shape[-1] == 0:
        raise ValueError(f"{name} has shape {list(tensor.shape)}: the vocabulary is empty; give at least one entry.")
    sums = tensor.sum(dim=-1)
    if bool(torch.isnan(sums).any()):
        raise ValueError(f"{name} holds NaN: probabilities are numbers from 0 to 1.")
    if bool((tensor < 0).any()):
        raise ValueError(f"{name} holds {tensor.min().item():g}: a probability is never negative.")
    if bool(((sums - 1).abs() > 1e-3).any()):
        worst = sums.reshape(-1)[(sums.reshape(-1) - 1).abs().argmax()]
        raise ValueError(f"{name} sums to {worst.item():g}: probabilities must sum to 1 over the last axis.")
    return tensor


def as_tensor(values: ArrayLike, name: str) -> Tensor:
    """Turn a tensor, array or list into a floating-point CPU tensor, without precision lost."""
    # A list of Python floats is float64 already; torch would make float32 of it.
    dtype = None if hasattr(values, "dtype") else torch.float64
    try:
        tensor = values.detach().cpu() if isinstance(values, Tensor) else torch.tensor(values, dtype=dtype)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} is {type(values).__name__} of something other than numbers: {error}.") from error
    if tensor.dtype in (torch.float32, torch.float64):
        return tensor
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise ValueError(f"{name} has dtype {tensor.dtype}: give real numbers.")
    return tensor.float() if tensor.is_floating_point() else tensor.double()
