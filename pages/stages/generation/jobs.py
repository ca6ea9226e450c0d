"""Long work of this page: begun with a button, done in a thread, shown as far as it has come, kept for the session."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

import streamlit as st

from lmcore.worker import Worker, each_of
from pages.common import page, session
from pages.common.text import _

_JOBS = "generation.jobs"  # (name, what it was asked) -> the work, the latest last
_MAX_JOBS = 12
_REFRESH = 0.3  # seconds between two looks at how far the work is
_REDRAW = 1.2  # seconds between two pictures: drawing one takes time from the work itself, as threads share Python
_AT_ONCE = 0.4  # seconds; what is done by then never shows a bar

Question = Hashable


def find(name: str, question: Question) -> Worker[Any] | None:
    """Return the work that answers a question, finished or not."""
    return st.session_state.get(_JOBS, {}).get((name, question))


def start(name: str, question: Question, work: Callable[[], Iterator[Any]], own_lock: bool = False) -> Worker[Any]:
    """Begin to answer a question; work under the same name that is still running stops.

    The lock of forward passes is held while each item is computed, unless the work takes it by itself.
    """
    jobs: dict[tuple[str, Question], Worker[Any]] = st.session_state.setdefault(_JOBS, {})
    for (other, _question), job in jobs.items():
        if other == name:
            job.stop()
    jobs.pop((name, question), None)
    job = jobs[name, question] = Worker(
        each_of(work, None if own_lock else session.forward_lock()), name="generation", keep=1
    )
    for old in list(jobs)[:-_MAX_JOBS]:
        jobs.pop(old).stop()
    return job


def _begin(name: str, question: Question, work: Callable[[], Iterator[Any]], own_lock: bool) -> None:
    start(name, question, work, own_lock)


def button(
    name: str,
    question: Question,
    label: str,
    work: Callable[[], Iterator[Any]],
    *,
    at_once: bool,
    own_lock: bool = False,
) -> None:
    """Show the button that begins the work, or stops it.

    Args:
        name: of this kind of work; unique on the page.
        question: everything the answer depends on.
        label: what the button says.
        work: makes the iterator that does it.
        at_once: begin without being asked, for work that takes no time worth waiting for.
        own_lock: the work takes the lock of forward passes by itself, where it needs it.
    """
    job = find(name, question)
    if job is None and at_once:
        job = start(name, question, work, own_lock)
        job.join(_AT_ONCE)
    if job is not None and job.running:
        st.button(_("Stop"), key=f"generation.{name}.stop", icon=":material/stop:", on_click=job.stop, width="stretch")
        return
    st.button(
        label,
        key=f"generation.{name}.start",
        icon=":material/play_arrow:",
        type="secondary" if job is not None else "primary",
        on_click=_begin,
        args=(name, question, work, own_lock),
        width="stretch",
    )


def show(name: str, question: Question, share: Callable[[Any], float], draw: Callable[[Any, bool], None]) -> None:
    """Draw what the work has found, again and again until it has ended.

    Args:
        name, question: as given to `button`.
        share: how much of it is done, from 0 to 1, given what is known so far.
        draw: draws what is known so far; it is also told whether that is all.
    """
    job = find(name, question)
    if job is not None:
        at_work = job.running
        st.fragment(_tell, run_every=_REFRESH if at_work else None)(job, at_work, share)
        st.fragment(_picture, run_every=_REDRAW if at_work else None)(job, draw)


def _tell(job: Worker[Any], was_running: bool, share: Callable[[Any], float]) -> None:
    at_work, latest = job.running, job.latest
    if was_running and not at_work:
        st.rerun()  # the whole page: the button and what follows the picture have to know
    if at_work:
        done = 0.0 if latest is None else min(max(share(latest), 0.0), 1.0)
        st.progress(done, text=_("Working: {percent} %").format(percent=round(100 * done)))
    elif job.error is not None:
        st.error(_("This could not be finished; the results so far are shown."))
        page.failure(job.error)
    elif job.state != "finished":
        st.caption(_("Stopped early; the results so far are shown."))


def _picture(job: Worker[Any], draw: Callable[[Any, bool], None]) -> None:
    at_work, latest = job.running, job.latest  # in this order: what has ended is drawn whole
    if latest is not None:
        draw(latest, not at_work)
