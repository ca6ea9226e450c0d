"""Drawing tokens, and asking whether what was drawn fits the distribution.

One draw takes one float64 uniform from the generator, always: when it is greedy, when one candidate is left, under
any settings. So a seed gives the same stream of uniforms whatever the knobs, and text generated under two settings
differs because of the settings and not because the streams ran apart.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from lmcore.distribution import ArrayLike, check_probs
from lmcore.sampling.chain import Reshaped

__all__ = ["ChiSquare", "chi_square", "draw", "draw_many", "draws", "new_generator"]


def new_generator(seed: int | None = None) -> torch.Generator:
    """Make a generator of its own, shared with no one else.

    Args:
        seed: From 0 to 2**64 - 1; None takes one from the machine's own randomness.

    Returns:
        A CPU generator; `.initial_seed()` says which seed it started from.

    Raises:
        ValueError: seed is out of range.
    """
    generator = torch.Generator()
    if seed is None:
        generator.seed()
        return generator
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise ValueError(f"seed is {seed!r}; it must be None, or an integer from 0 to 2**64 - 1.")
    return generator.manual_seed(seed)


def draw(source: Reshaped | ArrayLike, generator: torch.Generator) -> int:
    """Draw one token by inverting the cumulative distribution, in id order.

    Args:
        source: A reshaped distribution, or probabilities `[V]`.
        generator: Whose next float64 uniform is used: exactly one, whatever the distribution.

    Returns:
        The token's id. A token of probability 0 never comes.

    Raises:
        ValueError: see `lmcore.distribution.check_probs`.

    >>> draw([0.0, 1.0, 0.0], new_generator(1))
    1
    """
    return int(draw_many(source, 1, generator)[0])


def draw_many(source: Reshaped | ArrayLike, n: int, generator: torch.Generator) -> Tensor:
    """Draw n tokens independently; the same as n times `draw`.

    Args:
        source: A reshaped distribution, or probabilities `[V]`.
        n: How many, 1 or more.
        generator: Whose next n float64 uniforms are used.

    Returns:
        `[n]` int64 token ids, in the order they were drawn.

    Raises:
        ValueError: n below 1; see `lmcore.distribution.check_probs`.
    """
    if n < 1:
        raise ValueError(f"n is {n}; draw at least 1 token.")
    uniforms = torch.rand(n, dtype=torch.float64, generator=generator)
    if isinstance(source, Reshaped):
        ids, probs = source.final.ids, source.final.probs
    else:
        ids, probs = None, _one_position(source)
    positions = invert(probs, uniforms)
    return positions if ids is None else ids[positions]


def invert(probs: Tensor, uniforms: Tensor) -> Tensor:
    """Where uniforms fall in the cumulative distribution.

    Args:
        probs: `[V]` float64; what they sum to counts as 1.
        uniforms: `[n]` float64, from 0 up to but not 1.

    Returns:
        `[n]` int64 positions: the first whose cumulative sum is above the uniform.

    >>> invert(torch.tensor([0.25, 0.0, 0.75]), torch.tensor([0.0, 0.25, 0.99])).tolist()
    [0, 2, 2]
    """
    sums = probs.cumsum(0)
    # right=True passes over tokens of probability 0: their sum is equal to the one before.
    positions = torch.searchsorted(sums, uniforms * sums[-1], right=True)
    last_possible = torch.searchsorted(sums, sums[-1:])  # uniform * sum can round up to the sum itself
    return torch.minimum(positions, last_possible)


def draws(source: Reshaped | ArrayLike, n: int, seed: int | None) -> Tensor:
    """Count n draws from a generator of their own.

    Args:
        source: A reshaped distribution, or probabilities `[V]`.
        n: How many, 1 or more.
        seed: Of the generator; the same seed gives the same counts.

    Returns:
        `[V]` int64, how often each token came; sums to n.

    Raises:
        ValueError: n below 1; seed out of range; see `lmcore.distribution.check_probs`.

    >>> draws([0.5, 0.0, 0.5], 1000, seed=1).tolist()[1]
    0
    """
    vocab_size = source.start.vocab_size if isinstance(source, Reshaped) else len(_one_position(source))
    return torch.bincount(draw_many(source, n, new_generator(seed)), minlength=vocab_size)


class ChiSquare(NamedTuple):
    """Pearson's goodness-of-fit test.

    Attributes:
        statistic: `sum (observed - expected)^2 / expected` over the cells.
        dof: Cells - 1.
        p_value: Probability of a statistic at least this large if the counts came from the distribution.
        cells: How many cells were compared, after pooling.
    """

    statistic: float
    dof: int
    p_value: float
    cells: int


def chi_square(observed: ArrayLike, source: Reshaped | ArrayLike, min_expected: float = 5.0) -> ChiSquare:
    """Ask whether counts fit a distribution.

    Cells expected fewer than `min_expected` times are pooled, rarest first, until the pool reaches it, because the
    chi-square distribution is a poor approximation for small cells. A count where the probability is 0 cannot happen:
    the statistic is inf and the p-value 0. With one cell left there is nothing to compare: 0 degrees of freedom, p 1.

    Args:
        observed: `[V]` counts, such as `draws` returns; integers of 0 or more, some positive.
        source: The distribution they are held against: reshaped, or probabilities `[V]`.
        min_expected: The least expected count of a cell, more than 0.

    Returns:
        `ChiSquare(statistic, dof, p_value, cells)`. The p-value is the regularised upper incomplete gamma function
        `Q(dof / 2, statistic / 2)`.

    Raises:
        ValueError: observed and the distribution differ in length; a negative count; no count at all.

    >>> chi_square([60, 40], [0.5, 0.5]).statistic
    4.0
    """
    probs = source.probs if isinstance(source, Reshaped) else _one_position(source)
    counts = torch.as_tensor(observed).double()
    if counts.shape != probs.shape:
        raise ValueError(f"observed has shape {list(counts.shape)} and the distribution {list(probs.shape)}.")
    if not bool((counts >= 0).all()):
        raise ValueError(f"observed holds {counts.min().item():g}; counts are 0 or more.")
    n = counts.sum().item()
    if n == 0:
        raise ValueError("observed holds no draw at all; draw at least once.")
    if not min_expected > 0:
        raise ValueError(f"min_expected is {min_expected}; it must be more than 0.")
    expected, order = (probs * n).sort()
    counts = counts[order]
    if bool((counts[expected == 0] > 0).any()):
        cells = int((expected > 0).sum())
        return ChiSquare(float("inf"), max(cells - 1, 0), 0.0, cells)
    # Cut the sorted cells where the pool is large enough and every cell after it is.
    pooled = int((expected < min_expected).sum())
    if pooled and expected[:pooled].sum() < min_expected:
        pooled = int(torch.searchsorted(expected.cumsum(0), min_expected)) + 1
    if pooled:
        expected = torch.cat([expected[:pooled].sum().unsqueeze(0), expected[pooled:]])
        counts = torch.cat([counts[:pooled].sum().unsqueeze(0), counts[pooled:]])
    cells = len(expected)
    if cells == 1:
        return ChiSquare(0.0, 0, 1.0, 1)
    statistic = ((counts - expected) ** 2 / expected).sum()
    half = torch.tensor((cells - 1) / 2, dtype=torch.float64)
    return ChiSquare(statistic.item(), cells - 1, torch.special.gammaincc(half, statistic / 2).item(), cells)


def _one_position(source: ArrayLike) -> Tensor:
    probs = check_probs(source)
    if probs.ndim != 1:
        raise ValueError(f"probs has shape {list(probs.shape)}; draw from one position at a time, [V].")
    return probs
