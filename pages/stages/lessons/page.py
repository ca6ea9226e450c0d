"""Lessons to follow, what a reader has answered, what a teacher needs, and how to write one."""

from __future__ import annotations

import streamlit as st

from pages.common import link, page, widgets
from pages.common.text import _, language, ngettext, readable
from pages.lessons import panel, record
from pages.lessons.lesson import Lesson
from pages.lessons.reading import FOLDER_VARIABLE
from pages.lessons.shelf import Shelved, shelf
from pages.stages.lessons import answers, classes, sheets, writing


def _show(shelved: Shelved, teaches: bool) -> None:
    with st.container(border=True, key=f"lessons.{shelved.name}"):
        if shelved.lesson is not None:
            _show_lesson(shelved.lesson, teaches)
            return
        panel.say_broken(shelved)
        if teaches:
            st.text("\n".join(f"• {readable(problem)}" for problem in shelved.problems))


def _show_lesson(lesson: Lesson, teaches: bool) -> None:
    kept = record.record(lesson)
    about, buttons = st.columns([4, 1], vertical_alignment="center")
    steps, done = len(lesson.steps), len(kept.tries)
    told = ngettext("{n} step", "{n} steps", steps).format(n=steps)
    if done:
        told += " · " + ngettext("{n} question answered", "{n} questions answered", done).format(n=done)
    with about:
        st.markdown(f"**{lesson.title.in_language(language())}**  \n{lesson.about.in_language(language())} {told}")
    with buttons:
        if not done and not kept.step:
            if st.button(_("Start"), key=f"lessons.start.{lesson.name}", width="stretch"):
                panel.go(lesson, 0)
        else:
            go_on = _("Go on at step {n}").format(n=kept.step + 1)
            if st.button(go_on, type="primary", key=f"lessons.go_on.{lesson.name}", width="stretch"):
                panel.go(lesson, kept.step)
            if st.button(_("Start again"), key=f"lessons.again.{lesson.name}", width="stretch"):
                record.forget(lesson)
                panel.go(lesson, 0)
    if done:
        with st.expander(_("Your answers"), expanded=st.session_state.get(panel.SHOWN) == lesson.name):
            answers.show(lesson)
    if teaches:
        with st.container(horizontal=True, vertical_alignment="center"):
            classes.show_start(lesson)
            sheets.show_choice(lesson)


page.header(
    _("Lessons"),
    _("Each step sets up a page and asks what will happen. After you answer, the model computes the correct answer."),
)
link.remember(panel.SHOWN, None)
sheet = sheets.chosen()
if sheet is not None:
    sheets.show(*sheet)
else:
    with st.container(horizontal=True, vertical_alignment="center", key="lessons.top"):
        teaches = widgets.toggle(
            "lessons.teacher",
            _("For the teacher"),
            help=_("Start a class, print pages with the answers, write a lesson, see what is wrong with one."),
        )
        classes.show_field()
    views = {"list": _("All lessons"), "write": _("Write your own")}
    if teaches and widgets.views("lessons.view", views, 2) == "write":
        writing.show()
        st.caption(
            _(
                "A lesson is a TOML file. Put it into the folder that `{variable}` named when the server was started. "
                "It appears here the next time this page is opened. `python -m pages.lessons check FILE` says in a "
                "terminal what is wrong with one."
            ).format(variable=FOLDER_VARIABLE)
        )
    else:
        for each in shelf():
            _show(each, teaches)
