"""Run the model once for all sessions: one pass at a time; results are kept while they fit."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from lmcore import LanguageModel, Trace

LARGEST_PASS = 2 * 2**30
"""Bytes that one pass may fill with its intermediates: a prompt that needs more is refused before it runs."""

Key = tuple[str, tuple[int, ...], bool]


@dataclass(frozen=True)
class Pass:
    """What one forward pass gave. Shared between sessions: never change its tensors in place."""

    logits: Tensor
    trace: Trace

    @property
    def n_bytes(self) -> int:
        """Memory of its tensors in bytes; logits that the trace has too are counted again."""
        return self.logits.nbytes + self.trace.nbytes


def run(lm: LanguageModel, ids: Sequence[int], traced: bool) -> Pass:
    """Run a model over ids; what is not float32 already becomes so, for all who compute with it."""
    trace = Trace()
    logits = lm(ids, trace=trace if traced else None)
    return Pass(logits, trace.float())


def longest_traced(lm: LanguageModel, max_bytes: int) -> int:
    """Return the most tokens whose traced pass stays within `max_bytes`; at most context_length.

    Attention patterns grow with the square of the tokens, everything else in proportion: the sizes of three short
    passes tell that of any.
    """
    limit = lm.config.context_length
    if limit < 3:
        return limit
    one, two, three = (run(lm, [0] * length, traced=True).n_bytes for length in (1, 2, 3))
    square = (three - 2 * two + one) / 2
    linear = two - one - 3 * square
    rest = max_bytes - (one - linear - square)
    if square == 0:
        return min(int(rest / linear), limit)
    return min(int((math.sqrt(linear**2 + 4 * square * rest) - linear) / (2 * square)), limit)


class ForwardPasses:
    """A bounded cache of forward passes, keyed by model name, token ids and whether everything was traced.

    It holds `max_bytes` of them, the least recently used going first, and beside these one that is larger.

    The lock lets one pass run at a time: on few cores, passes side by side only slow one another down. Who asks for
    a pass that is kept does not wait for it.
    """

    def __init__(self, max_bytes: int) -> None:
        self.lock = threading.RLock()
        self._looking = threading.Lock()
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._passes: OrderedDict[Key, Pass] = OrderedDict()

    def get(self, name: str, ids: tuple[int, ...], traced: bool, load: Callable[[], LanguageModel]) -> Pass:
        """Return the pass of a model over ids, from the cache when it is there."""
        found = self._find(name, ids, traced)
        if found is not None:
            return found
        with self.lock:
            found = self._find(name, ids, traced)  # another session may have run it meanwhile
            if found is None:
                found = run(load(), ids, traced)
                with self._looking:
                    self._keep((name, ids, traced), found)
            return found

    def _find(self, name: str, ids: tuple[int, ...], traced: bool) -> Pass | None:
        with self._looking:
            key: Key = (name, ids, traced or (name, ids, True) in self._passes)
            if key in self._passes:
                self._passes.move_to_end(key)
            return self._passes.get(key)

    def _keep(self, key: Key, result: Pass) -> None:
        self._passes[key] = result
        if result.n_bytes > self._max_bytes:  # a long text's: one at a time, and small ones leave it alone
            for other in [k for k, kept in self._passes.items() if kept.n_bytes > self._max_bytes and k != key]:
                del self._passes[other]
            return
        self._n_bytes += result.n_bytes
        small = [k for k, kept in self._passes.items() if kept.n_bytes <= self._max_bytes]
        while self._n_bytes > self._max_bytes:
            self._n_bytes -= self._passes.pop(small.pop(0)).n_bytes
