"""The class above the page: to a student the question, to the teacher the answers and what leads on.

Where the class is stands in the address beside its code. When it is elsewhere, the page goes there: a step's own page
in the step's state, as in a lesson that is followed alone.
"""

from __future__ import annotations

from typing import NoReturn
from urllib.parse import urlencode

import streamlit as st

from pages.classes import seat, teaching
from pages.classes.codes import as_shown
from pages.classes.records import LOBBY
from pages.classes.seat import Place
from pages.common import link, stages
from pages.common.text import _, language
from pages.lessons import panel
from pages.lessons.lesson import Lesson
from pages.lessons.shelf import Shelved, find
from pages.live.classroom import Seat, classroom, refusals

CODE, AT = "class", "class.at"
_PLACE = "class.place"  # of this run


def go(place: Place) -> NoReturn:
    """Open the class where it is."""
    page = "lessons" if place.step is None else place.step.page
    link.go(stages.script(page), {CODE: place.room.code, AT: place.at})


def attends() -> bool:
    """Return whether this session is in a class, or its address names one."""
    return CODE in st.query_params or st.session_state.get(CODE) is not None


def shared() -> tuple[str, ...]:
    """Return which parameters a shared address has: in a class its code alone."""
    return (CODE,) if CODE in st.query_params else ()


def begin() -> None:
    """At the start of a run: take the place in the class that the address names, and the values of its step."""
    state, query = st.session_state, st.query_params
    if CODE not in query:
        return
    state[_PLACE] = place = seat.take(query[CODE], query.get(AT))
    if CODE in state and (query[CODE], query.get(AT)) != (state[CODE], state.get(AT)):
        link.take_address()  # the browser's Back or Forward
    if CODE not in state and isinstance(place, Place) and place.step is not None and query.get(AT) == place.at:
        panel.set_up(place.step, shown=place.shown)


def show(page: str) -> bool:
    """Show the class; return whether the page below is to wait.

    Args:
        page: the page below, such as "sampling".
    """
    if CODE not in st.query_params:
        _show_way_back()
        return False
    given = link.remember(CODE, None)
    link.remember(AT, None)
    place = st.session_state[_PLACE]
    if not isinstance(place, Place):
        link.replace(CODE, None, given)
        _refuse(place)
        return True
    if place.step is not None and (page != place.step.page or st.query_params.get(AT) != place.at):
        go(place)
    st.session_state[AT] = place.at
    with st.container(key="lesson", border=True):
        if place.room.ended:
            _show_end(place)
        elif place.room.step == LOBBY:
            _show_lobby(place)
        elif place.lesson is None or (shelved := find(place.lesson.name)) is None or shelved.lesson is None:
            panel.say_broken(Shelved(place.room.lesson, None))
            classroom(place.room.code, _seat(place))
            if place.teaches:
                teaching.show_menu(place)
        else:
            return _show_step(place, place.lesson)
    return True


def _refuse(reason: str) -> None:
    st.error(refusals().get(reason) or _("Classes cannot be kept on this server now. Its log says why."))


def _show_way_back() -> None:
    place = seat.current()
    if place is None:
        return
    with st.container(key="lesson-way-back", horizontal=True, vertical_alignment="center"):
        st.caption(_("Class {code}").format(code=as_shown(place.room.code)), width="content")
        if st.button(_("Back to the class"), key="class.return", icon=":material/groups:"):
            found = seat.take(place.room.code, st.session_state.get(AT))
            if isinstance(found, Place):
                go(found)
            _refuse(found)
        if st.button(_("Leave the class"), key="class.leave", type="tertiary"):
            _leave()


def _leave() -> NoReturn:
    seat.leave()
    st.session_state.update({CODE: None, AT: None})
    link.go(stages.script("lessons"), {})


def address(code: str) -> str:
    """Return the address by which students join."""
    origin = str(st.context.url or "http://localhost:8501/").partition("?")[0]
    return f"{origin}?{urlencode({CODE: code, 'lang': language()})}"


def _seat(place: Place) -> Seat:
    question, step = place.question, place.step
    right, beliefs = None, []
    if question is not None and step is not None and place.shown:
        right = panel.right_choice(step, question)
        beliefs = [panel.belief(choice) for choice in question.choices] if place.teaches else []
    return Seat(
        hello={"teacher" if place.teaches else "student": place.secret},
        code="" if place.room.step == LOBBY else as_shown(place.room.code),
        turn=place.room.turn,
        lesson="" if place.lesson is None else place.lesson.name,
        step=place.index,
        teaches=place.teaches,
        own=place.room.pace == "own",
        tells=place.lesson is not None and place.lesson.feedback,
        question="" if question is None else question.text.in_language(language()),
        choices=[] if question is None else [choice.text.in_language(language()) for choice in question.choices],
        vote=place.vote,
        shown=place.closed,
        right=right,
        beliefs=beliefs,
    )


def _show_lobby(place: Place) -> None:
    if place.teaches:
        teaching.show_lobby(place, address(place.room.code), lambda: classroom(place.room.code, _seat(place)))
        return
    st.markdown(_("**You are in the class {code}.** It begins soon.").format(code=as_shown(place.room.code)))
    _say_name(place)
    classroom(place.room.code, _seat(place))


def _show_end(place: Place) -> None:
    if place.teaches:
        teaching.show_end(place)
    else:
        st.markdown(_("**The class {code} has ended.**").format(code=as_shown(place.room.code)))
        _say_name(place)
    if st.button(_("Leave the class"), key="class.leave"):
        _leave()


def _say_name(place: Place) -> None:
    st.caption(
        _("Nobody asks who you are: your answers are kept under the random name {name}.").format(name=place.name)
    )


def _show_step(place: Place, lesson: Lesson) -> bool:
    step, question = lesson.steps[place.index], place.question
    st.progress((place.index + 1) / len(lesson.steps), panel.position(lesson, place.index))
    said, asked = st.columns(2, gap="medium")
    panel.say(step, said)
    with asked:
        classroom(place.room.code, _seat(place))
    if question is not None and place.shown:
        with said:
            right = place.vote is not None and panel.is_right(step, question, place.vote)
            panel.show_answer(step, question, right=right and not place.teaches)
    waits = not lesson.feedback or (question is not None and not place.closed and not step.reveal)
    if waits and lesson.feedback:
        st.caption(_("The page appears with the answer."))
    if place.teaches:
        teaching.show_controls(place, lesson, address(place.room.code))
    elif place.room.pace == "own":
        _show_own_way(place, lesson)
    return waits


def _show_own_way(place: Place, lesson: Lesson) -> None:
    def open_step(index: int) -> NoReturn:
        link.go(
            stages.script(lesson.steps[index].page),
            {CODE: place.room.code, AT: f"{lesson.name}.{index + 1}"},
        )

    with st.container(horizontal=True):
        if st.button(_("Back"), disabled=place.index == 0, key="class.back"):
            open_step(place.index - 1)
        if st.button(_("Next step"), disabled=place.index + 1 == len(lesson.steps), key="class.next"):
            open_step(place.index + 1)
