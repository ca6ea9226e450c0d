"""Starting a class on a lesson, and joining one by its code."""

from __future__ import annotations

import sqlite3

import streamlit as st

from pages.classes import panel, seat
from pages.classes.codes import as_typed
from pages.classes.records import Full
from pages.classes.seat import Place
from pages.common import link, stages
from pages.common.text import _
from pages.lessons.lesson import Lesson
from pages.live.classroom import refusals

_TYPED = "lessons.code"


def show_start(lesson: Lesson) -> None:
    """Show the button that opens a class, for the teacher."""
    if not st.button(_("Start a class"), icon=":material/groups:", key=f"lessons.class.{lesson.name}"):
        return
    try:
        code = seat.start(lesson)
    except Full:
        st.error(_("This server has no room for another class. Old ones are deleted from time to time."))
    except (sqlite3.Error, OSError, ValueError):
        st.error(_("Classes cannot be kept on this server now. Its log says why."))
    else:
        link.go(stages.script("lessons"), {panel.CODE: code, panel.AT: "lobby"})


def show_field() -> None:
    """Show the field for a class's code."""
    with st.form("lessons.join", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        typed = st.text_input(
            _("Code of a class"),
            key=_TYPED,
            max_chars=20,
            placeholder=_("Code of a class"),
            label_visibility="collapsed",
            width=160,
        )
        pressed = st.form_submit_button(_("Join the class"))
    if pressed and typed:
        found = seat.take(as_typed(typed), None)
        if isinstance(found, Place):
            panel.go(found)
        st.error(refusals().get(found) or _("Classes cannot be kept on this server now. Its log says why."))
