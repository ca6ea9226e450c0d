"""Training in a background thread: start, pause, resume and stop it, and read how far it is."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch

from lmcore import threads
from lmcore.training.loop import TrainingStep

State = Literal["waiting", "running", "paused", "finished", "stopped", "failed"]

# Trainings that compute at the same time in this process; more wait their turn. A paused one gives its place away.
PLACES = threading.BoundedSemaphore(2)
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
    error: str = ""

    @property
    def alive(self) -> bool:
        """Whether it may still go on."""
        return self.state in ("waiting", "running", "paused")


class BackgroundTraining:
    """A training that runs in a thread of its own until it is done, stopped, or no longer referred to.

    Args:
        steps: called in the thread; returns the iterator of steps, as `lmcore.train` does, and may take its time.
        measure: called in the thread before the first step, after every `measure_every` steps and at the end.
        measure_every: steps between two measurements.
        places: how many such trainings may compute at the same time.
    """

    def __init__(
        self,
        steps: Callable[[], Iterator[TrainingStep]],
        measure: Callable[[], Any],
        measure_every: int = 10,
        places: threading.Semaphore = PLACES,
    ) -> None:
        self._work = work = _Work(steps, measure, measure_every, places)
        # The thread knows the work, never this object: when its owner forgets it, the training ends.
        self._forgotten = weakref.finalize(self, work.stop)
        self._thread = threads.start(work.run, "training", work.stop)

    def pause(self) -> None:
        """Halt after the present step."""
        self._work.go.clear()

    def resume(self) -> None:
        """Go on after a pause."""
        self._work.go.set()

    @property
    def asked_to_pause(self) -> bool:
        """Whether it is to pause, at once true after `pause`; the state follows when the present step is done."""
        return not self._work.go.is_set()

    def stop(self) -> None:
        """End for good after the present step; what was reached stays readable."""
        self._work.stop()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, at most `timeout` seconds."""
        self._thread.join(timeout)

    @property
    def progress(self) -> Progress:
        """How far it is now."""
        return self._work.progress()


class _Work:
    def __init__(
        self,
        steps: Callable[[], Iterator[TrainingStep]],
        measure: Callable[[], Any],
        measure_every: int,
        places: threading.Semaphore,
    ) -> None:
        self._make_steps, self._measure, self._every, self._places = steps, measure, measure_every, places
        self._lock = threading.Lock()
        self._state: State = "waiting"
        self._error = ""
        self._steps: list[TrainingStep] = []
        self._measurements: list[tuple[int, Any]] = []
        self._holds_place = False
        self._stopping = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def stop(self) -> None:
        self._stopping.set()
        self.go.set()  # a paused thread has to wake up to end

    def progress(self) -> Progress:
        with self._lock:
            return Progress(self._state, tuple(self._steps), tuple(self._measurements), self._error)

    def run(self) -> None:
        try:
            self._enter("finished" if self._train() else "stopped")
        except Exception as error:  # whatever it is, the reader is told; a thread has nobody else to tell
            self._error = f"{type(error).__name__}: {error}"
            self._enter("failed")
        finally:
            self._give_place()

    def _train(self) -> bool:
        """Train to the end; return False when stopped before it."""
        if not self._take_place():
            return False
        _compute_on_one_core()
        steps = self._make_steps()
        self._note_measurement()
        started = time.perf_counter()
        for step in steps:
            with self._lock:
                self._steps.append(step)
            if len(self._steps) % self._every == 0:
                self._note_measurement()
            self._stopping.wait(_REST * (time.perf_counter() - started))
            if not self.go.is_set():
                self._give_place()
                self._enter("paused")
                self.go.wait()
            if self._stopping.is_set() or not self._take_place():
                return False
            started = time.perf_counter()
        if len(self._steps) % self._every:
            self._note_measurement()
        return True

    def _take_place(self) -> bool:
        """Take a place unless one is held; return False when stopped while waiting for it."""
        if not self._holds_place:
            self._enter("waiting")
            while not self._places.acquire(timeout=0.1):
                if self._stopping.is_set():
                    return False
            self._holds_place = True
            self._enter("running")
        return True

    def _give_place(self) -> None:
        if self._holds_place:
            self._holds_place = False
            self._places.release()

    def _note_measurement(self) -> None:
        value = self._measure()
        with self._lock:
            self._measurements.append((len(self._steps), value))

    def _enter(self, state: State) -> None:
        with self._lock:
            self._state = state


def _compute_on_one_core() -> None:
    """Let this thread's tensor operations run on one core, and leave every other thread as it was.

    torch keeps the number for the calling thread, and for threads still to come; the latter is put back by a thread
    made for it. Small models gain nothing from a second core, and on a busy machine every operation waits for it.
    """
    for_others = torch.get_num_threads()
    torch.set_num_threads(1)
    restoring = threading.Thread(target=torch.set_num_threads, args=(for_others,))
    restoring.start()
    restoring.join()
