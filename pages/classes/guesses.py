"""Codes that are tried: so many wrong ones a minute from one address and from all, and no more."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

_WINDOW = 60.0  # seconds
FROM_ONE, FROM_ALL = 60, 600
"""Wrong codes a minute. With 39 bits and 600 a minute, one of a hundred classes is found in some twenty years."""


class Guesses:
    """The wrong codes of the last minute.

    Args:
        clock: gives the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._wrong: deque[tuple[float, str]] = deque()  # when and from where

    def allowed(self, source: str) -> bool:
        """Return whether a code may be tried from an address; ask before looking the code up."""
        with self._lock:
            self._drop_old()
            return len(self._wrong) < FROM_ALL and sum(each == source for _at, each in self._wrong) < FROM_ONE

    def wrong(self, source: str) -> None:
        """Note that there is no such class."""
        with self._lock:
            self._drop_old()
            self._wrong.append((self._clock(), source))

    def _drop_old(self) -> None:
        while self._wrong and self._wrong[0][0] <= self._clock() - _WINDOW:
            self._wrong.popleft()
