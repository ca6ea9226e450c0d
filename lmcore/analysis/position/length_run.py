"""Losses by position measured in a background thread, batch after batch; what is measured is kept and shared."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from numpy.typing import NDArray

from lmcore.analysis.position.length import Array
from lmcore.worker import Tell, Worker

Windows = NDArray[np.int64]
Measure = Callable[[Windows], Array]


class HeldOutLosses:
    """The losses of held-out windows under whatever is asked about, each batch computed once.

    Args:
        batches: window ids [n, T + 1], one array a batch.
        lock: held while a batch is computed, so that one forward pass runs at a time.
    """

    def __init__(self, batches: list[Windows], lock: AbstractContextManager[object] | None = None) -> None:
        self.batches = batches
        self._lock: AbstractContextManager[object] = lock or nullcontext()
        self._known: dict[tuple[Hashable, int], Array] = {}

    def measure(self, subject: Hashable, batch: int, measure: Measure) -> None:
        """Compute the losses of one batch under one subject, unless they are known."""
        if (subject, batch) not in self._known:
            with self._lock:
                self._known[subject, batch] = measure(self.batches[batch])

    def measured(self, subject: Hashable, n_batches: int) -> Array | None:
        """Return the losses known of the first batches in turn, float64 [windows, positions]; None before the first."""
        found: list[Array] = []
        while len(found) < n_batches and (subject, len(found)) in self._known:
            found.append(self._known[subject, len(found)])
        return np.concatenate(found) if found else None

    def n_measured(self, subject: Hashable, n_batches: int) -> int:
        """Return how many of the first batches are known."""
        return sum((subject, batch) in self._known for batch in range(n_batches))


class LengthRun(Worker[None]):
    """Measures some subjects on the first batches in a thread, all of them on one batch before the next.

    Args:
        losses: where the results go, and where they may lie already.
        measures: for each subject, how a batch is measured; called in the thread.
        n_batches: batches to measure.
    """

    def __init__(self, losses: HeldOutLosses, measures: Mapping[Hashable, Measure], n_batches: int) -> None:
        self._losses, self._measures, self.n_batches = losses, dict(measures), n_batches
        super().__init__(functools.partial(_measure_all, losses, self._measures, n_batches), name="length")

    @property
    def subjects(self) -> tuple[Hashable, ...]:
        """What is measured."""
        return tuple(self._measures)

    @property
    def done(self) -> float:
        """The share of the work whose result is known, from 0 to 1."""
        known = sum(self._losses.n_measured(subject, self.n_batches) for subject in self._measures)
        return known / (self.n_batches * len(self._measures))


def _measure_all(losses: HeldOutLosses, measures: Mapping[Hashable, Measure], n_batches: int, tell: Tell[None]) -> None:
    for batch in range(n_batches):
        for subject, measure in measures.items():
            losses.measure(subject, batch, measure)
            tell(None)
