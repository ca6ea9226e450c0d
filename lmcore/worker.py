"""Long work in a thread: stopped, paused, waited for, and read while it goes on."""

from __future__ import annotations

import atexit
import functools
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, Literal, Protocol, TypeVar

T = TypeVar("T")
State = Literal["waiting", "running", "paused", "finished", "stopped", "failed"]
Tell = Callable[[T], None]

BREATH = 0.002  # seconds between two items, in which others who wait for the lock get it
_PATIENCE = 5.0  # seconds that the end of the program waits for all threads together
_AT_WORK: frozenset[State] = frozenset({"waiting", "running", "paused"})

_threads: dict[threading.Thread, _Work[Any]] = {}
_threads_lock = threading.Lock()


class Slots(Protocol):
    """A lock or a semaphore: how many workers may compute at the same time."""

    def acquire(self, *, timeout: float) -> bool:
        """Take a slot; False when none became free in time."""

    def release(self) -> None:
        """Give it back."""


class Stopped(Exception):
    """Raised by `tell` when the work is to end; the worker catches it."""


class Worker(Generic[T]):
    """Work in a thread of its own until it is done, fails, is stopped, or nobody refers to the worker any more.

    The thread does not keep the program alive. When the program ends it is stopped and waited for: a thread that
    Python ends in the middle of a product of torch takes the program down with it.

    Args:
        work: called in the thread with `tell`, a function that takes each item, e.g. a result or the progress made;
            `each_of` makes such work of an iterator. It must not refer to the worker.
        name: the thread's.
        slots: one is taken before the work begins, and given back while it is paused and when it ends.
        rest: seconds to rest after each item, or how many after one that took so many seconds.
        keep: how many of the latest items are kept; None keeps all.
        total: how many items there will be, where that is known, for those who show how far it is.

    >>> worker = Worker(each_of(lambda: iter("abc")))
    >>> worker.join()
    True
    >>> worker.items, worker.latest, worker.state, worker.error
    (['a', 'b', 'c'], 'c', 'finished', None)
    """

    def __init__(
        self,
        work: Callable[[Tell[T]], Any],
        *,
        name: str = "worker",
        slots: Slots | None = None,
        rest: float | Callable[[float], float] = BREATH,
        keep: int | None = None,
        total: int = 0,
    ) -> None:
        self.total = total
        self._work: _Work[T] = _Work(work, slots, rest, keep)
        # The thread knows the work, never this object: when its owner forgets it, the work ends.
        self._forgotten = weakref.finalize(self, self._work.stop)
        self._thread = threading.Thread(target=self._work.run, name=name, daemon=True)
        with _threads_lock:
            self._thread.start()
            _threads[self._thread] = self._work

    @property
    def items(self) -> list[T]:
        """What the work has told so far, in order."""
        return list(self._work.items)

    @property
    def latest(self) -> T | None:
        """The item told last; None before the first."""
        items = self._work.items
        return items[-1] if items else None

    @property
    def state(self) -> State:
        """Waiting for a slot, running, paused, or how it ended."""
        return self._work.state

    @property
    def running(self) -> bool:
        """Whether more comes; not from the moment on at which it was asked to stop."""
        return self.state in _AT_WORK and not self.stopping

    @property
    def error(self) -> BaseException | None:
        """What ended it, when it failed."""
        return self._work.error

    @property
    def result(self) -> Any:
        """What the work returned; None before its end."""
        return self._work.result

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self._work.stopping.is_set()

    @property
    def pausing(self) -> bool:
        """Whether it is to pause: true at once after `pause`, while the state follows after the present item."""
        return not self._work.go.is_set()

    def stop(self) -> None:
        """Ask it to end for good after the present item, and do not wait; what was told stays readable."""
        self._work.stop()

    def pause(self) -> None:
        """Halt after the present item."""
        self._work.go.clear()

    def resume(self) -> None:
        """Go on after a pause."""
        self._work.go.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended, at most `timeout` seconds; return whether it has."""
        self._thread.join(timeout)
        return not self._thread.is_alive()


def each_of(
    items: Callable[[], Iterator[T]], lock: AbstractContextManager[object] | None = None
) -> Callable[[Tell[T]], None]:
    """Return work that goes through an iterator and tells each item.

    Args:
        items: called in the thread; returns the iterator.
        lock: held while the next item is computed, and free between two of them.
    """
    return functools.partial(_tell_each, items, lock or nullcontext())


def _tell_each(items: Callable[[], Iterator[T]], lock: AbstractContextManager[object], tell: Tell[T]) -> None:
    iterator = items()
    while True:
        with lock:
            try:
                item = next(iterator)
            except StopIteration:
                return
        tell(item)


class _Work(Generic[T]):
    """What the thread knows."""

    def __init__(
        self,
        work: Callable[[Tell[T]], Any],
        slots: Slots | None,
        rest: float | Callable[[float], float],
        keep: int | None,
    ) -> None:
        self._work: Callable[[Tell[T]], Any] | None = work
        self._slots, self._rest, self._keep = slots, rest, keep
        self._holds_slot = False
        self._began = 0.0  # when the present item was begun
        self.items: list[T] = []
        self.state: State = "waiting"
        self.error: BaseException | None = None
        self.result: Any = None
        self.stopping = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def stop(self) -> None:
        self.stopping.set()
        self.go.set()  # a paused thread has to wake up to end

    def run(self) -> None:
        end: State = "stopped"
        try:
            self._begin()
            assert self._work is not None
            self.result = self._work(self._tell)
            end = "finished"
        except Stopped:
            pass
        except BaseException as error:  # whatever it is, the reader is told; a thread has nobody else to tell
            self.error, end = error, "failed"
        finally:
            self._give_slot()
            self._work = None  # it may refer to those who hold the result, which would then never be freed
            self.state = end
            with _threads_lock:
                _threads.pop(threading.current_thread(), None)

    def _begin(self) -> None:
        """Wait for a slot, where one is needed, and begin the next item."""
        if self._slots is not None and not self._holds_slot:
            self.state = "waiting"
            while not self._holds_slot and not self.stopping.is_set():
                self._holds_slot = self._slots.acquire(timeout=0.1)
        if self.stopping.is_set():
            raise Stopped
        self.state = "running"
        self._began = time.perf_counter()

    def _tell(self, item: T) -> None:
        self.items.append(item)
        if self._keep is not None:
            del self.items[: -self._keep]
        took = time.perf_counter() - self._began
        self.stopping.wait(self._rest(took) if callable(self._rest) else self._rest)
        if not self.go.is_set():
            self._give_slot()
            self.state = "paused"
            self.go.wait()
        self._begin()

    def _give_slot(self) -> None:
        if self._slots is not None and self._holds_slot:
            self._holds_slot = False
            self._slots.release()


@atexit.register
def _stop_all() -> None:
    """Stop the threads that still run, and wait for them, but not for ever."""
    with _threads_lock:
        at_work = dict(_threads)
    for work in at_work.values():
        work.stop()
    until = time.monotonic() + _PATIENCE
    for thread in at_work:
        thread.join(max(until - time.monotonic(), 0.0))
