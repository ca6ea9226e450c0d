"""What a reader has answered in a lesson: the score, and each question with what was chosen and what is right."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.common import page
from pages.common.text import _, language, ngettext
from pages.lessons.lesson import Lesson, Question, Step
from pages.lessons.panel import is_right, is_settled, told
from pages.lessons.record import GAVE_UP, record, records
from pages.lessons.shelf import measured


def show(lesson: Lesson) -> None:
    """Show the score and the answers; the browser prints the page, and a button saves them.

    What is right in a test is not told until the one after the course is answered, which has the same questions.
    """
    tries = record(lesson).tries
    before = None if lesson.steps_of is None else records().get(lesson.steps_of)
    if not lesson.feedback and (lesson.steps_of is None or len(tries) < len(lesson.questions)):
        told_later = ngettext("{n} question answered", "{n} questions answered", len(tries)).format(n=len(tries))
        st.markdown(told_later + ". " + _("What was right is told after the course, with the same questions."))
        return
    questions = lesson.questions
    places = {index: _right_at(lesson.steps[index], questions[index], tries[index]) for index in tries}
    first, second = (sum(place == at for place in places.values()) for at in (0, 1))
    score = _("**{first} of {n} questions right at the first try.**").format(first=first, n=len(questions))
    if second:
        score += " " + ngettext("{n} more at the second.", "{n} more at the second.", second).format(n=second)
    st.markdown(score)
    if before is not None and before.tries:
        right = sum(
            is_right(lesson.steps[index], questions[index], tried[0])
            for index, tried in before.tries.items()
            if index in questions
        )
        st.markdown(_("Before the course: {n} of {all}.").format(n=right, all=len(questions)))
    for index, tried in sorted(tries.items()):
        step, question = lesson.steps[index], questions[index]
        settled = not lesson.feedback or is_settled(step, question, tried)
        mark = "✓" if places[index] is not None else "✗" if settled else "·"
        st.markdown(
            f"{mark} **{index + 1}** {_text(question)}  \n"
            + _("Your answer: {answer}").format(answer=" → ".join(_choice(question, each) for each in tried))
            + (_right(step, question) if settled else "")
        )
    page.downloads(f"{lesson.name}-answers", lambda: _rows(lesson))


def _right_at(step: Step, question: Question, tried: tuple[int, ...]) -> int | None:
    """At which try the answer was right, 0 or 1; a second of two choices is no try."""
    return next((at for at, choice in enumerate(tried) if is_right(step, question, choice)), None)


def _right(step: Step, question: Question) -> str:
    answer = told(question, measured(step, question.measure))
    (right,) = [n for n in range(len(question.choices)) if is_right(step, question, n)]
    return "  \n" + _("Right: {choice} (measured: {answer})").format(choice=_choice(question, right), answer=answer)


def _rows(lesson: Lesson) -> pd.DataFrame:
    rows = []
    for index, tried in sorted(record(lesson).tries.items()):
        step, question = lesson.steps[index], lesson.questions[index]
        rows.append(
            {
                "step": index + 1,
                "question": _text(question),
                "first": _choice(question, tried[0]),
                "second": _choice(question, tried[1]) if len(tried) > 1 else "",
                "right": is_right(step, question, tried[-1]),
            }
        )
    return pd.DataFrame(rows)


def _text(question: Question) -> str:
    return question.text.in_language(language())


def _choice(question: Question, choice: int) -> str:
    return _("(asked for the answer)") if choice == GAVE_UP else question.choices[choice].text.in_language(language())
