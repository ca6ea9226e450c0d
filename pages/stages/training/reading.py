"""Readings that take long on a large model: in a thread, one pass at a time, with progress and a Stop button."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from lmcore.worker import Worker
from pages.common import page
from pages.common.text import _

_PATIENCE = 2.0  # seconds in which a small model is done, and nothing has to move on screen
_REFRESH = 1.0  # seconds between two looks


def results_of(reading: Worker[Any], key: str, again: Callable[[], None]) -> list[Any] | None:
    """Return a reading's results when all are there; until then show how far it is, and None.

    Args:
        reading: at work, or done.
        key: unique on the page.
        again: forgets a reading that was stopped, so that the next run starts it anew.
    """
    reading.join(_PATIENCE)
    if reading.state == "finished":
        return reading.items
    if reading.running:
        st.fragment(_wait, run_every=_REFRESH)(reading, key)
    elif reading.error is not None:
        st.error(_("It failed"))
        page.failure(reading.error)
    else:
        st.info(_("Stopped"))
        st.button(_("Start again"), key=f"{key}.again", on_click=again)
    return None


def _wait(reading: Worker[Any], key: str) -> None:
    done = len(reading.items)
    st.progress(
        done / reading.total,
        text=_("Computing on this model's weights: {done} of {total}").format(done=done, total=reading.total),
    )
    st.button(_("Stop"), key=f"{key}.stop", on_click=reading.stop)
    if not reading.running:
        st.rerun()
