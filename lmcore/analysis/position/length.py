"""How well a model predicts each position of a text, also beyond the length it was trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lmcore.corpus import HELD_OUT_SEED as HELD_OUT_SEED  # older snippets import it from here
from lmcore.corpus import Truth
from lmcore.distribution import loss_nats
from lmcore.language_model import LanguageModel

Array = NDArray[np.float64]


def losses_by_position(lm: LanguageModel, windows: NDArray[np.int64]) -> Array:
    """Return -ln P of the token that came, in nats, for every position of every window.

    Args:
        lm: the language model; positions from its context_length on are not asked for.
        windows: ids [n, T + 1]; position i foresees windows[:, i + 1].

    Returns:
        float64 [n, min(T, context_length)].
    """
    length = min(windows.shape[1] - 1, lm.config.context_length)
    # One window at a time: the logits of many would not fit.
    return np.stack([loss_nats(lm(ids[:-1]), ids[1:]).numpy() for ids in torch.from_numpy(windows[:, : length + 1])])


def grammar_losses_by_position(truth: Truth, windows: NDArray[np.int64]) -> Array:
    """Return the same under the grammar that generated the windows, exactly: no model has a lower expected loss.

    Args:
        truth: the small world over the windows' tokenizer.
        windows: ids [n, T + 1].

    Returns:
        float64 [n, T].
    """
    return -np.stack([truth.log_prob(row.tolist()) for row in windows])


@dataclass(frozen=True)
class Bins:
    """Means over bins of neighbouring positions.

    Attributes:
        starts: int [bin], the first position of each bin.
        ends: int [bin], the last one.
        means: float64 [bin].
        errors: float64 [bin], the standard error of the mean, taking the windows as independent; NaN for one window.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    means: Array
    errors: Array


def binned(losses: Array, width: int) -> Bins:
    """Average losses [n, T] over the windows and over `width` neighbouring positions; the last bin may be shorter.

    >>> bins = binned(np.array([[1.0, 3.0, 5.0], [3.0, 5.0, 5.0]]), 2)
    >>> bins.starts.tolist(), bins.ends.tolist(), bins.means.tolist(), bins.errors.tolist()
    ([0, 2], [1, 2], [3.0, 5.0], [1.0, 0.0])
    """
    n, length = losses.shape
    starts = np.arange(0, length, width)
    ends = np.minimum(starts + width, length) - 1
    per_window = np.add.reduceat(losses, starts, axis=1) / (ends - starts + 1)
    spread = per_window.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(starts), np.nan)
    return Bins(starts, ends, per_window.mean(axis=0), spread)
