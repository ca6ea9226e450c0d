"""How many cores a thread's tensor operations run on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_setting = threading.Lock()  # one at a time: a thread made meanwhile would take 1 for its own number


@contextmanager
def one_core() -> Iterator[None]:
    """Let this thread's tensor operations run on one core meanwhile, and leave every other thread as it was.

    torch keeps the number for the calling thread, and for threads still to come; the latter is put back by a thread
    made for it. Small models, and passes over one token, gain nothing from a second core, and on a busy machine every
    operation waits for it.
    """
    with _setting:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        restoring = threading.Thread(target=torch.set_num_threads, args=(before,))
        restoring.start()
        restoring.join()
    try:
        yield
    finally:
        torch.set_num_threads(before)
