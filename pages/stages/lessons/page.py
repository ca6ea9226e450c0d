"""Lessons to follow, and how to write one."""

from __future__ import annotations

import streamlit as st

from pages.common import page
from pages.common.text import _, language, markdown_literal, ngettext
from pages.lessons import panel
from pages.lessons.lesson import FOLDER_VARIABLE, OWN, LessonError, files, read

page.header(
    _("Lessons"),
    _("Each step sets up a page and asks what will happen. After you answer, the model computes the correct answer."),
)
for file in files():
    try:
        lesson = read(file)
    except LessonError as error:
        st.error(markdown_literal(str(error)))
        continue
    with st.container(border=True, key=f"lessons.{lesson.name}"):
        about, start = st.columns([4, 1], vertical_alignment="center")
        about.subheader(lesson.title.in_language(language()), anchor=False)
        about.markdown(lesson.about.in_language(language()))
        answered, steps = len(panel.answers(lesson)), len(lesson.steps)
        told = ngettext("{n} step", "{n} steps", steps).format(n=steps)
        if answered:
            told += " · " + ngettext("{n} question answered", "{n} questions answered", answered).format(n=answered)
        about.caption(told)
        if start.button(_("Start"), type="primary", key=f"lessons.start.{lesson.name}", width="stretch"):
            panel.go(lesson, 0)
st.subheader(_("Write your own"), anchor=False)
st.markdown(
    _(
        "A lesson is a TOML file. Put it into the folder that `{variable}` named when the server was started. "
        "It appears here the next time this page is opened. This is the first step of the lesson above:"
    ).format(variable=FOLDER_VARIABLE)
)
st.code((OWN / "tour.toml").read_text("utf-8").split("\n[[steps]]")[1].join(["[[steps]]", ""]), language="toml")
