"""Softmax and the measures of a distribution: entropy, surprisal, loss, distance.

Every function reduces the last axis of `[..., V]`, so one position and a whole sequence are asked alike.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lmcore.distribution.checks import ArrayLike, check_logits, check_probs

__all__ = [
    "effective_vocabulary",
    "entropy_bits",
    "kl_bits",
    "log_softmax",
    "loss_nats",
    "perplexity",
    "softmax",
    "surprisal_bits",
    "total_variation",
]


def softmax(logits: ArrayLike) -> Tensor:
    """Probabilities `exp(z_i - max z) / sum_j exp(z_j - max z)` in float64.

    The maximum is subtracted first, so no logit, however large, overflows.

    Args:
        logits: `[..., V]`.

    Returns:
        `[..., V]` float64; each row sums to 1.

    Raises:
        ValueError: see `check_logits`.

    >>> [round(p, 4) for p in softmax([2.3, 1.5, 3.8, 0.5, 1.2]).tolist()]
    [0.1555, 0.0699, 0.6971, 0.0257, 0.0518]
    """
    return torch.softmax(check_logits(logits).double(), dim=-1)


def log_softmax(logits: ArrayLike) -> Tensor:
    """Natural logarithm of `softmax(logits)`, accurate where the probability underflows.

    Args:
        logits: `[..., V]`.

    Returns:
        `[..., V]` float64, in nats, at most 0.

    Raises:
        ValueError: see `check_logits`.

    >>> log_softmax([0.0, -1000.0]).tolist()
    [0.0, -1000.0]
    """
    return torch.log_softmax(check_logits(logits).double(), dim=-1)


def entropy_bits(probs: ArrayLike) -> Tensor:
    """Entropy `-sum p log2 p` in bits, with `0 log 0 = 0` (Shannon 1948).

    Args:
        probs: `[..., V]`.

    Returns:
        `[...]` float64, from 0 (one token certain) to log2 V (all equal).

    Raises:
        ValueError: see `check_probs`.

    >>> entropy_bits([0.5, 0.25, 0.25, 0.0]).item()
    1.5
    """
    checked = check_probs(probs)
    return -torch.xlogy(checked, checked).sum(dim=-1) / math.log(2) + 0.0  # + 0.0: entropy 0, not -0


def effective_vocabulary(probs: ArrayLike) -> Tensor:
    """The number of equally likely tokens that would be as uncertain: `2 ** entropy`.

    Args:
        probs: `[..., V]`.

    Returns:
        `[...]` float64, from 1 to V.

    Raises:
        ValueError: see `check_probs`.

    >>> effective_vocabulary([0.25, 0.25, 0.25, 0.25, 0.0]).item()
    4.0
    """
    return torch.exp2(entropy_bits(probs))


def surprisal_bits(logits: ArrayLike, token_ids: ArrayLike) -> Tensor:
    """How surprising the tokens that came were: `-log2 P(token)` in bits.

    Args:
        logits: `[..., V]`.
        token_ids: `[...]` integers, one for each row of logits.

    Returns:
        `[...]` float64, at least 0.

    Raises:
        ValueError: see `check_logits`; or an id outside the vocabulary.

    >>> surprisal_bits([[0.0, 0.0], [0.0, 0.0]], [0, 1]).tolist()
    [1.0, 1.0]
    """
    return loss_nats(logits, token_ids) / math.log(2)


def loss_nats(logits: ArrayLike, token_ids: ArrayLike) -> Tensor:
    """The language-model loss at each position: `-ln P(token)` in nats.

    Args:
        logits: `[..., V]`.
        token_ids: `[...]` integers, one for each row of logits.

    Returns:
        `[...]` float64, at least 0; its mean is the loss of training.

    Raises:
        ValueError: see `check_logits`; or an id outside the vocabulary.

    >>> round(loss_nats([0.0, 0.0], 1).item(), 6)
    0.693147
    """
    log_probs = log_softmax(logits)
    ids = torch.as_tensor(token_ids, dtype=torch.int64)
    if ids.shape != log_probs.shape[:-1]:
        raise ValueError(
            f"token_ids has shape {list(ids.shape)} where logits {list(log_probs.shape)} needs "
            f"{list(log_probs.shape[:-1])}: one token for each position."
        )
    vocab_size = log_probs.shape[-1]
    outside = ids[(ids < 0) | (ids >= vocab_size)]
    if outside.numel():
        raise ValueError(f"token_ids holds {outside[0].item()}: ids of this vocabulary run from 0 to {vocab_size - 1}.")
    return -log_probs.gather(-1, ids.unsqueeze(-1)).squeeze(-1)


def perplexity(logits: ArrayLike, token_ids: ArrayLike) -> Tensor:
    """Perplexity of the tokens that came: `exp(mean of -ln P(token))`, over all positions.

    Args:
        logits: `[..., V]`.
        token_ids: `[...]` integers, one for each row of logits; at least one.

    Returns:
        A float64 scalar, at least 1: the model is as unsure as among that many equal tokens.

    Raises:
        ValueError: see `loss_nats`; or no position at all.

    >>> round(perplexity([[0.0, 0.0], [0.0, 0.0]], [0, 1]).item(), 9)
    2.0
    """
    losses = loss_nats(logits, token_ids)
    if losses.numel() == 0:
        raise ValueError("token_ids is empty: a perplexity needs at least one token.")
    return losses.mean().exp()


def total_variation(p: ArrayLike, q: ArrayLike) -> Tensor:
    """Total variation distance `1/2 sum |p_i - q_i|`: the most any event's probability differs by.

    Args:
        p: `[..., V]`.
        q: `[..., V]`, of the same shape.

    Returns:
        `[...]` float64, from 0 (equal) to 1 (nothing in common).

    Raises:
        ValueError: see `check_probs`; or the shapes differ.

    >>> total_variation([0.5, 0.5, 0.0], [0.5, 0.0, 0.5]).item()
    0.5
    """
    first, second = _pair(p, q)
    return (first - second).abs().sum(dim=-1) / 2


def kl_bits(p: ArrayLike, q: ArrayLike) -> Tensor:
    """Kullback-Leibler divergence `sum p log2(p / q)` in bits, with `0 log 0 = 0`.

    Args:
        p: `[..., V]`, the distribution the tokens come from.
        q: `[..., V]`, the one that describes them; of the same shape.

    Returns:
        `[...]` float64, at least 0; inf where p allows a token that q rules out.

    Raises:
        ValueError: see `check_probs`; or the shapes differ.

    >>> kl_bits([0.5, 0.5], [0.25, 0.75]).item() > 0, kl_bits([0.5, 0.5], [1.0, 0.0]).item()
    (True, inf)
    """
    first, second = _pair(p, q)
    divergence = (torch.xlogy(first, first) - torch.xlogy(first, second)).sum(dim=-1) / math.log(2)
    return divergence.clamp(min=0)  # rounding alone can put it a little below


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[Tensor, Tensor]:
    first, second = check_probs(p, "p"), check_probs(q, "q")
    if first.shape != second.shape:
        raise ValueError(f"p has shape {list(first.shape)} and q {list(second.shape)}: give two of the same shape.")
    return first, second
