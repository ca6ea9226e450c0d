"""A class that is held through whole lessons, at the real server.

    python -m tests.bench.classes [--students 30] [--browsers 4] [--steps 0] [lesson ...]

starts the server with a file of classes. The class answers the questions before the course, goes through the lessons
(without any named: two of the course) from their first step to their last, and answers the same questions afterwards;
`--steps` ends each after some steps. A few students are real browsers that open the link and click; the others are a
process each with what a browser has: a Streamlit session that opens the class's page, and the websocket by which it
votes. The browsers come first, since starting them takes the processors from the server; then the others join within
ten seconds. At each step everybody's page follows, all vote within five seconds, a third of them twice, the answer is
revealed, and everybody's page shows it.

Measured is, for each vote, the time from when it was sent until the teacher's bars had it. At the end every vote must
be in the file, as it was last given, and the table of before and after that a teacher saves must count them all.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import math
import multiprocessing
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from websockets.sync.client import ClientConnection, connect

from pages.classes.codes import new_secret
from pages.classes.operator import FILE_VARIABLE
from pages.classes.seat import STUDENT, TEACHER
from pages.classes.store import Store
from pages.lessons.lesson import Lesson
from pages.lessons.reading import OWN, read
from tests.bench.sessions import Server, Session, running_server
from tests.browser.conftest import launch

BEFORE, AFTER = "0-before", "9-after"
LESSONS = ("1-tokens", "6-choosing")
JOIN, VOTE = 10.0, 5.0  # seconds within which all join, and all vote
TARGETS = {30: 0.3, 100: 1.0}  # seconds that 95 of 100 votes take to the bars, by the size of the class
PATIENCE = 240  # seconds


@dataclass(frozen=True)
class Stop:
    """One step of the class's way: how many choices its question has, and whether its answer is revealed."""

    lesson: str
    step: int
    choices: int
    reveals: bool

    @property
    def key(self) -> tuple[str, int]:
        """The lesson and the step."""
        return self.lesson, self.step


def way(lessons: Sequence[str], steps: int) -> list[Stop]:
    """Return every step of the class, of each lesson the first `steps` of them, 0 for all."""
    stops = []
    for lesson in _lessons([BEFORE, *lessons, AFTER]).values():
        for index, step in enumerate(lesson.steps[: steps or None]):
            choices = 0 if step.question is None else len(step.question.choices)
            stops.append(Stop(lesson.name, index, choices, lesson.feedback and choices > 0))
    return stops


def _lessons(names: Sequence[str]) -> dict[str, Lesson]:
    return {name: read(OWN / f"{name}.toml") for name in names}


def student(server: Server, code: str, number: int, joins_at: float, stops: list[Stop], said: Queue[Any]) -> None:
    """Join, follow the class from step to step, and vote at each."""
    chance = random.Random(number)
    time.sleep(max(0.0, joins_at + chance.uniform(0, JOIN) - time.time()))
    started, secret = time.time(), new_secret()
    page = Session(server, "lessons", cookie=f"{STUDENT}={secret}", **{"lang": "en", "class": code})
    page.run()
    with connect(f"ws://localhost:{server.port}/class/{code}") as socket:
        socket.send(json.dumps({"student": secret}))
        turn = _heard(socket, "turn")["turn"]
        said.put(("joined", number, time.time() - started, time.time()))

        def follow(what: str) -> None:
            nonlocal turn
            while (told := _heard(socket, "turn"))["turn"] <= turn:
                pass
            turn = told["turn"]
            time.sleep(chance.uniform(0, told["spread"]))
            started = time.time()
            page.run()
            said.put((what, number, time.time() - started))

        for stop in stops:
            follow("followed")
            if stop.choices:
                time.sleep(chance.uniform(0, VOTE))
                for _again in range(1 + (number % 3 == 0)):
                    choice = chance.randrange(stop.choices)
                    sent = time.time()
                    socket.send(json.dumps({"vote": choice, "lesson": stop.lesson, "step": stop.step}))
                    if _heard(socket, "took")["took"] != choice:
                        raise RuntimeError(f"the vote of student {number} was not taken")
                    said.put(("voted", number, stop.key, choice, sent))
            if stop.reveals:
                follow("shown")
        said.put(("done", number))
        time.sleep(1)
    page.close()


def _heard(socket: ClientConnection, key: str) -> dict[str, int]:
    while True:
        message = json.loads(socket.recv(timeout=PATIENCE))
        if "refused" in message:
            raise RuntimeError(f"refused: {message['refused']}")
        if key in message:
            return message


class Board:
    """The teacher's screen: what its bars showed, and when."""

    def __init__(self, server: Server, code: str, secret: str) -> None:
        self.shown: list[tuple[float, tuple[str, int], int]] = []  # when, of which step, how many votes the bars had
        self._socket = connect(f"ws://localhost:{server.port}/class/{code}")
        self._socket.send(json.dumps({"teacher": secret}))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with contextlib.suppress(Exception):  # until it is closed
            while True:
                message = json.loads(self._socket.recv())
                self.shown.append((time.time(), tuple(message["of"]), sum(message["counts"].values())))

    def close(self) -> None:
        """Leave."""
        self._socket.close()


class Class:
    """The class that is held: its server, its file, its students' processes and browsers, and what they said."""

    def __init__(self, server: Server, path: Path, stops: list[Stop]) -> None:
        self.server, self.stops, self.store = server, stops, Store(path)
        self.code, self.secret = self.store.start(stops[0].lesson)
        self.board = Board(server, self.code, self.secret)
        self.pages: list[Page] = []
        self.events: list[tuple[Any, ...]] = []
        self._fork = multiprocessing.get_context("fork")
        self._said: Queue[Any] = self._fork.Queue()
        self._processes: list[Any] = []
        self._joins_at = self._fork.Value("d", 0.0)  # 0: not yet

    def fork(self, number: int) -> None:
        """Start the processes of the students who are no browsers, which wait until they may join."""
        for index in range(number):
            process = self._fork.Process(target=self._student, args=(index,), daemon=True)
            process.start()
            self._processes.append(process)

    def _student(self, number: int) -> None:
        while not (at := self._joins_at.value):
            time.sleep(0.05)
        student(self.server, self.code, number, at, self.stops, self._said)

    def open_browsers(self, browser: Browser, number: int) -> list[float]:
        """Open the class's link in browsers one after another; return the seconds that each took to be in the class."""
        seconds = []
        for _each in range(number):
            page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
            page.set_default_timeout(1000 * PATIENCE)
            started = time.time()
            page.goto(f"http://localhost:{self.server.port}/?class={self.code}&lang=en")
            page.get_by_text("You are in the class.", exact=True).wait_for()
            seconds.append(time.time() - started)
            self.pages.append(page)
        return seconds

    def join(self) -> float:
        """Let the others come, within ten seconds; return after how many the last one was in the class."""
        self._joins_at.value = begins = time.time() + 0.5
        self._gather("joined", len(self._processes))
        return max((event[3] for event in self.events if event[0] == "joined"), default=begins) - begins

    def hold(self) -> None:
        """Go every step."""
        n_votes, n_shown = 0, 0
        for stop in self.stops:
            self.store.go(self.code, self.secret, lesson=stop.lesson, step=stop.step)
            for number, page in enumerate(self.pages if stop.choices else ()):
                choice = number % stop.choices
                page.locator(f'label.choice:has(input[name="{stop.lesson}.{stop.step}"])').nth(choice).click()
                self.events.append(("voted", -1 - number, stop.key, choice, time.time()))
            for page in self.pages if stop.choices else ():
                page.get_by_text("Your answer counts.").wait_for()
            if stop.choices:
                n_votes += sum(1 + (number % 3 == 0) for number in range(len(self._processes)))
            self._gather("voted", n_votes + sum(event[0] == "voted" and event[1] < 0 for event in self.events))
            time.sleep(1)
            if stop.reveals:
                self.store.reveal(self.code, self.secret)
                for page in self.pages:
                    page.locator(f'input[name="{stop.lesson}.{stop.step}"]:disabled').first.wait_for()
                n_shown += len(self._processes)
                self._gather("shown", n_shown)
        for process in self._processes:
            process.join()
        self.board.close()

    def saved(self, browser: Browser) -> list[dict[str, str]]:
        """Return the table of before and after as the teacher saves it, in a browser that has the teacher's cookie."""
        context = browser.new_context(viewport={"width": 1366, "height": 768})
        url = f"http://localhost:{self.server.port}"
        context.add_cookies([{"name": f"{TEACHER}-{self.code}", "value": self.secret, "url": url}])
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(f"{url}/?class={self.code}&lang=en")
        page.get_by_role("button", name="Class", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Before and after").click()
        return list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig"))))

    def _gather(self, kind: str, count: int) -> None:
        while sum(event[0] == kind for event in self.events) < count:
            with contextlib.suppress(Exception):
                self.events.append(self._said.get(timeout=1))
                continue
            if any(process.exitcode for process in self._processes):
                raise RuntimeError("a student was lost")


def measure(students: int, in_browsers: int, lessons: Sequence[str], steps: int) -> bool:
    """Hold the class; print what was measured, and return whether nothing was lost and the targets were met."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "classes.db"
        with running_server(**{FILE_VARIABLE: str(path)}) as server:
            warm = Session(server, "lessons", lang="en")
            warm.run()  # the models are loaded and the lessons checked, as for every class but the first
            room = Class(server, path, way(lessons, steps))
            room.fork(students - in_browsers)
            with sync_playwright() as playwright:
                browser = launch(playwright)
                opened = room.open_browsers(browser, in_browsers)
                last = room.join()
                started = time.time()
                room.hold()
                held, table = time.time() - started, room.saved(browser)
                browser.close()
            return report(room, students, opened, last, held, table)


def report(
    room: Class, students: int, opened: list[float], last: float, held: float, table: list[dict[str, str]]
) -> bool:
    """Compare the votes given with those kept, with the bars, and with the table; print the figures."""
    given: dict[tuple[int, tuple[str, int]], int] = {}  # (student, step) -> the last choice
    for event in room.events:
        if event[0] == "voted":
            given[event[1], event[2]] = event[3]
    expected = Counter((*key, choice) for (_student, key), choice in given.items())
    kept = Counter((vote.lesson, vote.step, vote.choice) for vote in room.store.votes(room.code))
    lost = sum((expected - kept).values())
    waits = sorted(_waits(room))
    if not waits:
        print("nobody voted: no step with a question was reached")
        return False
    p95 = waits[int(0.95 * (len(waits) - 1))]
    target = next((seconds for size, seconds in TARGETS.items() if students <= size), max(TARGETS.values()))
    print(f"{students} students ({len(opened)} in browsers), {len(room.stops)} steps in {held / 60:.1f} minutes")
    print(f"  {sum(kept.values())} votes kept, {lost} lost")
    print(f"  the last of those without a browser was in {last:.1f} s after the first could come (within {JOIN:.0f} s)")
    if opened:
        print(f"  a browser, Chromium's own work included: {', '.join(f'{each:.1f}' for each in opened)} s")
    for what, kind in (("joining", "joined"), ("the next step", "followed"), ("the answer and its page", "shown")):
        seconds = sorted(event[2] for event in room.events if event[0] == kind)
        if seconds:
            middle, most = seconds[len(seconds) // 2], seconds[int(0.95 * (len(seconds) - 1))]
            print(f"  {what}: median {middle:.2f} s, p95 {most:.2f} s")
    print(
        f"  a vote in the teacher's bars: median {waits[len(waits) // 2] * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms "
        f"(at most {target * 1000:.0f}: {'met' if p95 <= target else 'MISSED'})"
    )
    server = room.server
    print(
        f"  processor time of the server: {server.processor_seconds():.0f} s; memory {server.resident() / 2**20:.0f} MB"
    )
    counts = {when: sum(int(row[when]) for row in table) for when in ("before", "after")}
    rights = {when: sum(int(row[when]) for row in table if row["right"] == "True") for when in ("before", "after")}
    print(f"  before and after, as saved: {counts} answers, {rights} right (they were drawn at random)")
    all_told = all(
        counts[when] == sum(n for (name, *_at), n in expected.items() if name == lesson)
        for when, lesson in (("before", BEFORE), ("after", AFTER))
    )
    return expected == kept and all_told and p95 <= target


def _waits(room: Class) -> Iterator[float]:
    """Give, for each first vote of a student on a question, the seconds until the bars had as many as were sent."""
    for stop in room.stops:
        first: dict[int, float] = {}
        for event in room.events:
            if event[0] == "voted" and event[2] == stop.key:
                first.setdefault(event[1], event[4])
        shown = [(at, total) for at, key, total in room.board.shown if key == stop.key]
        for n, at in enumerate(sorted(first.values()), 1):
            yield next((when for when, total in shown if when >= at and total >= n), math.inf) - at


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests.bench.classes")
    parser.add_argument("lessons", nargs="*", default=list(LESSONS))
    parser.add_argument("--students", type=int, default=30)
    parser.add_argument("--browsers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=0)
    asked = parser.parse_args()
    sys.exit(0 if measure(asked.students, asked.browsers, asked.lessons, asked.steps) else 1)
