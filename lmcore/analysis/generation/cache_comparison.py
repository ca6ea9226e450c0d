"""The KV cache compared with the plain forward pass: the logits, the time and the memory."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lmcore.language_model import LanguageModel


@dataclass(frozen=True)
class CacheComparison:
    """What was measured, one entry for each of some lengths of a text.

    Attributes:
        n_tokens: the length of the whole text.
        lengths: where it was measured.
        seconds_with: median time for a token's logits with the cache, over the tokens since the length before.
        seconds_without: time for the last token's logits when the whole text is run again, the shorter of two.
        max_difference: the largest difference of any logit.
        cache_bytes: bytes of keys and values in the cache.
    """

    n_tokens: int
    lengths: tuple[int, ...] = ()
    seconds_with: tuple[float, ...] = ()
    seconds_without: tuple[float, ...] = ()
    max_difference: tuple[float, ...] = ()
    cache_bytes: tuple[int, ...] = ()


def compare_cache(
    lm: LanguageModel, ids: Sequence[int], n_tokens: int | None = None, points: int = 16
) -> Iterator[CacheComparison]:
    """Run a text token by token with a KV cache, and at some lengths the whole text again without one.

    Args:
        lm: the language model.
        ids: the text, at least one token.
        n_tokens: how long it gets, 1 to context_length: a shorter one is continued greedily; None is its own length.
        points: at how many lengths both are measured; the plain passes take time in proportion to the square.

    Yields:
        What is known after each pass through the model, so that the work can be stopped between any two; there is
        more to know after each of these lengths.

    Raises:
        ValueError: for no ids, ids out of range, more than context_length, or points below 1.
    """
    text = list(ids)
    n_tokens = len(text) if n_tokens is None else n_tokens
    if points < 1:
        raise ValueError(f"points is {points}; measure at 1 length at least.")
    if n_tokens > lm.config.context_length:
        raise ValueError(f"n_tokens is {n_tokens}; the context_length of this model is {lm.config.context_length}.")
    wanted = {max(round(n_tokens * (point + 1) / points), 1) for point in range(points)}
    cache = lm.new_cache(max(n_tokens, 1))
    _next_logits(lm, text[:n_tokens])  # checks the ids, and the first pass of a process is slower than the others
    found, spent = CacheComparison(n_tokens), []
    for length in range(1, n_tokens + 1):
        started = time.perf_counter()
        cached = lm(text[length - 1 : length], cache=cache)[-1]
        spent.append(time.perf_counter() - started)
        if length == len(text):
            text.append(int(cached.argmax()))
        if length in wanted:
            took = []
            for _ in range(2):  # what else the machine does falls on one of them, rarely on both
                yield found
                started = time.perf_counter()
                plain = _next_logits(lm, text[:length])
                took.append(time.perf_counter() - started)
            found = CacheComparison(
                n_tokens,
                (*found.lengths, length),
                (*found.seconds_with, statistics.median(spent)),
                (*found.seconds_without, min(took)),
                (*found.max_difference, float((cached - plain).abs().max())),
                (*found.cache_bytes, cache.nbytes),
            )
            spent.clear()
        yield found


def _next_logits(lm: LanguageModel, ids: Sequence[int]) -> Tensor:
    """Return the logits after the last token, the only ones that are asked for: a head over all would cost far more."""
    with torch.inference_mode():
        return lm.model.unembed(lm.model.hidden_state(torch.tensor(ids, dtype=torch.long))[-1])


def cache_bytes(lm: LanguageModel, length: int) -> int:
    """Return the bytes of keys and values for a text: 2 x n_layers x n_kv_heads x d_head x length x bytes of a number.

    A cache of 8-bit numbers takes 1 byte for each, and keeps a scale for each vector beside them.
    Local layers are counted whole, as the cache here keeps them; `parameters.kv_cache_bytes` counts their window only.
    """
    config, size = lm.config, lm.model.head.weight.dtype.itemsize
    vector = config.d_head + size if config.int8_cache else config.d_head * size
    return 2 * config.n_layers * config.n_kv_heads * vector * length
