"""Work in a thread ends, stops, fails and is forgotten without a loss."""

import gc
import threading
import time
from collections.abc import Iterator

from lmcore.generation.background import Background


def wait_until(condition) -> None:  # noqa: ANN001
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def test_it_goes_to_the_end() -> None:
    work = Background(iter(range(5)))
    work.join(10)
    assert work.latest == 4 and not work.running and not work.stopped and work.error == ""


def test_stop_keeps_what_was_reached_and_holds_no_one_up() -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow() -> Iterator[int]:
        yield 1
        entered.set()
        leave.wait(10)
        yield 2
        yield 3

    work = Background(slow())
    assert entered.wait(10)
    work.stop()  # the second item is being made: this does not wait for it
    assert work.running and work.stopped and work.latest == 1
    leave.set()
    work.join(10)
    assert work.latest == 2


def test_an_error_is_told() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    work = Background(broken())
    work.join(10)
    assert work.latest == 1 and work.error == "ValueError: no more"


def test_the_lock_is_held_for_each_item_and_free_between() -> None:
    lock, held = threading.Lock(), []

    def items() -> Iterator[int]:
        for number in range(30):
            held.append(lock.locked())
            yield number

    work = Background(items(), lock)
    with lock:  # someone else gets it in between
        assert work.running
    work.join(10)
    assert work.latest == 29 and all(held)


def test_forgotten_work_ends() -> None:
    made = []

    def endless() -> Iterator[int]:
        while True:
            made.append(None)
            yield len(made)

    def begin_and_forget() -> None:
        work = Background(endless())
        wait_until(lambda: work.latest)

    before = threading.active_count()
    begin_and_forget()
    gc.collect()
    wait_until(lambda: threading.active_count() <= before)
