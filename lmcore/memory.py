"""How much memory is free, and a limit that several who keep what they could compute again share."""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

import psutil


def available_memory() -> int:
    """Return the bytes that a program can take without swapping."""
    return int(psutil.virtual_memory().available)


class Recomputable(Protocol):
    """Somebody who keeps tensors that can be computed again."""

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""

    def forget(self) -> None:
        """Keep nothing."""


class SharedLimit:
    """A limit in bytes for all who keep tensors under it: who used theirs longest ago forgets them first.

    It does not keep anybody alive. `used` calls `forget` of others, so all must be used under one lock.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._holders: weakref.WeakKeyDictionary[Recomputable, None] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes that all of them keep now."""
        with self._lock:
            return sum(holder.nbytes for holder in self._holders)

    def used(self, holder: Recomputable) -> None:
        """Take note that `holder` has just used what it keeps, and let others forget theirs until all is within it."""
        with self._lock:
            self._holders.pop(holder, None)
            self._holders[holder] = None
            kept = {each: each.nbytes for each in list(self._holders)}
            total = sum(kept.values())
            for each, nbytes in kept.items():
                if nbytes and total > self.max_bytes and each is not holder:
                    total -= nbytes
                    each.forget()
                    nbytes = 0
                if not nbytes:
                    del self._holders[each]
