"""Work that yields how far it is, done in a thread that can be stopped."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Generic, TypeVar

from lmcore import threads

T = TypeVar("T")

_BREATH = 0.002  # seconds between two pieces of work, in which others who wait for the lock get it


class Background(Generic[T]):
    """An iterator that a thread goes through until it ends, fails, is stopped, or is no longer referred to.

    Args:
        work: each item is what is known so far.
        lock: held while the next item is computed.
    """

    def __init__(self, work: Iterator[T], lock: AbstractContextManager[object] | None = None) -> None:
        self._state: _State[T] = _State()
        # The thread knows the state, never this object: when its owner forgets it, the work ends.
        self._forgotten = weakref.finalize(self, self._state.stopping.set)
        go = functools.partial(self._state.go_through, work, lock or nullcontext())
        self._thread = threads.start(go, "generation", self._state.stopping.set)

    @property
    def latest(self) -> T | None:
        """The latest item; None before the first."""
        return self._state.latest

    @property
    def running(self) -> bool:
        """Whether the thread is at work."""
        return self._thread.is_alive()

    @property
    def stopped(self) -> bool:
        """Whether it was asked to stop before its end."""
        return self._state.stopping.is_set()

    @property
    def error(self) -> str:
        """What ended it before its time, or ""."""
        return self._state.error

    def stop(self) -> None:
        """Ask it to end after the present item, and do not wait; what was reached stays readable."""
        self._state.stopping.set()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, at most `timeout` seconds."""
        self._thread.join(timeout)


class _State(Generic[T]):
    def __init__(self) -> None:
        self.latest: T | None = None
        self.error = ""
        self.stopping = threading.Event()

    def go_through(self, work: Iterator[T], lock: AbstractContextManager[object]) -> None:
        try:
            while not self.stopping.wait(_BREATH):
                with lock:
                    self.latest = next(work)
        except StopIteration:
            pass
        except Exception as error:  # whatever it is, the reader is told; a thread has nobody else to tell
            self.error = f"{type(error).__name__}: {error}"
