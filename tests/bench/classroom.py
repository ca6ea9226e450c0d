"""A class at the same server: sessions that each do something every second, or every few.

    python -m tests.bench.classroom [sessions] [seconds between actions] [minutes] [replicas]

starts the real server, or several that share the sessions, and opens real websockets, one a session, on the built-in
model. Each session moves a slider, and now and then writes another prompt or opens another page. All open their page
at the same moment, which is measured by itself; the class begins when the last one is there. Times are from the message
that a browser would send to the last one of the answer. Memory and processor time are the server's; memory is what the
sessions take beyond a server whose pages have all been opened once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event, Semaphore

from tests.bench.sessions import Server, Session, running_server

PROMPTS = ("今天天气", "我喜欢", "The weather today is", "The king", "小明喜欢小红", "I like")
PAGES = ("tokenization", "embedding", "position", "blocks", "logits", "sampling", "generation", "tying")
ACTIONS = ("slider release", "prompt change", "two page changes")
TARGETS = {"slider release": 0.1, "prompt change": 1.0}  # seconds, of 95 in 100
MB_A_SESSION = 5.0


@dataclass
class Class:
    """What the students' processes wait for, and where they put what they measured."""

    begins: Event
    over: Event
    there: Semaphore
    measured: Queue[tuple[dict[str, list[float]], str | None]]


def student(server: Server, number: int, pause: float, school: Class) -> None:
    """Open the page of the blocks, and act every `pause` seconds from the beginning of the class to its end.

    Each is a process: threads of one would wait for each other, and what is measured is the server.
    """
    seconds: dict[str, list[float]] = defaultdict(list)
    chance, error = random.Random(number), None
    try:
        started = time.perf_counter()
        session = Session(server, "blocks", lang="en", prompt=chance.choice(PROMPTS))
        session.run()
        seconds["opening"].append(time.perf_counter() - started)
        school.there.release()
        school.begins.wait()
        school.over.wait(chance.uniform(0, pause))  # a class does not click in step
        while not school.over.is_set():
            started = time.perf_counter()
            action = act(session, chance)
            seconds[action].append(time.perf_counter() - started)
            school.over.wait(max(pause - (time.perf_counter() - started), 0))
        session.close()
    except Exception as failed:  # told by the main process
        error = repr(failed)
        school.there.release()
    school.measured.put((dict(seconds), error))


def act(session: Session, chance: random.Random) -> str:
    """Do something, and return what."""
    what = chance.random()
    if what < 0.7:
        session.set(chance.choice(("layer", "head")), chance.randrange(4))
        return "slider release"
    if what < 0.85:
        session.set("prompt", chance.choice(PROMPTS) + chance.choice(("", "很", " and")))
        return "prompt change"
    session.go_to(chance.choice(PAGES))
    session.go_to("blocks")
    return "two page changes"


def main() -> None:
    """Print what each kind of action takes, and what a session takes in memory."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    pause = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    minutes = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
    replicas = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    with contextlib.ExitStack() as running:
        servers = [running.enter_context(running_server()) for _ in range(replicas)]
        for server in servers:
            first_page, second_page = opening(server), opening(server)
            print(
                f"first page {server.seconds_to_start + first_page:.2f} s after the server's start (at most 3.5); "
                f"a second tab {second_page:.2f} s (at most 1)"
            )
        for server in servers:
            look_around(server)
        base = sum(server.resident() for server in servers)
        fork = multiprocessing.get_context("fork")
        school = Class(fork.Event(), fork.Event(), fork.Semaphore(0), fork.Queue())
        for index in range(number):
            fork.Process(target=student, args=(servers[index % replicas], index, pause, school), daemon=True).start()
        for _ in range(number):
            school.there.acquire()
        started, used = time.perf_counter(), sum(server.processor_seconds() for server in servers)
        school.begins.set()
        time.sleep(60 * minutes)
        school.over.set()
        measured = [school.measured.get() for _ in range(number)]
        used = sum(server.processor_seconds() for server in servers) - used
        elapsed = time.perf_counter() - started
        report(measured, (sum(server.resident() for server in servers) - base) / number / 1e6)
        actions = sum(len(times) for seconds, _error in measured for what, times in seconds.items() if what in ACTIONS)
        print(f"  processor: {1000 * used / actions:.0f} ms an action, {used / elapsed:.2f} cores")


def look_around(server: Server) -> None:
    """Open every page once: the models and tables that all sessions share belong to no session."""
    session = Session(server, "blocks", lang="en", prompt=PROMPTS[0])
    session.run()
    for page in PAGES:
        session.go_to(page)
    session.close()


def opening(server: Server) -> float:
    """Return the seconds that a new visitor waits for the page."""
    started = time.perf_counter()
    Session(server, "blocks", lang="en", prompt=PROMPTS[0]).run()
    return time.perf_counter() - started


def report(measured: list[tuple[dict[str, list[float]], str | None]], mb_a_session: float) -> None:
    """Print medians, the time that 95 of 100 actions stay below, and whether the targets were met."""
    lost = [error for _seconds, error in measured if error is not None]
    print(f"{len(measured)} sessions, {len(lost)} lost" + (f": {lost[0]}" if lost else ""))
    for action in ("opening", *ACTIONS):
        seconds = sorted(second for of_one, _error in measured for second in of_one.get(action, []))
        if not seconds:
            continue
        p95 = seconds[int(0.95 * (len(seconds) - 1))]
        verdict = ""
        if action in TARGETS:
            verdict = f" (at most {TARGETS[action] * 1000:.0f}: {'met' if p95 <= TARGETS[action] else 'MISSED'})"
        print(
            f"  {action}: {len(seconds)} times, median {seconds[len(seconds) // 2] * 1000:.0f} ms, "
            f"p95 {p95 * 1000:.0f} ms{verdict}"
        )
    print(
        f"  memory: {mb_a_session:.1f} MB a session (at most {MB_A_SESSION:.0f}: "
        f"{'met' if mb_a_session <= MB_A_SESSION else 'MISSED'})"
    )


if __name__ == "__main__":
    main()
