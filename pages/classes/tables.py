"""The tables that a teacher saves: what a class answered, each student's row, before and after side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import pandas as pd

from pages.classes.records import Vote
from pages.lessons.lesson import Choice, Lesson, Question, Step

Lessons = Mapping[str, Lesson]
Right = Callable[[Step, Question], int | None]
"""Gives the index of a question's right choice, None when it cannot be measured."""


def answers(votes: Iterable[Vote], lessons: Lessons, language: str, right: Right) -> pd.DataFrame:
    """Return a row for each choice of each question that was answered, with how many took it.

    Args:
        votes: of the class.
        lessons: those that the votes name; votes of others, and of choices that a lesson no longer has, are left out.
        language: of the texts.
        right: measures what is right.
    """
    counts = Counter((vote.lesson, vote.step, vote.choice) for vote in votes)
    rows = []
    for lesson, index, question in _asked(counts, lessons):
        best = right(lesson.steps[index], question)
        for n, choice in enumerate(question.choices):
            rows.append(
                {
                    "lesson": lesson.name,
                    **_told(index, question, choice, language),
                    "right": n == best,
                    "count": counts[lesson.name, index, n],
                }
            )
    return pd.DataFrame(rows)


def students(votes: Iterable[Vote], lessons: Lessons, language: str, right: Right) -> pd.DataFrame:
    """Return a row for each student, under the random name, with a column for each question: the choice as a letter.

    A column "right" counts the right ones. Arguments as in `answers`.
    """
    votes = list(votes)
    asked = {(each.name, index): question for each, index, question in _asked(_keys(votes), lessons)}
    best = {key: right(lessons[key[0]].steps[key[1]], question) for key, question in asked.items()}
    rows: dict[str, dict[str, str | int]] = {}
    for vote in sorted(votes, key=lambda vote: vote.name):
        key = (vote.lesson, vote.step)
        if key in asked and vote.choice < len(asked[key].choices):
            row = rows.setdefault(vote.name, {"student": vote.name, "right": 0})
            row[f"{vote.lesson} {vote.step + 1}"] = chr(ord("A") + vote.choice)
            row["right"] = int(row["right"]) + (vote.choice == best[key])
    columns = ["student", "right", *(f"{name} {index + 1}" for name, index in asked)]
    return pd.DataFrame(rows.values(), columns=columns)


def before_and_after(votes: Iterable[Vote], lessons: Lessons, language: str, right: Right) -> pd.DataFrame:
    """Return a row for each choice of the questions that were asked before and after, with both counts.

    Arguments as in `answers`.
    """
    counts = Counter((vote.lesson, vote.step, vote.choice) for vote in votes)
    rows = []
    for after in lessons.values():
        before = None if after.steps_of is None else lessons.get(after.steps_of)
        if before is None:
            continue
        for index, question in before.questions.items():
            best = right(before.steps[index], question)
            for n, choice in enumerate(question.choices):
                rows.append(
                    {
                        **_told(index, question, choice, language),
                        "right": n == best,
                        "before": counts[before.name, index, n],
                        "after": counts[after.name, index, n],
                    }
                )
    return pd.DataFrame(rows)


def _keys(votes: Iterable[Vote]) -> set[tuple[str, int, int]]:
    return {(vote.lesson, vote.step, vote.choice) for vote in votes}


def _asked(votes: Iterable[tuple[str, int, int]], lessons: Lessons) -> Iterator[tuple[Lesson, int, Question]]:
    for name, index in sorted({(name, index) for name, index, _choice in votes}):
        lesson = lessons.get(name)
        if lesson is not None and index in lesson.questions:
            yield lesson, index, lesson.questions[index]


def _told(index: int, question: Question, choice: Choice, language: str) -> dict[str, str | int]:
    return {
        "step": index + 1,
        "question": question.text.in_language(language),
        "choice": choice.text.in_language(language),
        "misconception": choice.misconception or "",
    }
