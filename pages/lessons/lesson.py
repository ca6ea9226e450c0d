"""What a lesson is: steps with a page, a question, choices, and what is measured to answer it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pages.lessons.measures import Answer, Measure
from pages.lessons.texts import Text

ORDERED = ("above", "below")  # of numbers
COMPARED = (*ORDERED, "same", "different")


@dataclass(frozen=True)
class Choice:
    """A possible answer: `when` says of what is measured that this is the right one.

    `misconception` names what somebody may believe who chooses it: one of `misconceptions()`.
    """

    text: Text
    when: Any
    misconception: str | None = None

    def is_right(self, answer: Answer, beside: Answer | None) -> bool:
        """Return whether this choice is the right one for the measured answer.

        Args:
            answer: what was measured.
            beside: the step's second measure, which "above", "below", "same" and "different" hold the answer to.

        >>> Choice(Text({"en": "It rises."}), "above").is_right(0.94, 0.69)
        True
        """
        if isinstance(self.when, Mapping):
            return not isinstance(answer, str) and self.low <= answer < self.high
        if self.when not in COMPARED or beside is None:
            return answer == self.when
        if isinstance(answer, str) or isinstance(beside, str):
            return self.when == ("same" if answer == beside else "different")
        same = abs(answer - beside) <= 1e-6 * max(1.0, abs(beside))  # float32 differs by less
        if self.when in ORDERED:
            return not same and (answer > beside) == (self.when == "above")
        return self.when == ("same" if same else "different")

    @property
    def low(self) -> float:
        """The least that an answer in its range is."""
        return self.when.get("at_least", -math.inf)

    @property
    def high(self) -> float:
        """What an answer in its range is less than."""
        return self.when.get("less_than", math.inf)


@dataclass(frozen=True)
class Question:
    """What to predict, the choices, and what is measured to answer it; `purpose` says to the teacher what it is for."""

    text: Text
    choices: tuple[Choice, ...]
    measure: Measure
    beside: Measure | None
    purpose: Text | None = None


@dataclass(frozen=True)
class Step:
    """A page in a state, what is said about it, and a question.

    With `reveal`, values that change once the question is answered, the page can be seen before; without it the page
    waits for the answer. `minutes` and `ask`, what to ask the class, are for the teacher.
    """

    page: str
    say: Text
    state: Mapping[str, Any] = field(default_factory=dict)
    question: Question | None = None
    reveal: Mapping[str, Any] = field(default_factory=dict)
    explain: Text | None = None
    minutes: int | None = None
    ask: Text | None = None


@dataclass(frozen=True)
class Lesson:
    """A lesson by its file's name; `aim` says to the teacher what a class can do afterwards.

    Without `feedback` it is a test: each question is asked once, its page is not shown, and nothing is told of what is
    right. `steps_of` names the lesson that a test shares its steps with, the one before it.
    """

    name: str
    title: Text
    about: Text
    steps: tuple[Step, ...]
    aim: Text | None = None
    feedback: bool = True
    steps_of: str | None = None

    @property
    def questions(self) -> dict[int, Question]:
        """The questions by the index of their steps."""
        return {index: step.question for index, step in enumerate(self.steps) if step.question is not None}
