"""The KV cache held against the plain forward pass: the same logits, in how much time, for how much memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lmcore.language_model import LanguageModel


@dataclass(frozen=True)
class CacheComparison:
    """What was measured, one entry for each length of the text from 1 to S.

    Attributes:
        seconds_with: time for the last token's logits, the tokens before it being in the cache.
        seconds_without: time for the same when the whole text is run again.
        max_difference: the largest difference of any logit at each length.
        cache_bytes: bytes of keys and values in the cache.
    """

    seconds_with: list[float]
    seconds_without: list[float]
    max_difference: list[float]
    cache_bytes: list[int]


def compare_cache(lm: LanguageModel, ids: Sequence[int]) -> CacheComparison:
    """Run a text token by token, once with a KV cache and once without, in turn.

    Args:
        lm: the language model.
        ids: the text, 1 to context_length tokens; the plain passes take time in proportion to its square.

    Raises:
        ValueError: for no ids, ids out of range, or more than context_length.
    """
    found = CacheComparison([], [], [], [])
    cache = lm.new_cache(max(len(ids), 1))
    lm(list(ids))  # checks the ids, and the first pass of a process is slower than those that follow
    for length in range(1, len(ids) + 1):
        started = time.perf_counter()
        cached = lm(ids[length - 1 : length], cache=cache)[-1]
        between = time.perf_counter()
        plain = lm(ids[:length])[-1]
        found.seconds_with.append(between - started)
        found.seconds_without.append(time.perf_counter() - between)
        found.max_difference.append(float((cached - plain).abs().max()))
        found.cache_bytes.append(cache.nbytes)
    return found


def cache_bytes(lm: LanguageModel, length: int) -> int:
    """Return the bytes of keys and values for a text: 2 x n_layers x n_kv_heads x d_head x length x 4 (float32)."""
    config = lm.config
    return 2 * config.n_layers * config.n_kv_heads * config.d_head * length * torch.float32.itemsize
