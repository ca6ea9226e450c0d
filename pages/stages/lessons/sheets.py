"""Pages of a lesson to print: the teacher's guide, a worksheet, and its key, computed when they are shown."""

from __future__ import annotations

from string import ascii_uppercase

import streamlit as st

from pages.common import link, page
from pages.common.text import _, language, ngettext
from pages.lessons.lesson import Lesson, Question, Step
from pages.lessons.misconceptions import misconceptions
from pages.lessons.panel import found, is_right
from pages.lessons.reading import MAX_CHOICES
from pages.lessons.shelf import find

_SHEET, _OF = "lessons.sheet", "lessons.of"
_LETTERS = ascii_uppercase[:MAX_CHOICES]
_MINUTES = 4  # of a step that does not say


def titles() -> dict[str, str]:
    """Return the sheets by name."""
    return {"guide": _("Teacher's guide"), "worksheet": _("Worksheet"), "key": _("Answer key")}


def show_choice(lesson: Lesson) -> None:
    """Show what can be printed of a lesson, as links."""
    for name, title in titles().items():
        page.follow(page.Suggestion(title, "lessons", {_SHEET: name, _OF: lesson.name}))


def chosen() -> tuple[str, Lesson] | None:
    """Return the sheet that the address names and its lesson, None when it names none."""
    sheet, of = link.remember(_SHEET, None), link.remember(_OF, None)
    shelved = find(of) if sheet in titles() and of is not None else None
    return None if shelved is None or shelved.lesson is None else (sheet, shelved.lesson)


def show(sheet: str, lesson: Lesson) -> None:
    """Show a sheet."""
    if st.button(_("All lessons"), icon=":material/arrow_back:", key="lessons.all"):
        st.session_state.update({_SHEET: None, _OF: None})
        st.rerun()
    with st.container(key="lessons-sheet"):
        st.subheader(f"{lesson.title.in_language(language())} · {titles()[sheet]}", anchor=False)
        {"guide": _guide, "worksheet": _worksheet, "key": _key}[sheet](lesson)


def _guide(lesson: Lesson) -> None:
    code = language()
    if lesson.aim is not None:
        st.markdown(_("**Aim.** {text}").format(text=lesson.aim.in_language(code)))
    total = sum(step.minutes or _MINUTES for step in lesson.steps)
    st.markdown(ngettext("**Time.** {n} minute.", "**Time.** {n} minutes.", total).format(n=total))
    for index, step in enumerate(lesson.steps):
        minutes = step.minutes or _MINUTES
        head = ngettext("Step {step} · {n} minute", "Step {step} · {n} minutes", minutes)
        st.markdown(f"#### {head.format(step=index + 1, n=minutes)}")
        st.markdown(step.say.in_language(code))
        if step.question is not None:
            if step.question.purpose is not None:
                st.markdown(_("**Purpose.** {text}").format(text=step.question.purpose.in_language(code)))
            st.markdown(f"**{step.question.text.in_language(code)}**")
            st.markdown(_choices(step.question, with_beliefs=True))
            st.markdown(_right(step, step.question))
        if step.ask is not None:
            st.markdown(_("**Ask.** {text}").format(text=step.ask.in_language(code)))
        if step.explain is not None:
            st.markdown(_("**Explain.** {text}").format(text=step.explain.in_language(code)))
    believed = {choice.misconception for question in lesson.questions.values() for choice in question.choices}
    listed = [each for name, each in misconceptions().items() if name in believed]
    if listed:
        st.markdown("#### " + _("What students may believe, and how to answer"))
        st.markdown(
            "\n".join(f"- **{each.belief.in_language(code)}** {each.answer.in_language(code)}" for each in listed)
        )


def _worksheet(lesson: Lesson) -> None:
    st.markdown(_("Name: ____________________ Date: ____________"))
    code = language()
    for n, (index, question) in enumerate(lesson.questions.items(), 1):
        with st.container(key=f"sheet-question-{n}"):
            said = f"{lesson.steps[index].say.in_language(code)}  \n" if lesson.feedback else ""
            st.markdown(f"**{n}.** {said}**{question.text.in_language(code)}**")
            st.markdown(_choices(question))
            st.markdown(_("Why? ______________________________________________"))


def _key(lesson: Lesson) -> None:
    code = language()
    st.caption(_("Computed just now from the models of this server."))
    for n, (index, question) in enumerate(lesson.questions.items(), 1):
        step = lesson.steps[index]
        explained = "" if step.explain is None else "  \n" + step.explain.in_language(code)
        st.markdown(f"**{n}.** {_right(step, question)}{explained}")


def _right(step: Step, question: Question) -> str:
    right = next(at for at in range(len(question.choices)) if is_right(step, question, at))
    return f"**{_LETTERS[right]}** {question.choices[right].text.in_language(language())}  \n{found(step, question)}"


def _choices(question: Question, *, with_beliefs: bool = False) -> str:
    code = language()
    lines = []
    for letter, choice in zip(_LETTERS, question.choices, strict=False):
        line = f"{letter}. {choice.text.in_language(code)}"
        if with_beliefs and choice.misconception is not None:
            line += f" — *{misconceptions()[choice.misconception].belief.in_language(code)}*"
        lines.append(line)
    return "  \n".join(lines)
