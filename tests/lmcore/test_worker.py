"""A reading in the background ends when it is done, stopped, forgotten or broken, and never without the lock."""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Iterator

from lmcore.worker import BackgroundReading


def test_results_come_in_order_and_the_lock_is_held_for_each() -> None:
    lock = threading.RLock()
    held: list[bool] = []

    def results() -> Iterator[int]:
        for number in range(5):
            held.append(lock._is_owned())  # noqa: SLF001 - there is no public way to ask
            yield number

    reading = BackgroundReading(results, 5, lock)
    reading.join(30)
    assert (reading.results, reading.finished, reading.running, reading.error) == ([0, 1, 2, 3, 4], True, False, "")
    assert held == [True] * 5
    assert lock.acquire(timeout=5)


def test_it_stops_when_asked_and_keeps_what_it_has() -> None:
    started = threading.Event()

    def endless() -> Iterator[int]:
        for number in itertools.count():
            started.set()
            yield number

    reading = BackgroundReading(endless, 10**9)
    assert started.wait(30)
    reading.stop()
    reading.join(30)
    assert not reading.running and not reading.finished and reading.results[0] == 0 and reading.error == ""


def test_it_ends_when_nobody_refers_to_it() -> None:
    reading = BackgroundReading(itertools.count, 10**9)
    thread = reading._thread  # noqa: SLF001
    del reading
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()


def test_what_went_wrong_is_told() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("no such block")

    reading = BackgroundReading(broken, 2)
    reading.join(30)
    assert (reading.results, reading.error, reading.finished) == ([1], "ValueError: no such block", False)
