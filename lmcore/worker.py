"""Long readings in the background: results one by one in a thread, with progress, until done or stopped."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

from lmcore import threads

Result = TypeVar("Result")
_REST = 0.01  # seconds between two results, in which others get hold of the lock


class BackgroundReading(Generic[Result]):
    """Goes through an iterator in a thread of its own until it ends, is stopped, or is no longer referred to.

    Args:
        results: called in the thread; returns the iterator.
        total: how many results there will be.
        lock: held while one result is computed.

    >>> reading = BackgroundReading(lambda: iter("abc"), 3)
    >>> reading.join()
    >>> reading.results, reading.running, reading.finished
    (['a', 'b', 'c'], False, True)
    """

    def __init__(
        self,
        results: Callable[[], Iterator[Result]],
        total: int,
        lock: AbstractContextManager[object] | None = None,
    ) -> None:
        self.total = total
        self._work = work = _Work(results, lock or nullcontext())
        # The thread knows the work, never this object: when its owner forgets it, the reading ends.
        self._forgotten = weakref.finalize(self, work.stopping.set)
        self._thread = threads.start(work.run, "reading", work.stopping.set)

    @property
    def results(self) -> list[Result]:
        """What there is so far, in order."""
        return list(self._work.results)

    @property
    def running(self) -> bool:
        """Whether the thread is at work."""
        return self._thread.is_alive()

    @property
    def finished(self) -> bool:
        """Whether every result is there."""
        return len(self._work.results) == self.total

    @property
    def error(self) -> str:
        """What ended it before its time, or ""."""
        return self._work.error

    def stop(self) -> None:
        """End after the present result; those so far stay."""
        self._work.stopping.set()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, at most `timeout` seconds."""
        self._thread.join(timeout)


class _Work(Generic[Result]):
    def __init__(self, make: Callable[[], Iterator[Result]], lock: AbstractContextManager[object]) -> None:
        self._make, self._lock = make, lock
        self.results: list[Result] = []
        self.error = ""
        self.stopping = threading.Event()

    def run(self) -> None:
        try:
            iterator = self._make()
            while not self.stopping.wait(_REST):
                with self._lock:
                    self.results.append(next(iterator))
        except StopIteration:
            pass
        except Exception as error:  # whatever it is, the reader is told; a thread has nobody else to tell
            self.error = f"{type(error).__name__}: {error}"
