"""A class that answers together, at the real server.

    python -m tests.bench.classes [--students 30] [--browsers 4] [--rounds 3]

starts the server with a file of classes. A few students are real browsers that open the link and click; the others are
a process each with what a browser has: a Streamlit session that opens the class's page, and the websocket by which it
votes. All join within ten seconds. In each round the teacher goes a step on, everybody's page follows, and all vote
within five seconds, a third of them twice. Measured is, for each vote, the time from when it was sent until the
teacher's bars had it. At the end every vote must be in the file, as it was last given.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from multiprocessing.queues import Queue
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from websockets.sync.client import ClientConnection, connect

from pages.classes.codes import new_secret
from pages.classes.operator import FILE_VARIABLE
from pages.classes.seat import STUDENT
from pages.classes.store import Store
from pages.lessons.reading import OWN, read
from tests.bench.sessions import Server, Session, running_server
from tests.browser.conftest import launch

LESSON = "1-tokens"
JOIN, VOTE = 10.0, 5.0  # seconds within which all join, and all vote
TARGETS = {30: 0.3, 100: 1.0}  # seconds that 95 of 100 votes take to the bars, by the size of the class
Vote = tuple[int, float]  # the choice, and when it was sent


def student(server: Server, code: str, number: int, joins_at: float, steps: list[int], said: Queue[object]) -> None:
    """Join, follow the class from step to step, and vote at each."""
    chance = random.Random(number)
    time.sleep(max(0.0, joins_at + chance.uniform(0, JOIN) - time.time()))
    started = time.time()
    lesson, secret = read(OWN / f"{LESSON}.toml"), new_secret()
    page = Session(server, "lessons", cookie=f"{STUDENT}={secret}", **{"lang": "en", "class": code})
    page.run()
    with connect(f"ws://localhost:{server.port}/class/{code}") as socket:
        socket.send(json.dumps({"student": secret}))
        seen = _heard(socket, "turn")["turn"]
        said.put(("joined", number, time.time() - started))
        for step in steps:
            while (told := _heard(socket, "turn"))["turn"] <= seen:
                pass
            seen = told["turn"]
            time.sleep(chance.uniform(0, told["spread"]))
            started = time.time()
            page.run()
            said.put(("followed", number, time.time() - started))
            time.sleep(chance.uniform(0, VOTE))
            for _again in range(1 + (number % 3 == 0)):
                choice = chance.randrange(len(lesson.questions[step].choices))
                sent = time.time()
                socket.send(json.dumps({"vote": choice, "lesson": LESSON, "step": step}))
                if _heard(socket, "took")["took"] != choice:
                    raise RuntimeError(f"the vote of student {number} was not taken")
                said.put(("voted", number, step, choice, sent))
        said.put(("done", number))
        time.sleep(1)
    page.close()


def _heard(socket: ClientConnection, key: str) -> dict[str, int]:
    while True:
        message = json.loads(socket.recv(timeout=120))
        if "refused" in message:
            raise RuntimeError(f"refused: {message['refused']}")
        if key in message:
            return message


class Board:
    """The teacher's screen: what its bars showed, and when."""

    def __init__(self, server: Server, code: str, secret: str) -> None:
        self.shown: list[tuple[float, int, dict[str, int]]] = []  # when, how many are here, the bars
        self._socket = connect(f"ws://localhost:{server.port}/class/{code}")
        self._socket.send(json.dumps({"teacher": secret}))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(Exception):  # until it is closed
            while True:
                message = json.loads(self._socket.recv())
                self.shown.append((time.time(), message["here"], message["counts"]))

    def close(self) -> None:
        """Leave."""
        self._socket.close()


@contextlib.contextmanager
def browsers(server: Server, code: str, count: int) -> Iterator[list[Page]]:
    """Open the class's link in some browsers, each a student of its own."""
    with sync_playwright() as playwright:
        running = launch(playwright)
        pages = []
        for _each in range(count):
            page = running.new_context(viewport={"width": 390, "height": 844}).new_page()
            page.goto(f"http://localhost:{server.port}/?class={code}&lang=en")
            pages.append(page)
        for page in pages:
            page.get_by_text("You are in the class.", exact=True).wait_for(timeout=120_000)
        yield pages
        running.close()


def measure(students: int, in_browsers: int, rounds: int) -> bool:
    """Hold the class; print what was measured, and return whether nothing was lost and the targets were met."""
    steps = list(read(OWN / f"{LESSON}.toml").questions)[:rounds]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "classes.db"
        with running_server(**{FILE_VARIABLE: str(path)}) as server:
            warm = Session(server, "lessons", lang="en")
            warm.run()  # the models are loaded and the lessons checked, as for every class but the first
            store = Store(path)
            code, secret = store.start(LESSON)
            board = Board(server, code, secret)
            said: Queue[object] = multiprocessing.get_context("fork").Queue()
            joins_at = time.time() + 0.02 * students  # until all processes are there
            others = [
                multiprocessing.get_context("fork").Process(
                    target=student, args=(server, code, number, joins_at, steps, said)
                )
                for number in range(students - in_browsers)
            ]
            for process in others:
                process.start()
            events: list[tuple[object, ...]] = []
            with browsers(server, code, in_browsers) as pages:
                _gather(said, events, "joined", len(others), others)
                everybody = max(at for at, here, _counts in board.shown if here) - joins_at
                clicked: list[tuple[int, int, float]] = []  # step, choice, when
                for turn, step in enumerate(steps, 1):
                    store.go(code, secret, step=step)
                    for number, page in enumerate(pages):
                        choices = page.locator("label.choice")
                        page.locator(f'input[name="{LESSON}.{step}"]').first.wait_for(timeout=120_000)
                        choice = number % choices.count()
                        choices.nth(choice).click()
                        clicked.append((step, choice, time.time()))
                    for page in pages:
                        page.get_by_text("Your answer counts.").wait_for(timeout=120_000)
                    wanted = turn * len(others) + turn * sum(number % 3 == 0 for number in range(len(others)))
                    _gather(said, events, "voted", wanted, others)
                    time.sleep(1)
            for process in others:
                process.join()
            board.close()
            return report(store, code, steps, events, clicked, board, everybody, students, server)


def _gather(said: Queue[object], events: list, kind: str, count: int, processes: list) -> None:
    while sum(event[0] == kind for event in events) < count:
        with contextlib.suppress(Exception):
            events.append(said.get(timeout=1))
            continue
        if any(process.exitcode for process in processes):
            raise RuntimeError("a student was lost")


def report(
    store: Store,
    code: str,
    steps: list[int],
    events: list,
    clicked: list[tuple[int, int, float]],
    board: Board,
    everybody: float,
    students: int,
    server: Server,
) -> bool:
    """Compare the votes given with those kept and with the bars; print the figures."""
    last: dict[tuple[int, int], int] = {}  # (student, step) -> the choice
    for event in events:
        if event[0] == "voted":
            last[event[1], event[2]] = event[3]
    expected = sorted([(step, choice) for (_student, step), choice in last.items()] + [each[:2] for each in clicked])
    kept = sorted((vote.step, vote.choice) for vote in store.votes(code))
    lost = len(expected) - sum(vote == other for vote, other in zip(expected, kept, strict=False))
    waits = sorted(_waits(steps, events, clicked, board))
    p95 = waits[int(0.95 * (len(waits) - 1))]
    target = next(seconds for size, seconds in TARGETS.items() if students <= size)
    joined = sorted(event[2] for event in events if event[0] == "joined")
    followed = sorted(event[2] for event in events if event[0] == "followed")
    print(f"{students} students ({len(clicked) // len(steps)} in browsers), {len(kept)} votes kept, {lost} lost")
    print(f"  all were there {everybody:.1f} s after the first was told to come (they come over {JOIN:.0f} s)")
    for what, seconds in (("joining", joined), ("the next step's page", followed)):
        print(
            f"  {what}: median {seconds[len(seconds) // 2]:.2f} s, p95 {seconds[int(0.95 * (len(seconds) - 1))]:.2f} s"
        )
    print(
        f"  a vote in the teacher's bars: median {waits[len(waits) // 2] * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms "
        f"(at most {target * 1000:.0f}: {'met' if p95 <= target else 'MISSED'})"
    )
    print(
        f"  processor time of the server: {server.processor_seconds():.0f} s; memory {server.resident() / 2**20:.0f} MB"
    )
    return not lost and expected == kept and p95 <= target


def _waits(steps: list[int], events: list, clicked: list[tuple[int, int, float]], board: Board) -> Iterator[float]:
    """Give, for each first vote of a student on a question, the seconds until the bars had as many as were sent."""
    for step in steps:
        sent = [each[2] for each in clicked if each[0] == step]
        first: dict[int, float] = {}
        for event in events:
            if event[0] == "voted" and event[2] == step:
                first.setdefault(event[1], event[4])
        sent = sorted(sent + list(first.values()))
        begins, ends = sent[0], sent[-1] + 60
        shown = [(at, sum(counts.values())) for at, _here, counts in board.shown if begins <= at <= ends]
        for n, at in enumerate(sent, 1):
            yield next(when for when, total in shown if when >= at and total >= n) - at


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests.bench.classes")
    parser.add_argument("--students", type=int, default=30)
    parser.add_argument("--browsers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    sys.exit(0 if measure(given.students, given.browsers, given.rounds) else 1)
