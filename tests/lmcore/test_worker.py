"""A worker ends when it is done, stopped, forgotten or broken, never computes without its lock, and loses nothing."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from lmcore import worker as worker_module
from lmcore.worker import Tell, Worker, each_of

# A thread that multiplies matrices for ever unless it is stopped; the program ends at once.
PROGRAM = """
import threading, torch
from lmcore.worker import Worker
started = threading.Event()
def work(tell):
    x = torch.rand(300, 300)
    try:
        while True:
            x = (x @ x).softmax(-1)
            started.set()
            tell(None)
    finally:
        print("stopped in order", flush=True)
worker = Worker(work)
started.wait()
"""


def until(condition: Callable[[], object]) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def test_items_come_in_order_and_the_lock_is_held_for_each() -> None:
    lock = threading.RLock()
    held: list[bool] = []

    def items() -> Iterator[int]:
        for number in range(30):
            held.append(lock._is_owned())  # type: ignore[attr-defined]  # there is no public way to ask
            yield number

    worker = Worker(each_of(items, lock))
    with lock:  # someone else gets it in between
        pass
    assert worker.join(30)
    assert (worker.items, worker.state, worker.running, worker.error) == (list(range(30)), "finished", False, None)
    assert held == [True] * 30


def test_the_latest_items_alone_are_kept_where_asked() -> None:
    worker = Worker(each_of(lambda: iter(range(9))), keep=2)
    worker.join(30)
    assert (worker.items, worker.latest) == ([7, 8], 8)


def test_stop_keeps_what_was_reached_and_holds_no_one_up() -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow() -> Iterator[int]:
        yield 1
        entered.set()
        leave.wait(10)
        yield 2
        yield 3

    worker = Worker(each_of(slow))
    assert entered.wait(30)
    worker.stop()  # the second item is being made: this does not wait for it
    assert worker.stopping and not worker.running and worker.latest == 1 and not worker.join(0.01)
    leave.set()
    assert worker.join(30)
    assert (worker.items, worker.state, worker.error) == ([1, 2], "stopped", None)


def test_it_ends_when_nobody_refers_to_it() -> None:
    made: list[int] = []

    def endless() -> Iterator[int]:
        for number in itertools.count():
            made.append(number)
            yield number

    worker = Worker(each_of(endless), keep=1)
    until(lambda: made)
    thread = worker._thread
    del worker
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()


def test_what_went_wrong_is_kept_as_it_is() -> None:
    wrong = ValueError("no such block")

    def broken() -> Iterator[int]:
        yield 1
        raise wrong

    worker = Worker(each_of(broken))
    worker.join(30)
    assert (worker.items, worker.state) == ([1], "failed") and worker.error is wrong


def test_work_that_tells_by_itself_returns_a_result() -> None:
    def work(tell: Tell[str]) -> int:
        tell("half")
        return 7

    worker = Worker(work)
    worker.join(30)
    assert (worker.items, worker.result, worker.state) == (["half"], 7, "finished")


def test_pause_gives_the_place_away_and_resume_waits_for_it() -> None:
    slots = threading.Semaphore(1)

    def begin() -> Worker[int]:
        return Worker(each_of(lambda: itertools.count()), slots=slots)

    first = begin()
    until(lambda: first.items)
    second = begin()
    time.sleep(0.1)
    assert second.state == "waiting" and not second.items
    first.pause()
    assert first.pausing
    until(lambda: second.state == "running" and first.state == "paused")
    reached = len(first.items)
    first.resume()
    until(lambda: first.state == "waiting")
    assert len(first.items) == reached and not first.pausing
    second.stop()
    until(lambda: len(first.items) > reached)
    first.pause()
    until(lambda: first.state == "paused")
    first.stop()  # also while it is paused
    for worker in (first, second):
        assert worker.join(30) and worker.state == "stopped"
    assert slots.acquire(blocking=False) and not slots.acquire(blocking=False)  # given back once each


@pytest.mark.parametrize("rest", [60.0, lambda took: 60.0])
def test_a_rest_ends_at_once_when_it_is_stopped(rest: float | Callable[[float], float]) -> None:
    worker = Worker(each_of(lambda: itertools.count()), rest=rest)
    until(lambda: worker.items)
    worker.stop()
    assert worker.join(30) and worker.items == [0]


@pytest.mark.slow
def test_a_program_that_ends_stops_its_threads_and_waits_for_them() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "stopped in order\n", "")


def test_threads_that_have_ended_are_forgotten() -> None:
    Worker(lambda tell: None, name="short").join(30)
    go = threading.Event()
    last: Worker[None] = Worker(lambda tell: go.wait(), name="waiting")
    assert [known.name for known in worker_module._threads if known.name in ("short", "waiting")] == ["waiting"]
    go.set()
    assert last.join(30)
