"""A class at the same server: sessions that each do something every second, or every few.

    python -m tests.bench.classroom [sessions] [seconds between actions] [minutes]

starts the real server and opens real websockets, one a session, on the built-in model. Each session moves a slider,
and now and then writes another prompt or opens another page. All open their page at the same moment, which is measured
by itself; the class begins when the last one is there. Times are from the message that a browser would send to
the last one of the answer. Memory and processor time are the server's.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import defaultdict

from tests.bench.sessions import Server, Session, running_server

PROMPTS = ("今天天气", "我喜欢", "The weather today is", "The king", "小明喜欢小红", "I like")
PAGES = ("tokenization", "embedding", "position", "blocks", "logits", "sampling", "generation", "tying")
TARGETS = {"slider release": 0.1, "prompt change": 1.0}  # seconds, of 95 in 100
MB_A_SESSION = 5.0


class Student(threading.Thread):
    """A session on the page of the blocks that acts every `pause` seconds from `begins` until `over` are set."""

    def __init__(
        self, server: Server, number: int, pause: float, begins: threading.Event, over: threading.Event
    ) -> None:
        super().__init__(name=f"student {number}", daemon=True)
        self._server, self._pause, self._begins, self._over = server, pause, begins, over
        self._random = random.Random(number)
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.error: Exception | None = None
        self.ready = threading.Event()

    def run(self) -> None:
        try:
            self._visit()
        except Exception as error:  # told by the main thread
            self.error = error
        finally:
            self.ready.set()

    def _visit(self) -> None:
        started = time.perf_counter()
        session = Session(self._server, "blocks", lang="en", prompt=self._random.choice(PROMPTS))
        session.run()
        self.seconds["opening"].append(time.perf_counter() - started)
        self.ready.set()
        self._begins.wait()
        self._over.wait(self._random.uniform(0, self._pause))  # a class does not click in step
        while not self._over.is_set():
            started = time.perf_counter()
            action = self._act(session)
            self.seconds[action].append(time.perf_counter() - started)
            self._over.wait(max(self._pause - (time.perf_counter() - started), 0))
        session.close()

    def _act(self, session: Session) -> str:
        what = self._random.random()
        if what < 0.7:
            session.set(self._random.choice(("layer", "head")), self._random.randrange(4))
            return "slider release"
        if what < 0.85:
            session.set("prompt", self._random.choice(PROMPTS) + self._random.choice(("", "很", " and")))
            return "prompt change"
        session.go_to(self._random.choice(PAGES))
        session.go_to("blocks")
        return "two page changes"


def main() -> None:
    """Print what each kind of action takes, and what a session takes in memory."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    pause = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    minutes = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
    with running_server() as server:
        first_page = time.perf_counter()
        Session(server, "blocks", lang="en", prompt=PROMPTS[0]).run()
        first_page = time.perf_counter() - first_page
        second_page = time.perf_counter()
        Session(server, "blocks", lang="en", prompt=PROMPTS[0]).run()
        second_page = time.perf_counter() - second_page
        print(f"first page {server.seconds_to_start + first_page:.2f} s after the server's start (at most 3.5); "
              f"a second tab {second_page:.2f} s (at most 1)")  # fmt: skip
        base = server.resident()
        begins, over = threading.Event(), threading.Event()
        students = [Student(server, index, pause, begins, over) for index in range(number)]
        for student in students:
            student.start()
        for student in students:
            student.ready.wait()
        started, used = time.perf_counter(), server.processor_seconds()
        begins.set()
        over.wait(60 * minutes)
        over.set()
        for student in students:
            student.join()
        used, seconds = server.processor_seconds() - used, time.perf_counter() - started
        report(students, (server.resident() - base) / number / 1e6)
        actions = sum(
            len(times) for student in students for what, times in student.seconds.items() if what != "opening"
        )
        print(f"  processor: {1000 * used / actions:.0f} ms an action, {used / seconds:.2f} cores")


def report(students: list[Student], mb_a_session: float) -> None:
    """Print medians, the time that 95 of 100 actions stay below, and whether the targets were met."""
    lost = [student for student in students if student.error is not None]
    print(f"{len(students)} sessions, {len(lost)} lost" + (f": {lost[0].error!r}" if lost else ""))
    for action in ("opening", "slider release", "prompt change", "two page changes"):
        seconds = sorted(second for student in students for second in student.seconds[action])
        if not seconds:
            continue
        p95 = seconds[int(0.95 * (len(seconds) - 1))]
        verdict = ""
        if action in TARGETS:
            verdict = f" (at most {TARGETS[action] * 1000:.0f}: {'met' if p95 <= TARGETS[action] else 'MISSED'})"
        print(f"  {action}: {len(seconds)} times, median {seconds[len(seconds) // 2] * 1000:.0f} ms, "
              f"p95 {p95 * 1000:.0f} ms{verdict}")  # fmt: skip
    print(f"  memory: {mb_a_session:.1f} MB a session (at most {MB_A_SESSION:.0f}: "
          f"{'met' if mb_a_session <= MB_A_SESSION else 'MISSED'})")  # fmt: skip


if __name__ == "__main__":
    main()
