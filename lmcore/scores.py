"""The arithmetic of attention, step by step: q·k, scale, cap, mask, and which keys a query sees.

Functions of tensors only: `Attention` runs them in the model, analyses run them on traced queries and keys.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def grouped_product(x: Tensor, shared: Tensor) -> Tensor:
    """Multiply H heads with the matrices of G groups, H / G heads with the same one.

    Args:
        x: [..., H, S, n].
        shared: [..., G, n, m].

    Returns:
        [..., H, S, m], as if each group's matrix were repeated H / G times.
    """
    grouped = x.reshape(*x.shape[:-3], shared.shape[-3], -1, x.shape[-1])  # [..., G, H/G * S, n]
    return (grouped @ shared).reshape(*x.shape[:-1], shared.shape[-1])


def scaled_scores(products: Tensor, scale: float, softcap: float | None = None, bias: Tensor | None = None) -> Tensor:
    """Return q·k times scale, soft-capped, plus the position bias: what the mask and the softmax are given.

    >>> scaled_scores(torch.tensor([8.0, 4.0]), 0.5, bias=torch.tensor([0.0, 1.0])).tolist()
    [4.0, 3.0]
    """
    scores = products * scale
    if softcap is not None:
        scores = soft_cap(scores, softcap)
    return scores if bias is None else scores + bias


def soft_cap(x: Tensor, cap: float) -> Tensor:
    """Squeeze x smoothly between -cap and cap: cap * tanh(x / cap) (Gemma 2 report, section 2).

    >>> soft_cap(torch.tensor([0.0, 1e6]), 50.0).tolist()
    [0.0, 50.0]
    """
    return cap * torch.tanh(x / cap)


def visible_keys(start: int, length: int, window: int | None = None) -> Tensor:
    """Return bool [length, start + length]: True where a query sees a key.

    Queries stand at positions start, start + 1, ... They see no key of their future and, with a window, none that is
    `window` or more positions back.

    >>> visible_keys(1, 2).tolist()
    [[True, True, False], [True, True, True]]
    >>> visible_keys(2, 1, window=2).tolist()
    [[False, True, True]]
    """
    visible = torch.ones(length, start + length, dtype=torch.bool).tril(start)
    return visible if window is None else visible.triu(start - window + 1)


def mask(scores: Tensor, visible: Tensor) -> Tensor:
    """Return the scores with -inf where a key is not visible.

    >>> mask(torch.ones(1, 2, 2), visible_keys(0, 2)).tolist()
    [[[1.0, -inf], [1.0, 1.0]]]
    """
    return torch.where(visible, scores, -math.inf)


def pattern(masked_scores: Tensor, sinks: Tensor | None = None) -> Tensor:
    """Return how much each query takes of each key: the softmax over the keys.

    With sinks [heads] each head has one more score, of no key: what it takes of the softmax goes nowhere
    (Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", section 3.3).

    >>> pattern(torch.zeros(1, 1, 2), torch.tensor([math.log(2)])).tolist()
    [[[0.25, 0.25]]]
    """
    if sinks is None:
        return masked_scores.softmax(-1)
    column = sinks.to(masked_scores.dtype)[:, None, None].expand(*masked_scores.shape[:-1], 1)
    return torch.cat((masked_scores, column), -1).softmax(-1)[..., :-1]
