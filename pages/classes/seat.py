"""Who a session is in a class, and where the class is: for the run that goes on."""

from __future__ import annotations

import logging
import sqlite3
from dataclasses import dataclass, replace
from typing import cast

import streamlit as st

from pages.classes import operator
from pages.classes.codes import as_typed, new_secret
from pages.classes.records import LOBBY, Class, Full, NoClass
from pages.classes.store import IDLE_DAYS
from pages.lessons.lesson import Lesson, Question, Step
from pages.lessons.reading import LessonError, file_of, read
from pages.live.browser_cookie import keep_in_browser

STUDENT, TEACHER = "class-student", "class-teacher"  # cookies
_SECRET, _SECRETS, _SEAT = "class.secret", "class.secrets", "class.seat"
_MOST = 8  # classes that a browser remembers to teach


@dataclass(frozen=True)
class Place:
    """One person's place in a class.

    Attributes:
        room: the class.
        secret: the person's.
        name: a student's random name; None for the teacher.
        lesson: the class's lesson, as it was read; None before the first step, after the end, and when it is broken.
        index: of the step.
        vote: the student's choice so far.
        settled: whether the student was shown the answer, at their own pace.
    """

    room: Class
    secret: str
    name: str | None = None
    lesson: Lesson | None = None
    index: int = LOBBY
    vote: int | None = None
    settled: bool = False

    @property
    def teaches(self) -> bool:
        """Whether this is the teacher."""
        return self.name is None

    @property
    def step(self) -> Step | None:
        """The step, None without a lesson."""
        return None if self.lesson is None else self.lesson.steps[self.index]

    @property
    def question(self) -> Question | None:
        """The step's question, when it has one."""
        return None if self.step is None else self.step.question

    @property
    def closed(self) -> bool:
        """Whether the question can no longer be answered."""
        return self.question is not None and (self.index in self.room.revealed or self.settled)

    @property
    def shown(self) -> bool:
        """Whether the answer is shown; a test shows none."""
        return self.closed and self.lesson is not None and self.lesson.feedback

    @property
    def at(self) -> str:
        """Where this is, as the address says it."""
        if self.room.ended:
            return "end"
        return "lobby" if self.lesson is None else f"{self.lesson.name}.{self.index + 1}{'.shown' * self.shown}"


def take(code: str, at: str | None) -> Place | str:
    """Return the session's place in a class; a new student joins. Otherwise the reason why not, see `refusals`.

    Args:
        code: as it stands in the address.
        at: where the address says this is: at a student's own pace it names the step.
    """
    try:
        place = _placed(as_typed(code), at)
    except (sqlite3.Error, OSError, ValueError):
        logging.getLogger(__name__).exception("the file of classes cannot be used")
        place = "broken"
    st.session_state[_SEAT] = place if isinstance(place, Place) else None
    return place


def leave() -> None:
    """Be in no class any more; who comes back is the same student."""
    st.session_state[_SEAT] = None


def current() -> Place | None:
    """Return the place that was taken last, None outside a class."""
    return st.session_state.get(_SEAT)


def start(lesson: Lesson) -> str:
    """Open a class with this session as its teacher; return its code.

    Raises:
        Full: there are too many classes.
        sqlite3.Error, OSError, ValueError: the operator's file cannot be used.
    """
    code, secret = operator.store().start(lesson.name)
    _secrets()[code] = secret
    return code


def publish() -> None:
    """Let the browser keep who it is."""
    if _SECRET in st.session_state:
        keep_in_browser(STUDENT, st.session_state[_SECRET], days=IDLE_DAYS)
    # A cookie for each class: another tab, whose session knows nothing of this one, may start one too.
    for place, (code, secret) in enumerate(reversed(st.session_state.get(_SECRETS, {}).items())):
        keep_in_browser(f"{TEACHER}-{code}", secret if place < _MOST else "", days=IDLE_DAYS)


def _placed(code: str, at: str | None) -> Place | str:
    store, source = operator.store(), str(st.context.ip_address or "")
    teacher = _secrets().get(code, "")
    teaches = bool(teacher) and store.teaches(code, teacher)
    if not teaches and not store.knows(code, _secret()) and not operator.guesses.allowed(source):
        return "slow"
    room = store.find(code)
    if room is None:
        operator.guesses.wrong(source)
        return "unknown"
    if teaches:
        return _at_a_step(Place(room, teacher), room.step)
    try:
        place = Place(room, _secret(), store.join(code, _secret()))
    except (NoClass, Full) as error:
        return "full" if isinstance(error, Full) else "unknown"
    place = _at_a_step(place, room.step if room.pace == "teacher" else _own_step(room, at))
    mine = [vote for vote in store.votes(code, place.name) if (vote.lesson, vote.step) == (room.lesson, place.index)]
    return replace(place, vote=mine[0].choice, settled=mine[0].settled) if mine else place


def _at_a_step(place: Place, step: int) -> Place:
    path = file_of(place.room.lesson)
    if place.room.ended or place.room.step == LOBBY or path is None:
        return place
    try:
        lesson = read(path)
    except LessonError:
        return place
    return replace(place, lesson=lesson, index=min(max(step, 0), len(lesson.steps) - 1))


def _own_step(room: Class, at: str | None) -> int:
    name, number, *_shown = [*(at or "").split("."), "", ""]
    return int(number[:4]) - 1 if name == room.lesson and number[:4].isdecimal() else 0


def _secret() -> str:
    if _SECRET not in st.session_state:
        kept = str(st.context.cookies.get(STUDENT, ""))
        st.session_state[_SECRET] = kept if len(kept) == len(new_secret()) and kept.isalnum() else new_secret()
    return st.session_state[_SECRET]


def _secrets() -> dict[str, str]:
    if _SECRETS not in st.session_state:
        mine = f"{TEACHER}-"
        st.session_state[_SECRETS] = {
            name.removeprefix(mine): str(secret) for name, secret in st.context.cookies.items() if name.startswith(mine)
        }
    return cast(dict[str, str], st.session_state[_SECRETS])
