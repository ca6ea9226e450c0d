"""What the store says of a class and of a vote, and why it refuses something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Pace = Literal["teacher", "own"]
LOBBY = -1  # the step of a class that has not begun


class NoClass(LookupError):
    """There is no class with this code, or it has ended."""


class NotTeacher(PermissionError):
    """The secret is not that of the class's teacher."""


class Full(RuntimeError):
    """There is no room for another student, or for another class."""


@dataclass(frozen=True)
class Class:
    """A class as it is now.

    Attributes:
        code: what students type.
        lesson: the name of the lesson it is at.
        step: the index of the teacher's step; `LOBBY` before the first.
        pace: "teacher" when all students see the teacher's step, "own" when each goes on alone.
        turn: grows whenever students have to look again.
        revealed: the steps of the lesson whose answers are shown.
        ended: whether it is over.
    """

    code: str
    lesson: str
    step: int
    pace: Pace
    turn: int
    revealed: frozenset[int]
    ended: bool


@dataclass(frozen=True)
class Vote:
    """One student's answer to one question; `settled` when it can no longer be changed, for its answer was shown."""

    name: str
    lesson: str
    step: int
    choice: int
    settled: bool
