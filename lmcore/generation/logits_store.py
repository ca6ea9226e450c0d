"""The logits after texts that share their beginnings: each computed once, kept while they fit, made again after."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from torch import Tensor

from lmcore.cores import one_core
from lmcore.kv_cache import KVCache
from lmcore.language_model import LanguageModel
from lmcore.trace import Trace

MAX_BYTES = 4 * 2**20  # a row of logits over 262,144 tokens is one of these 4 MiB


@dataclass(frozen=True, eq=False)
class NextLogits:
    """Logits [vocab_size] of the token after a text, and the seconds the model took for them, 0 if not measured."""

    logits: Tensor
    seconds: float


class LogitsStore:
    """What comes next after a text, for texts that grow, go back and branch.

    One KV cache serves them all: its part that a text shares with the one before is used again. The logits of the
    texts asked for last are kept up to `max_bytes`.

    Args:
        lm: the language model.
        max_bytes: how much memory the kept logits may take; the latest are kept in any case.
    """

    def __init__(self, lm: LanguageModel, max_bytes: int = MAX_BYTES) -> None:
        self._lm = lm
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._kept: OrderedDict[tuple[tuple[int, ...], bool], NextLogits] = OrderedDict()
        self._cache: KVCache | None = None
        self._cached_ids: list[int] = []

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the logits and the cache take."""
        return self._n_bytes + (0 if self._cache is None else self._cache.reserved_nbytes)

    @property
    def max_rows(self) -> int:
        """How many rows of logits are kept."""
        return max(self._max_bytes // (4 * self._lm.config.vocab_size), 1)

    def forget(self) -> None:
        """Keep nothing: what is asked for next is computed again."""
        self._kept.clear()
        self._n_bytes = 0
        self._cache, self._cached_ids = None, []

    def get(self, ids: Sequence[int], use_cache: bool = True) -> NextLogits:
        """Return the logits after a text, computed with the KV cache or by running the whole text.

        Raises:
            ValueError: for no ids, ids out of range or more than context_length.
        """
        key = (tuple(ids), use_cache)
        if key not in self._kept:
            started = time.perf_counter()
            row = self._with_cache(list(ids), len(ids) - 1)[-1] if use_cache else self._lm(ids)[-1]
            # A copy: one row of [S, V] would keep all of it in memory.
            self._keep(key, NextLogits(row.clone(), time.perf_counter() - started))
        self._kept.move_to_end(key)
        return self._kept[key]

    def put(self, ids: Sequence[int], logits: Tensor) -> None:
        """Keep the logits [vocab_size] after a text that are known already, from a pass that was needed anyway."""
        if (key := (tuple(ids), True)) not in self._kept:
            self._keep(key, NextLogits(logits.clone(), 0.0))

    def begin(self, ids: Sequence[int], trace: Callable[[], Trace]) -> None:
        """Cache the keys and values of a text from a traced pass over it; asked for if none are cached."""
        if not self._cached_ids:
            self._cache, self._cached_ids = KVCache.of_pass(self._lm.config, trace()), list(ids)

    def traced(self, ids: Sequence[int]) -> tuple[Tensor, Trace]:
        """Return the logits [vocab_size] after a text, and a trace of its last tokens, the very last one at least.

        With the tokens before it in the cache, this costs one token however long the text is.

        Raises:
            ValueError: for no ids, ids out of range or more than context_length.
        """
        ids, last = list(ids), len(ids) - 1
        if self._common(ids, last) < last and not self._lm.config.turns_anew(last, len(ids)):
            self._with_cache(ids[:last], last - 1)  # which leaves no trace: that of a long text fills the memory
        trace = Trace()
        row = self._with_cache(ids, last, trace)[-1]
        self.put(ids, row)
        return row, trace.float()

    def fill(self, ids: Sequence[int], following: Sequence[int]) -> None:
        """Compute, in one pass, the logits after a text and after each token of what follows it."""
        whole = [*ids, *following][: self._lm.config.context_length]
        while self._lm.config.turns_anew(len(ids), len(whole)):  # one pass turns all its keys in one way
            whole.pop()
        for length, row in enumerate(self._with_cache(whole, len(ids) - 1), start=len(ids)):
            key = (tuple(whole[:length]), True)
            if key not in self._kept:
                self._keep(key, NextLogits(row.clone(), 0.0))

    def _keep(self, key: tuple[tuple[int, ...], bool], found: NextLogits) -> None:
        self._kept[key] = found
        self._n_bytes += found.logits.nbytes
        while self._n_bytes > self._max_bytes and len(self._kept) > 1:
            _key, oldest = self._kept.popitem(last=False)
            self._n_bytes -= oldest.logits.nbytes

    def _common(self, ids: list[int], most: int) -> int:
        """Return how many of the tokens that a text begins with, at most `most`, the cache can serve it with."""
        if self._lm.config.turns_anew(len(self._cached_ids), len(ids)):
            return 0
        common = 0
        while common < min(len(self._cached_ids), most) and self._cached_ids[common] == ids[common]:
            common += 1
        return common

    def _with_cache(self, ids: list[int], first: int, trace: Trace | None = None) -> Tensor:
        """Return the logits [len(ids) - first, vocab_size] of the positions from `first` on."""
        if self._cache is None:
            self._cache = self._lm.new_cache()
        common = self._common(ids, first)
        self._cache.truncate(common)
        held, self._cached_ids = self._cached_ids, ids[:common]  # this is what is left should the pass fail
        with one_core() if len(ids) - common == 1 else nullcontext():
            logits = self._lm(ids[common:], cache=self._cache, trace=trace)
        # After a look back, what followed in the cache is still there and still right.
        self._cached_ids = held if held[: len(ids)] == ids else ids
        self._cache.length = len(self._cached_ids)
        return logits[first - common :]
