"""The lesson above the page: the step's text, its question, and the answer after the reader has given one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.common import link, session, stages
from pages.common.escape import visible
from pages.common.text import _, in_bits, in_nats, language, markdown_literal
from pages.figures.theme import fmt_count, fmt_logit, fmt_probability
from pages.lessons.lesson import Lesson, LessonError, Question, Step, find
from pages.lessons.measures import Answer, Measure

NAME, STEP = "lesson", "lesson.step"
_ANSWERS = "lesson.answers"  # lesson -> step -> the choice made
_FORMATS: dict[str, Callable[[Any], str]] = {
    **dict.fromkeys(("probability", "attention"), fmt_probability),
    **dict.fromkeys(("tokens", "rank", "candidates", "parameters"), fmt_count),
    **dict.fromkeys(("cosine",), fmt_logit),
    "distance": "{:.3f}".format,
    "loss": in_nats,
    "entropy": in_bits,
}


def answers(lesson: Lesson) -> dict[int, int]:
    """Return the reader's choices so far in this session, by step from 0."""
    return st.session_state.setdefault(_ANSWERS, {}).setdefault(lesson.name, {})


def go(lesson: Lesson, index: int, *, revealed: bool = False) -> None:
    """Open a step's page in the step's state; all other values go back to their defaults."""
    step = lesson.steps[index]
    state = {**step.state, **(step.reveal if revealed else {})}
    query = {key: link.as_text(value) for key, value in state.items()}
    st.switch_page(
        stages.script(step.page),
        query_params={**query, NAME: lesson.name, STEP: str(index + 1), link.APPLY: link.FRESH},
    )


def show() -> bool:
    """Show the step that the address names, if it names one; return whether the page is to wait for an answer."""
    name = link.remember(NAME, None)
    if name is not None:
        try:
            lesson = find(name)
        except LessonError as error:
            st.error(markdown_literal(str(error)))
            return False
        if lesson is None:
            link.replace(NAME, None, name)
    given = link.replaced(NAME)
    if given is not None:
        st.text(_("There is no lesson named {given}.").format(given=visible(given[:60])))
    if name is None or lesson is None:
        return False
    last = len(lesson.steps)
    number = link.remember(STEP, 1, int)
    if not 1 <= number <= last:
        link.replace(STEP, number := min(max(number, 1), last), number)
    index = number - 1
    with st.container(key="lesson", border=True):
        return _show_step(lesson, index)


def _show_step(lesson: Lesson, index: int) -> bool:
    step, done = lesson.steps[index], answers(lesson)
    question = step.question
    code = language()
    st.progress(
        (index + 1) / len(lesson.steps),
        _("{title} · step {n} of {last}").format(
            title=lesson.title.in_language(code), n=index + 1, last=len(lesson.steps)
        ),
    )
    st.markdown(step.say.in_language(code))
    asks = question is not None and index not in done
    chosen = None
    if question is not None and asks:
        chosen = _ask(question, f"lesson.choice.{lesson.name}.{index}")
    elif question is not None:
        _show_answer(step, question, done[index])
    waits = asks and not step.reveal
    if waits:
        st.caption(_("The page appears after you answer."))
    with st.container(horizontal=True):
        if asks and st.button(_("Answer"), type="primary", disabled=chosen is None, key="lesson.answer"):
            assert chosen is not None  # the button is disabled until then
            done[index] = chosen
            go(lesson, index, revealed=True)
        _show_buttons(lesson, index)
    return waits


def _ask(question: Question, key: str) -> int | None:
    code = language()
    return st.radio(
        question.text.in_language(code),
        range(len(question.choices)),
        format_func=lambda choice: question.choices[choice].text.in_language(code),
        index=None,
        key=key,
    )


def _show_answer(step: Step, question: Question, chosen: int) -> None:
    code = language()
    st.markdown(f"**{question.text.in_language(code)}**")
    try:
        answer = _measured(step, question.measure)
        beside = None if question.beside is None else _measured(step, question.beside)
    except (ValueError, KeyError, IndexError) as error:
        st.error(_("This cannot be measured here: {reason}").format(reason=markdown_literal(str(error))))
        return
    right = [choice.is_right(answer, beside) for choice in question.choices]
    for index, choice in enumerate(question.choices):
        mark = "✓" if right[index] else "✗" if index == chosen else "·"
        yours = " " + _("(your answer)") if index == chosen else ""
        st.markdown(f"{mark} {choice.text.in_language(code)}{yours}")
    told = _("Measured just now: **{answer}**.").format(answer=_shown(question.measure.name, answer))
    if question.beside is not None and beside is not None:
        told = _("Measured just now: **{answer}**; for comparison: {beside}.").format(
            answer=_shown(question.measure.name, answer), beside=_shown(question.beside.name, beside)
        )
    explained = "" if step.explain is None else " " + step.explain.in_language(code)
    (st.success if right[chosen] else st.info)(told + explained)


def _measured(step: Step, measure: Measure) -> Answer:
    lm = session.language_model(measure.arguments.get("model") or step.state.get("model"))
    with session.forward_lock():
        return measure.value(lm, str(step.state.get("prompt", session.prompt())))


def _shown(name: str, value: Answer) -> str:
    return markdown_literal(value) if isinstance(value, str) else _FORMATS[name](value)


def _show_buttons(lesson: Lesson, index: int) -> None:
    if st.button(_("Back"), disabled=index == 0, key="lesson.back"):
        go(lesson, index - 1)
    if index + 1 == len(lesson.steps):
        st.button(_("Finish"), key="lesson.finish", on_click=_leave)
    elif st.button(_("Next step"), key="lesson.next"):
        go(lesson, index + 1)
    if st.button(_("Set up again"), key="lesson.again", help=_("Show the page as this step set it up.")):
        go(lesson, index, revealed=index in answers(lesson))
    st.button(_("Leave the lesson"), key="lesson.leave", type="tertiary", on_click=_leave)


def _leave() -> None:
    st.session_state.update({NAME: None, STEP: None})  # not removed: the address would bring them back
