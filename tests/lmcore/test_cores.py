"""One core is a matter of the thread that asks for it, and of the while that it asks for."""

from __future__ import annotations

import threading

import torch

from lmcore.cores import one_core


def test_other_threads_keep_their_cores_and_the_thread_has_its_own_again() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen: list[int] = []
        with one_core():
            assert torch.get_num_threads() == 1
            other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
            other.start()
            other.join()
        assert seen == [2] and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
