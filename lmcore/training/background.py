"""Training in a background thread: start, pause, resume and stop it, and read how far it is."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lmcore.cores import one_core
from lmcore.training.loop import TrainingStep
from lmcore.worker import State, Tell, Worker

# Trainings that compute at the same time in this process; more wait their turn. A paused one gives its place away.
SLOTS = threading.BoundedSemaphore(2)
_REST = 0.25  # of a step's time is left to others after it, so that a training never holds a core for itself


@dataclass(frozen=True)
class Progress:
    """How far a training is, at one moment.

    Attributes:
        state: waiting for a place, running, paused, or how it ended.
        steps: what each step so far did.
        measurements: what was measured, in order: (number of steps done, value).
        error: what went wrong, when the state is "failed".
    """

    state: State
    steps: tuple[TrainingStep, ...]
    measurements: tuple[tuple[int, Any], ...]
    error: BaseException | None = None

    @property
    def alive(self) -> bool:
        """Whether it may still go on."""
        return self.state in ("waiting", "running", "paused")


class BackgroundTraining(Worker["_Moment"]):
    """A training that runs in a thread of its own until it is done, stopped, or no longer referred to.

    Args:
        steps: called in the thread; returns the iterator of steps, as `lmcore.train` does, and may take its time.
        measure: called in the thread before the first step, after every `measure_every` steps and at the end.
        measure_every: steps between two measurements.
        slots: how many such trainings may compute at the same time.
    """

    def __init__(
        self,
        steps: Callable[[], Iterator[TrainingStep]],
        measure: Callable[[], Any],
        measure_every: int = 10,
        slots: threading.Semaphore = SLOTS,
    ) -> None:
        work = functools.partial(_train, steps, measure, measure_every)
        super().__init__(work, name="training", slots=slots, rest=lambda took: _REST * took)

    @property
    def asked_to_pause(self) -> bool:
        """Whether it is to pause, at once true after `pause`; the state follows when the present step is done."""
        return self.pausing

    @property
    def progress(self) -> Progress:
        """How far it is now."""
        state, moments = self.state, self.items
        steps = tuple(moment.step for moment in moments if moment.step is not None)
        measurements = tuple(moment.measured for moment in moments if moment.measured is not None)
        return Progress(state, steps, measurements, self.error)


@dataclass(frozen=True)
class _Moment:
    """A step that was done, and what was measured after it, (number of steps done, value), where that was due."""

    step: TrainingStep | None
    measured: tuple[int, Any] | None


def _train(
    make_steps: Callable[[], Iterator[TrainingStep]], measure: Callable[[], Any], every: int, tell: Tell[_Moment]
) -> None:
    with one_core():
        steps, done = make_steps(), 0
        tell(_Moment(None, (0, measure())))
        for done, step in enumerate(steps, start=1):
            tell(_Moment(step, (done, measure()) if done % every == 0 else None))
        if done % every:
            tell(_Moment(None, (done, measure())))
