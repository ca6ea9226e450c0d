"""Threads for long work, which end before Python does."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable

_PATIENCE = 5.0  # seconds that the end of the program waits for a thread

_running: dict[threading.Thread, Callable[[], object]] = {}
_lock = threading.Lock()


def start(work: Callable[[], object], name: str, stop: Callable[[], object]) -> threading.Thread:
    """Start a thread that does not keep the program alive, and return it.

    At the program's end it is stopped and waited for: a thread that Python ends in the middle of a product of torch
    takes the program down with it.

    Args:
        work: what it does.
        name: the thread's.
        stop: asks the work to end soon, e.g. an event's `set`.

    >>> go = threading.Event()
    >>> thread = start(go.wait, "waiting", go.set)
    >>> thread.daemon, thread.is_alive()
    (True, True)
    >>> go.set()
    """
    thread = threading.Thread(target=work, name=name, daemon=True)
    with _lock:
        for ended in [known for known in _running if not known.is_alive()]:
            del _running[ended]
        thread.start()
        _running[thread] = stop
    return thread


@atexit.register
def stop_all() -> None:
    """Stop the threads that still run, and wait for each, but not for ever."""
    with _lock:
        running = dict(_running)
    for stop in running.values():
        stop()
    for thread in running:
        thread.join(_PATIENCE)
