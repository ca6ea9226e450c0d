"""The websocket of a browser in a class: a student's votes come in, what has changed goes out.

A browser first says who it is: `{"student": secret}` or `{"teacher": secret}`. Then

- a student sends `{"vote": choice, "lesson": name, "step": index}` and gets `{"took": choice, "at": [name, index]}`,
  with null when it no longer counts; `{"settle": true, "lesson": ..., "step": ...}` asks, at a student's own pace, for
  the answer. A student is told the class's turn, and looks again when it has grown.
- a teacher gets who is here and how the class's question was answered, whenever that changes.

One task of the server looks for changes, ten times a second and in one query: so it does not matter which of several
replicas a vote came to. What it tells is made once for each class.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from pages.classes import operator
from pages.classes.codes import as_typed
from pages.classes.records import Full, NoClass
from pages.classes.store import HERE
from pages.lessons.reading import LessonError, file_of, read

_LOOK = 0.1  # seconds between two looks for changes
_BREATH = 0.02  # seconds between two messages of one browser
_SAYS_WHO = 10.0  # seconds that a browser has to say who it is
_LONGEST = 1000  # characters of a message
_LINES_EACH = 6  # of one student: tabs, and lines whose loss was not noticed yet
_A_STUDENT = 0.02  # seconds of a class's turning for each student: pages that all run at once are slow for all


class _Line:
    """One browser's connection; `name` is the student's, None that of the teacher."""

    def __init__(self, socket: WebSocket, code: str, name: str | None) -> None:
        self.socket, self.code, self.name = socket, code, name
        self.waiting = asyncio.Event()
        self.turn = -1  # what the browser was told last


class _Lines:
    """The connections of this process, and the task that looks for changes as long as there are any."""

    def __init__(self) -> None:
        self.all: set[_Line] = set()
        self.told: dict[str, dict[str, Any]] = {}  # class -> what its teacher is told
        self.turns: dict[str, int] = {}
        self._marks: dict[str, tuple[int, int] | None] = {}  # None for a class that is gone
        self._task: asyncio.Task[None] | None = None

    def add(self, line: _Line) -> None:
        self.all.add(line)
        self._marks.pop(line.code, None)  # so that the next look tells the new one too
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())

    def count(self, code: str, name: str) -> int:
        return sum((line.code, line.name) == (code, name) for line in self.all)

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        seen_at = 0.0
        while self.all:
            try:
                self._look()
                if clock() - seen_at > HERE / 3:
                    seen_at = clock()
                    operator.store().seen({(line.code, line.name) for line in self.all if line.name is not None})
            except Exception:  # a file that is locked for long is free again some time
                logging.getLogger(__name__).exception("classes could not be read")
            await asyncio.sleep(_LOOK)
        self._marks.clear()

    def _look(self) -> None:
        store = operator.store()
        marks = store.marks({line.code for line in self.all})
        codes = {line.code for line in self.all}
        self.told = {code: self.told[code] for code in codes & self.told.keys()}
        self.turns = {code: self.turns[code] for code in codes & self.turns.keys()}
        changed = {code for code in codes if code not in self._marks or marks.get(code) != self._marks[code]}
        for code in changed:
            room = store.find(code)
            self.turns[code] = -1 if room is None else room.turn
            if room is not None:
                counts = store.counts(code, room.lesson, room.step)
                self.told[code] = {
                    "turn": room.turn,
                    "here": store.here(code),
                    "counts": counts,
                    "of": [room.lesson, room.step],
                }
        self._marks = {code: marks.get(code) for code in codes}
        for line in self.all:
            if line.code in changed:
                line.waiting.set()


_lines = _Lines()


def route(base: str) -> WebSocketRoute:
    """Return where browsers connect, below the path that the server stands at."""
    return WebSocketRoute(f"{base}/class/{{code}}", _serve)


async def _serve(socket: WebSocket) -> None:
    await socket.accept()
    with contextlib.suppress(WebSocketDisconnect, asyncio.TimeoutError, RuntimeError, KeyError):  # KeyError: bytes
        line = await _greeted(socket)
        if line is None:
            return
        _lines.add(line)
        telling = asyncio.create_task(_tell(line))
        try:
            while True:
                answer = _answer(line, await _message(socket))
                if answer is not None:
                    await socket.send_json(answer)
                await asyncio.sleep(_BREATH)
        finally:
            telling.cancel()
            _lines.all.discard(line)
            if line.name is not None and not _lines.count(line.code, line.name):
                operator.store().left(line.code, line.name)


async def _greeted(socket: WebSocket) -> _Line | None:
    """Return the line of a browser that says who it is; tell it why not, and close, otherwise."""
    code, source = as_typed(socket.path_params["code"]), socket.client.host if socket.client else ""
    said = await asyncio.wait_for(_message(socket), _SAYS_WHO)
    store, refused, name = operator.store(), "", None
    student, teacher = said.get("student"), said.get("teacher")
    known = isinstance(student, str) and store.knows(code, student)
    if isinstance(teacher, str) and store.teaches(code, teacher):
        pass
    elif not known and not operator.guesses.allowed(source):
        refused = "slow"
    elif isinstance(student, str) and len(student) >= 32:
        try:
            name = store.join(code, student)
            refused = "lines" if _lines.count(code, name) >= _LINES_EACH else ""
        except NoClass:
            operator.guesses.wrong(source)
            refused = "unknown"
        except Full:
            refused = "full"
    else:
        operator.guesses.wrong(source)
        refused = "unknown"
    if refused:
        await socket.send_json({"refused": refused})
        await socket.close()
        return None
    if name is not None:
        store.seen([(code, name)])
    return _Line(socket, code, name)


async def _message(socket: WebSocket) -> dict[str, Any]:
    text = await socket.receive_text()
    with contextlib.suppress(ValueError, RecursionError):
        if len(text) <= _LONGEST and isinstance(said := json.loads(text), dict):
            return said
    return {}


async def _tell(line: _Line) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):  # the other task notices that the browser is gone
        while True:
            await line.waiting.wait()
            line.waiting.clear()
            told, turn = _lines.told.get(line.code), _lines.turns.get(line.code, -1)
            if told is None or turn < 0:
                await line.socket.send_json({"refused": "unknown"})
            elif line.name is None:
                await line.socket.send_json(told)
            elif turn != line.turn:
                await line.socket.send_json({"turn": turn, "spread": _A_STUDENT * told["here"]})
            line.turn = turn


def _answer(line: _Line, said: dict[str, Any]) -> dict[str, Any] | None:
    lesson, step, choice = said.get("lesson"), _index(said.get("step")), _index(said.get("vote"))
    if line.name is None or not isinstance(lesson, str) or step is None or not _choices(lesson)[step]:
        return None
    store, at = operator.store(), [lesson, step]
    if said.get("settle") is True:
        return {"settled": store.settle(line.code, line.name, lesson, step), "at": at}
    if choice is None or choice >= _choices(lesson)[step]:
        return None
    return {"took": choice if store.vote(line.code, line.name, lesson, step, choice) else None, "at": at}


def _index(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1000 else None


def _choices(lesson: str) -> Counter[int]:
    """Return how many choices each step of a lesson has, by its index."""
    path = file_of(lesson)
    return Counter() if path is None else _choices_in(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _choices_in(path: Path, _changed: int) -> Counter[int]:
    try:
        return Counter({index: len(question.choices) for index, question in read(path).questions.items()})
    except LessonError:
        return Counter()
