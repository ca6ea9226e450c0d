"""What a reader has answered: kept in the session, and as a cookie until the browser is closed.

So a reload, the browser's Back and a lost connection keep the answers, and a shared address does not hold them.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from pages.lessons.lesson import Lesson
from pages.live.browser_cookie import keep_in_browser

COOKIE = "lesson-answers"
GAVE_UP = -1  # in place of a second choice: the reader asked for the answer
_RECORDS = "lesson.records"  # lesson -> Record


@dataclass
class Record:
    """One reader's way through a lesson.

    Attributes:
        step: the index of the step that was seen last.
        tries: by the index of a step, the choices made there: one, or two.
    """

    step: int = 0
    tries: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def as_text(self) -> str:
        """Return it in digits, ".", "-" and "_": the step, then each step's index and choices.

        >>> Record(4, {0: (2, 1), 3: (0,)}).as_text()
        '4_0.2.1_3.0'
        """
        return "_".join([str(self.step), *(".".join(map(str, (i, *tried))) for i, tried in sorted(self.tries.items()))])

    @classmethod
    def from_text(cls, text: str) -> Record:
        """Read what `as_text` wrote.

        Raises:
            ValueError: for anything else.
        """
        step, *tries = text.split("_")
        numbers = [[int(number) for number in tried.split(".")] for tried in tries]
        if int(step) < 0 or any(len(each) not in (2, 3) for each in numbers):
            raise ValueError(f"{text!r} is no record of a lesson.")
        return cls(int(step), {index: tuple(tried) for index, *tried in numbers})


def records() -> dict[str, Record]:
    """Return the reader's records by the lessons' names."""
    if _RECORDS not in st.session_state:
        st.session_state[_RECORDS] = _from_cookie(str(st.context.cookies.get(COOKIE, "")))
    return st.session_state[_RECORDS]


def record(lesson: Lesson) -> Record:
    """Return the reader's record of a lesson; choices that it no longer has are left out."""
    found = records().setdefault(lesson.name, Record())
    found.step = min(found.step, len(lesson.steps) - 1)
    for index, tried in list(found.tries.items()):
        question = lesson.questions.get(index)
        if question is None or not all(GAVE_UP <= choice < len(question.choices) for choice in tried):
            del found.tries[index]
    return found


def forget(lesson: Lesson) -> None:
    """Begin a lesson anew."""
    records()[lesson.name] = Record()


def publish() -> None:
    """At the end of a run: let the browser keep the records."""
    kept = {name: each.as_text() for name, each in records().items() if each.tries or each.step}
    if kept or COOKIE in st.context.cookies:
        keep_in_browser(COOKIE, urlencode(kept))


def _from_cookie(text: str) -> dict[str, Record]:
    found = {}
    for name, value in parse_qsl(text):
        with contextlib.suppress(ValueError):  # a cookie is what the browser says it is
            found[name] = Record.from_text(value)
    return found
