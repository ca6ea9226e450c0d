"""Background threads end with the program, in order."""

import subprocess
import sys
import threading

from lmcore import threads

# A thread that multiplies matrices for ever unless it is stopped; the program ends at once.
PROGRAM = """
import threading, torch
from lmcore import threads
stopping, started = threading.Event(), threading.Event()
def work():
    x = torch.rand(300, 300)
    while not stopping.is_set():
        x = (x @ x).softmax(-1)
        started.set()
    print("stopped in order", flush=True)
threads.start(work, "multiplying", stopping.set)
started.wait()
"""


def test_a_program_that_ends_stops_its_threads_and_waits_for_them() -> None:
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "stopped in order\n", "")


def test_threads_that_have_ended_are_forgotten() -> None:
    threads.start(lambda: None, "short", lambda: None).join()
    go = threading.Event()
    last = threads.start(go.wait, "waiting", go.set)
    assert [known.name for known in threads._running if known.name in ("short", "waiting")] == ["waiting"]
    go.set()
    last.join()
