"""A class in the browser: a student's choices, or the teacher's bars, by a websocket of its own.

A vote needs no run of the page, and neither does a bar: thirty students who answer at once cost the server thirty short
messages. The page runs again when the class turns: at the next step, or when an answer is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from pages.common.text import _
from pages.live.part import part

_HTML = '<div class="classroom"></div>'


@dataclass(frozen=True)
class Seat:
    """What a class's part in the browser shows.

    Attributes:
        hello: what the browser says of itself, see `pages/classes/line.py`.
        code: the class's code as it is read aloud.
        turn: which turn of the class the page shows.
        lesson: the name of the lesson.
        step: the index of the step.
        teaches: whether this is the teacher.
        own: whether students go on at their own pace.
        tells: whether answers are shown at all.
        question: the question, empty when the step has none.
        choices: its choices.
        vote: the student's choice so far.
        shown: whether the answer is shown.
        right: the right choice, None as long as it is not told.
        beliefs: what somebody may believe who takes a choice, for the teacher.
    """

    hello: Mapping[str, str]
    code: str
    turn: int
    lesson: str = ""
    step: int = -1
    teaches: bool = False
    own: bool = False
    tells: bool = True
    question: str = ""
    choices: Sequence[str] = ()
    vote: int | None = None
    shown: bool = False
    right: int | None = None
    beliefs: Sequence[str] = ()


def classroom(code: str, seat: Seat) -> None:
    """Show it; the page runs again when the class turns."""
    base = st.get_option("server.baseUrlPath").strip("/")
    part("classroom", _HTML)(
        key="explorer_classroom",
        data={
            **asdict(seat),
            "path": f"/{base}/class/{code}".replace("//", "/"),
            "refusals": refusals(),
            "labels": {
                "here": _("You are in the class."),
                "choose": _("Choose an answer."),
                "counted": _("Your answer counts. You can change it while the question is open."),
                "late": _("This question is closed. Your answer was not counted."),
                "sending": _("Sending your answer …"),
                "lost": _("No connection. Your answer is sent as soon as there is one."),
                "connecting": _("Connecting …"),
                "settle": _("Show the answer"),
                "here_now": _("{n} here"),
                "answered": _("{n} answered"),
                "show": _("Show the bars"),
                "hide": _("Hide the bars"),
            },
        },
        on_turned_change=lambda: None,
        height="content",
    )


def refusals() -> dict[str, str]:
    """Return why somebody is not let into a class, by the word that the server says."""
    return {
        "unknown": _("There is no class with this code, or it has ended."),
        "full": _("The class is full: this server has no room for another student. Those who are in stay in."),
        "slow": _("Too many wrong codes were tried. Wait a minute, then open the link again."),
        "lines": _("This class is open in too many tabs of your browser. Close some."),
    }
