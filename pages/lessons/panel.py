"""The lesson above the page: the step's text, its question, and the answer after the reader has given one.

A step is an address with nothing but the lesson and the step in it: the page's values are the lesson's, until the
reader moves them. A first answer that is wrong shows the page and lets the reader choose once more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.common import link, stages
from pages.common.escape import visible
from pages.common.text import _, in_bits, in_nats, language, markdown_literal
from pages.figures.theme import fmt_count, fmt_logit, fmt_probability
from pages.lessons import draft
from pages.lessons.lesson import Choice, Lesson, Question, Step
from pages.lessons.measures import Answer, Kind
from pages.lessons.misconceptions import misconceptions
from pages.lessons.record import GAVE_UP, Record, record
from pages.lessons.shelf import Shelved, find, measured, unchecked

NAME, STEP, SHOWN = "lesson", "lesson.step", "lessons.record"
WRITING = {"lessons.teacher": "1", "lessons.view": "write"}  # of the address where a lesson is written
_CHOSEN = "lesson.chosen"  # (lesson, step) -> the choice marked and not yet given
_FORMATS: dict[Kind, Callable[[Any], str]] = {
    "share": fmt_probability,
    "count": fmt_count,
    "cosine": fmt_logit,
    "distance": "{:.3f}".format,
    "nats": in_nats,
    "bits": in_bits,
    "token": lambda text: markdown_literal(visible(text)),
    "text": lambda text: markdown_literal(visible(text)),
}


def go(lesson: Lesson, index: int) -> NoReturn:
    """Open a step's page in the step's state; all other values go back to their defaults."""
    link.go(stages.script(lesson.steps[index].page), {NAME: lesson.name, STEP: str(index + 1)})


def leave(lesson: Lesson, *, finished: bool = False) -> NoReturn:
    """Go to the list of lessons, at the end with what was answered; from a draft back to where it is written."""
    st.session_state.update({NAME: None, STEP: None})
    if lesson.name == draft.NAME:
        link.go(stages.script("lessons"), WRITING)
    link.go(stages.script("lessons"), {SHOWN: lesson.name} if finished else {})


def shared() -> tuple[str, ...]:
    """Return which parameters a shared address has: in a lesson the step alone, without answers.

    Of a draft, which nobody else has, it is the page.
    """
    if st.query_params.get(NAME) == draft.NAME:
        return ("lang", *(key for key in link.moved() if key not in (NAME, STEP)))
    return (NAME, STEP) if NAME in st.query_params else ()


def begin() -> None:
    """At the start of a run: take the step that the address names, and the page's values from the lesson."""
    state, query = st.session_state, st.query_params
    if NAME not in query:
        return
    if NAME in state and (query[NAME], query.get(STEP, "1")) != (state[NAME], str(state.get(STEP))):
        link.take_address()  # the browser's Back or Forward
    if NAME in state or (lesson := unchecked(query[NAME])) is None:
        return  # where one cannot be read, `show` says so
    text = query.get(STEP, "1")
    index = _index(lesson, int(text[:4])) if text.isdecimal() else 0
    step, kept = lesson.steps[index], record(lesson)
    kept.step = index
    set_up(step, shown=index in kept.tries)


def set_up(step: Step, *, shown: bool) -> None:
    """Give the page a step's values, in place of those that the address doesn't have.

    Args:
        step: the step.
        shown: whether its question was answered, so that the page has what changes with the answer.
    """
    query = st.query_params
    values: dict[str, str | None] = {key: link.as_text(value) for key, value in step.state.items() if key not in query}
    if shown:
        values |= {key: link.as_text(value) for key, value in step.reveal.items() if key not in query}
    else:  # an address copied by somebody who has answered
        values |= {key: link.as_text(step.state[key]) if key in step.state else None for key in step.reveal}
    link.suppose(values)


def show(page: str) -> bool:
    """Show the step that the address names; return whether the page is to wait for an answer.

    Args:
        page: the page below, such as "sampling". On another page than the step's, and where the address names no
            step, a line leads back to the lesson that was begun.
    """
    if NAME not in st.query_params:
        _show_way_back(page)
        return False
    name = link.remember(NAME, None)
    shelved = find(name) if name is not None else None
    if shelved is None:
        if name is not None:
            link.replace(NAME, None, name)
        if (given := link.replaced(NAME)) is not None:
            st.text(_("There is no lesson named {given}.").format(given=visible(given[:60])))
        return False
    if shelved.lesson is None:
        say_broken(shelved)
        return False
    lesson = shelved.lesson
    number = link.remember(STEP, 1, int)
    index = _index(lesson, number)
    if index + 1 != number:
        link.replace(STEP, index + 1, number)
    if page != lesson.steps[index].page:
        go(lesson, index)
    with st.container(key="lesson", border=True):
        return _show_step(lesson, index)


def say_broken(shelved: Shelved) -> None:
    """Tell a student that a lesson cannot be followed; what is wrong with it is the teacher's to see."""
    st.error(
        _(
            "The lesson {name} has a mistake and cannot be followed. Its teacher can see what is wrong on the page "
            "*Lessons*, under *For the teacher*."
        ).format(name=markdown_literal(visible(shelved.name)))
    )


def is_right(step: Step, question: Question, choice: int) -> bool:
    """Return whether a choice is the one that the measured answer makes right."""
    beside = None if question.beside is None else measured(step, question.beside)
    return choice != GAVE_UP and question.choices[choice].is_right(measured(step, question.measure), beside)


def right_choice(step: Step, question: Question) -> int | None:
    """Return the index of the choice that the measured answer makes right; None when it cannot be measured here."""
    try:
        return next((n for n in range(len(question.choices)) if is_right(step, question, n)), None)
    except (ValueError, TypeError, KeyError, IndexError):
        return None


def belief(choice: Choice) -> str:
    """Return what somebody may believe who takes a choice, empty when nothing is said of it."""
    name = choice.misconception
    return "" if name is None else misconceptions()[name].belief.in_language(language())


def told(question: Question, answer: Answer) -> str:
    """Return a measured answer as the reader sees it, in Markdown."""
    return _FORMATS[question.measure.kind](answer)


def _index(lesson: Lesson, number: int) -> int:
    return min(max(number, 1), len(lesson.steps)) - 1


def _show_way_back(page: str) -> None:
    name = st.session_state.get(NAME)
    shelved = None if name is None or page == "lessons" else find(name)
    if shelved is None or (lesson := shelved.lesson) is None:
        return
    index = record(lesson).step
    with st.container(key="lesson-way-back", horizontal=True, vertical_alignment="center"):
        st.caption(position(lesson, index), width="content")
        if st.button(_("Back to the lesson"), key="lesson.return", icon=":material/school:"):
            go(lesson, index)
        if st.button(_("Leave the lesson"), key="lesson.leave", type="tertiary"):
            leave(lesson)


def position(lesson: Lesson, index: int) -> str:
    """Return which step of which lesson this is, as the reader sees it."""
    return _("{title} · step {n} of {last}").format(
        title=lesson.title.in_language(language()), n=index + 1, last=len(lesson.steps)
    )


def _show_step(lesson: Lesson, index: int) -> bool:
    step, kept = lesson.steps[index], record(lesson)
    question, tried = step.question, kept.tries.get(index, ())
    st.progress((index + 1) / len(lesson.steps), position(lesson, index))
    said, asked = (st.container(), None) if question is None else st.columns(2, gap="medium")
    say(step, said)
    asks = False
    chosen = None
    if question is not None and asked is not None:
        try:
            asks = not tried if not lesson.feedback else not is_settled(step, question, tried)
            with asked:
                if asks:
                    chosen = _ask(question, tried, (lesson.name, index))
                elif not lesson.feedback:
                    st.markdown(_("Your answer: {answer}").format(answer=_text(question, tried[0])))
                else:
                    _show_choices(step, question, tried)
            if not asks and lesson.feedback:
                with said:
                    show_answer(step, question, right=is_right(step, question, tried[-1]))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            st.error(_("This cannot be measured here: {reason}").format(reason=markdown_literal(str(error))))
    waits = not lesson.feedback or (asks and not tried and not step.reveal)
    if waits and lesson.feedback:
        st.caption(_("The page appears after you answer."))
    with st.container(horizontal=True):
        if asks:
            if st.button(_("Answer"), type="primary", disabled=chosen is None, key="lesson.answer"):
                assert chosen is not None  # the button is disabled until then
                _take(kept, lesson, index, chosen)
            if tried and st.button(_("Show the answer"), key="lesson.give_up"):
                _take(kept, lesson, index, GAVE_UP)
        _show_buttons(lesson, index)
    return waits


def is_settled(step: Step, question: Question, tried: tuple[int, ...]) -> bool:
    """Return whether a question was answered for good: rightly, twice, or where one other choice was left."""
    return bool(tried) and (len(tried) == 2 or len(question.choices) == 2 or is_right(step, question, tried[0]))


def _take(kept: Record, lesson: Lesson, index: int, choice: int) -> NoReturn:
    kept.tries[index] = (*kept.tries.get(index, ()), choice)
    go(lesson, index if lesson.feedback or index + 1 == len(lesson.steps) else index + 1)


def _text(question: Question, choice: int) -> str:
    return question.choices[choice].text.in_language(language())


def _ask(question: Question, tried: tuple[int, ...], key: tuple[str, int]) -> int | None:
    code = language()
    if tried:
        sentence = _("**Not “{choice}”.** Look at the page below, then choose once more.")
        st.markdown(sentence.format(choice=_text(question, tried[0])))
    left = {choice: _text(question, choice) for choice in range(len(question.choices)) if choice not in tried}
    marked: dict[tuple[str, int], int] = st.session_state.setdefault(_CHOSEN, {})
    chosen = st.radio(
        question.text.in_language(code),
        list(left),
        format_func=left.__getitem__,
        index=list(left).index(marked[key]) if marked.get(key) in left else None,
        key=f"lesson.choice.{key[0]}.{key[1]}.{len(tried)}.{code}",  # another language is another list
    )
    if chosen is not None:
        marked[key] = chosen
    return chosen


def _show_choices(step: Step, question: Question, tried: tuple[int, ...]) -> None:
    code = language()
    yours = {0: _("(your answer)"), 1: _("(your second answer)")}
    with st.container(key="lesson-choices"):
        st.markdown(f"**{question.text.in_language(code)}**")
        for index, choice in enumerate(question.choices):
            right = is_right(step, question, index)
            mark = "✓" if right else "✗" if index in tried else "·"
            said = yours[tried.index(index)] if index in tried else ""
            with nullcontext() if right or said else st.container(key=f"lesson-other-{index}"):
                st.markdown(f"{mark} {choice.text.in_language(code)} {said}".rstrip())


def say(step: Step, place: DeltaGenerator) -> None:
    """Show what a step says first; on a phone it gives way to the answer."""
    place.container(key="lesson-say").markdown(step.say.in_language(language()))


def found(step: Step, question: Question) -> str:
    """Return a sentence with what is measured for a question, in Markdown."""
    answer = told(question, measured(step, question.measure))
    if question.beside is None:
        return _("Measured just now: **{answer}**.").format(answer=answer)
    beside = _FORMATS[question.beside.kind](measured(step, question.beside))
    return _("Measured just now: **{answer}**; for comparison: {beside}.").format(answer=answer, beside=beside)


def show_answer(step: Step, question: Question, *, right: bool) -> None:
    """Show what was measured and why it is so, in green where the reader was right."""
    sentence = found(step, question)
    explained = "" if step.explain is None else " " + step.explain.in_language(language())
    with st.container(key="lesson-told"):
        (st.success if right else st.info)(sentence + explained)


def _show_buttons(lesson: Lesson, index: int) -> None:
    if st.button(_("Back"), disabled=index == 0, key="lesson.back"):
        go(lesson, index - 1)
    if index + 1 == len(lesson.steps):
        if st.button(_("Finish"), key="lesson.finish"):
            leave(lesson, finished=True)
    elif st.button(_("Next step"), key="lesson.next"):
        go(lesson, index + 1)
    if st.button(_("Set up again"), key="lesson.again", help=_("Show the page as this step set it up.")):
        go(lesson, index)
    out = _("Back to writing") if lesson.name == draft.NAME else _("Leave the lesson")
    if st.button(out, key="lesson.leave", type="tertiary"):
        leave(lesson)
