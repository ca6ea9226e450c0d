"""What only a class's teacher has: leading on, the answer, the code for all to see, the tables, the end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import streamlit as st

from pages.classes import operator, tables
from pages.classes.codes import as_shown
from pages.classes.records import NoClass, NotTeacher
from pages.classes.seat import Place
from pages.classes.store import KEPT_DAYS
from pages.common import page, share
from pages.common.text import _, language, ngettext
from pages.lessons import panel
from pages.lessons.lesson import Lesson
from pages.lessons.reading import LessonError, files, read
from pages.lessons.shelf import find


def show_lobby(place: Place, address: str, here: Callable[[], None]) -> None:
    """Show how students join, who is here, and the button that begins."""
    code, told = st.columns([1, 1], vertical_alignment="center")
    with code:
        share.show_code(address)
    with told:
        st.markdown(_("### Class {code}").format(code=as_shown(place.room.code)))
        st.markdown(_("Open this address, or scan the code. No account, no name."))
        share.show_address(address)
        here()
        _show_pace(place)
        shelved = find(place.room.lesson)
        if shelved is not None and shelved.lesson is not None:
            begin = _("Begin: {title}").format(title=shelved.lesson.title.in_language(language()))
            st.button(begin, type="primary", key="class.begin", on_click=lambda: _go(place, step=0))


def show_controls(place: Place, lesson: Lesson, address: str) -> None:
    """Show what leads the class on."""
    with st.container(horizontal=True, vertical_alignment="center"):
        first, last = place.index == 0, place.index + 1 == len(lesson.steps)
        asks = place.question is not None and lesson.feedback and not place.shown
        st.button(_("Back"), key="class.back", disabled=first, on_click=lambda: _go(place, step=place.index - 1))
        if asks:
            show = _("Reveal the answer")
            st.button(show, key="class.reveal", type="primary", on_click=lambda: _do(place, operator.store().reveal))
        st.button(_("Next step"), key="class.next", disabled=last, on_click=lambda: _go(place, step=place.index + 1))
        if st.button(_("Join"), icon=":material/qr_code:", key="class.join"):
            st.dialog(_("Join the class {code}").format(code=as_shown(place.room.code)), width="large")(_show_way_in)(
                address
            )
        show_menu(place)


def _show_way_in(address: str) -> None:
    code, told = st.columns([3, 2], vertical_alignment="center")
    with code:
        share.show_code(address)
    with told:
        share.show_address(address)


def show_menu(place: Place) -> None:
    """Show the button that opens the pace, the lessons, the tables and the end."""
    if st.button(_("Class"), icon=":material/groups:", key="class.menu"):
        st.dialog(_("Class {code}").format(code=as_shown(place.room.code)))(_show_menu)(place)


def _show_menu(place: Place) -> None:
    _show_pace(place)
    _show_lessons(place)
    show_tables(place)
    st.caption(_say_kept())
    if st.button(_("End the class"), key="class.end", help=_("Nobody can join or answer any more.")):
        _do(place, operator.store().end)
        st.rerun()


def show_end(place: Place) -> None:
    """Show what was answered, and the tables to save."""
    st.markdown(_("**The class {code} has ended.**").format(code=as_shown(place.room.code)))
    st.caption(_say_kept())
    show_tables(place)


def show_tables(place: Place) -> None:
    """Show the buttons that save what the class answered."""
    code = place.room.code
    votes = operator.store().votes(code)
    students = len({vote.name for vote in votes})
    if not votes:
        st.caption(_("Nobody has answered yet."))
        return
    st.caption(ngettext("{n} student has answered.", "{n} students have answered.", students).format(n=students))

    def lessons() -> dict[str, Lesson]:
        names = {vote.lesson for vote in operator.store().votes(code)}
        found = {name: shelved.lesson for name in names if (shelved := find(name)) is not None}
        return {name: lesson for name, lesson in sorted(found.items()) if lesson is not None}

    def saved(made: Callable[..., pd.DataFrame]) -> Callable[[], bytes]:
        return lambda: page.as_csv(made(operator.store().votes(code), lessons(), language(), panel.right_choice))

    page.download(_("Answers to each question"), f"class-{code}-answers.csv", saved(tables.answers))
    page.download(_("Each student's answers"), f"class-{code}-students.csv", saved(tables.students))
    answered = {vote.lesson for vote in votes}
    if any(lesson.steps_of in answered for lesson in lessons().values()):
        page.download(_("Before and after"), f"class-{code}-before-after.csv", saved(tables.before_and_after))


def _show_pace(place: Place) -> None:
    names = {"teacher": _("Everybody at my step"), "own": _("Each at their own pace")}
    chosen = st.segmented_control(
        _("Pace"),
        list(names),
        default=place.room.pace,
        format_func=names.__getitem__,
        required=True,
        key=f"class.pace.{place.room.turn}",
    )
    if chosen != place.room.pace:
        _go(place, pace=chosen)
        st.rerun()


def _show_lessons(place: Place) -> None:
    listed = dict(_lessons())
    chosen = st.selectbox(
        _("Another lesson with this class"),
        list(listed),
        index=list(listed).index(place.room.lesson) if place.room.lesson in listed else None,
        format_func=lambda name: listed[name].title.in_language(language()),
        key=f"class.lesson.{place.room.turn}",
    )
    if chosen not in (None, place.room.lesson):
        _go(place, lesson=chosen)
        st.rerun()


def _lessons() -> Iterator[tuple[str, Lesson]]:
    """Give the server's lessons as they were read: what is wrong with one is said when the class comes to it."""
    for path in files():
        with contextlib.suppress(LessonError):
            yield path.stem, read(path)


def _say_kept() -> str:
    if operator.is_kept():
        return _("An ended class is deleted after {n} days. Save the tables before then.").format(n=KEPT_DAYS)
    return _(
        "An ended class is deleted after {n} days, and every class when the server stops. Save the tables before then."
    ).format(n=KEPT_DAYS)


def _go(place: Place, **where: Any) -> None:
    _do(place, operator.store().go, **where)


def _do(place: Place, change: Callable[..., None], **how: Any) -> None:
    """In a callback: change the class, unless it has ended elsewhere, which the run that follows says."""
    with contextlib.suppress(NotTeacher, NoClass):
        change(place.room.code, place.secret, **how)
