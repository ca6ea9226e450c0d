"""Run the model once for all who ask: one pass at a time, its results kept while they fit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from lmcore import LanguageModel, Trace

Key = tuple[str, tuple[int, ...], bool]


@dataclass(frozen=True)
class Pass:
    """What one forward pass gave. Shared between sessions: never change its tensors in place."""

    logits: Tensor
    trace: Trace

    @property
    def n_bytes(self) -> int:
        """Memory of its tensors in bytes; one that shares another's storage is counted again."""
        return sum(tensor.nbytes for tensor in (self.logits, *self.trace.values()))


class ForwardPasses:
    """A bounded cache of forward passes, keyed by model name, token ids and whether everything was traced.

    The lock lets one pass run at a time: on few cores, passes side by side only slow one another down.
    """

    def __init__(self, max_bytes: int) -> None:
        self.lock = threading.RLock()
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._passes: OrderedDict[Key, Pass] = OrderedDict()

    def get(self, name: str, ids: tuple[int, ...], traced: bool, load: Callable[[], LanguageModel]) -> Pass:
        """Return the pass of a model over ids, from the cache when it is there."""
        with self.lock:
            key: Key = (name, ids, traced or (name, ids, True) in self._passes)
            if key not in self._passes:
                trace = Trace()
                logits = load()(ids, trace=trace if traced else None)
                self._keep(key, Pass(logits, trace.float()))
            self._passes.move_to_end(key)
            return self._passes[key]

    def _keep(self, key: Key, result: Pass) -> None:
        self._passes[key] = result
        self._n_bytes += result.n_bytes
        while self._n_bytes > self._max_bytes and len(self._passes) > 1:
            _key, oldest = self._passes.popitem(last=False)
            self._n_bytes -= oldest.n_bytes
