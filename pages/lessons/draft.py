"""The lesson that a teacher is writing: its tables, as a file has them, in the session, and in the browser's tab."""

from __future__ import annotations

import contextlib
import tomllib
from typing import Any

import streamlit as st

from pages.common import link, stages
from pages.common.text import _, ngettext
from pages.lessons.lesson import Lesson
from pages.lessons.reading import lesson_of
from pages.lessons.toml import as_toml
from pages.live.kept_text import kept_text

NAME = "~draft"
"""What the draft is called in the address of its writer, who goes through it as a student; no file is called so."""

_DRAFT, _VERSION, _BEGUN = "lessons.draft", "lessons.draft.version", "lessons.draft.begun"
_OTHERS = {"lang", "present", "lesson", "lesson.step", "class", "class.at"}  # in an address, and no page's own
MOST_STEPS = 60
MOST_BYTES = 200_000


def draft() -> dict[str, Any]:
    """Return the tables; they are changed in place."""
    return st.session_state.setdefault(_DRAFT, {"title": "", "steps": []})


def as_lesson() -> Lesson:
    """Return the draft as a lesson; whether it can be followed is not checked yet.

    Raises:
        LessonError: with a sentence for each step that cannot be used.
    """
    return lesson_of(NAME, draft())


def version() -> int:
    """Return a number that changes when the whole draft does: widgets that show it get new keys."""
    return st.session_state.setdefault(_VERSION, 0)


def replace(tables: dict[str, Any]) -> None:
    """Write another lesson."""
    st.session_state[_DRAFT] = tables
    renew()


def renew() -> None:
    """Let all widgets show what the draft says now."""
    st.session_state[_VERSION] = version() + 1


def opened(content: bytes) -> dict[str, Any]:
    """Return the tables of a file.

    Raises:
        ValueError: a sentence, for what is no lesson's file.
    """
    if len(content) > MOST_BYTES:
        raise ValueError(
            _("The file has {n:,} bytes; a lesson may have {most:,}.").format(n=len(content), most=MOST_BYTES)
        )
    try:
        tables = tomllib.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(_("The file is not TOML: {reason}").format(reason=error)) from error
    steps = tables.get("steps")
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        raise ValueError(_("The file has no [[steps]], so it is not a lesson to edit."))
    if len(steps) > MOST_STEPS:
        raise ValueError(_("The lesson has {n} steps; it may have {most}.").format(n=len(steps), most=MOST_STEPS))
    return tables


def keep(key: str) -> None:
    """Let the tab keep the draft, after it may have changed; a session that has none takes what the tab has.

    Args:
        key: of the part that does so, one for each place.
    """
    begun = st.session_state.get(_BEGUN, False) or bool(draft()["steps"])
    st.session_state[_BEGUN] = begun
    kept_text(key, "lesson-draft", as_toml(draft()), restores=not begun, on_kept=_restore)


def _restore(kept: str) -> None:
    steps = draft()["steps"]
    with contextlib.suppress(ValueError):  # a tab has what its user put there
        tables = opened(kept.encode("utf-8", "replace"))
        replace({**tables, "steps": [*tables["steps"], *steps][:MOST_STEPS]})


def page_as_step() -> dict[str, Any]:
    """Return the page that the reader is on, as it is now, as a step.

    The prompt and the model are always in it: what a first visit has differs by language and by server.
    """
    path = str(st.context.url or "").partition("?")[0].rstrip("/").rpartition("/")[2]
    state = {name: str(st.session_state[name]) for name in ("prompt", "model")}
    state |= {key: text for key, text in link.moved().items() if key not in _OTHERS}
    return {"page": path if path in stages.names() else "overview", "state": state, "say": ""}


def show_add() -> None:
    """Show the button that makes the page a step of the lesson that is being written."""
    steps = draft()["steps"]
    if st.button(_("Add this page as a step of a lesson"), icon=":material/playlist_add:", key="lessons.add"):
        if len(steps) >= MOST_STEPS:
            st.error(_("The lesson has {n} steps; it may have {most}.").format(n=len(steps), most=MOST_STEPS))
        else:
            steps.append(page_as_step())
            renew()
    keep("lessons.keep.added")
    if steps:
        told = ngettext("Your lesson has {n} step.", "Your lesson has {n} steps.", len(steps)).format(n=len(steps))
        st.caption(told + " " + _("Write it on the page *Lessons*, under *For the teacher*."))
