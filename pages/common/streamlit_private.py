"""What the explorer takes from Streamlit and Plotly that they do not promise to keep.

Each function says what it is for and what to do when the name has moved; tests/pages/common/test_streamlit_private.py
tries each. Nothing else in `pages` imports a private name, which a test of the house rules checks.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from plotly.basedatatypes import BaseFigure
from streamlit.runtime import Runtime
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner import add_script_run_ctx, get_script_run_ctx

from lmcore.checkpoints.heap import trim_heap

T = TypeVar("T")


def look_for_no_older_pages() -> None:
    """Stop Streamlit from looking in the folder `pages` for its older kind of pages.

    Otherwise who opens a link as the first visitor of a fresh server is told that the page does not exist. Without
    this name: rename the folder.
    """
    PagesManager.uses_pages_directory = False


def in_a_session() -> bool:
    """Return whether the code runs for a reader. Without this name: answer False when `st.session_state` is empty."""
    return get_script_run_ctx(suppress_warning=True) is not None


def in_this_session(made: Callable[[], T]) -> Callable[[], T]:
    """Return `made` for a thread that has no session: it then finds the session it was given in.

    Streamlit makes a file to be saved in such a thread, where `st.session_state` is empty and the language unknown.
    Without these names: make each file when its button is drawn.
    """
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return made

    def made_in_session() -> T:
        with ThreadPoolExecutor(1, initializer=lambda: add_script_run_ctx(ctx=context)) as thread:
            return thread.submit(made).result()

    return made_in_session


def session_storage() -> MemorySessionStorage | None:
    """Return where the running server keeps the sessions of readers who have left; None without a server.

    Without these names: drop `forget_ended`. Streamlit then lets go of a session when the next reader leaves.
    """
    if not Runtime.exists():
        return None
    return Runtime.instance()._session_mgr._session_storage  # type: ignore[attr-defined]


def forget_ended(sessions: MemorySessionStorage) -> int:
    """Let go of the sessions whose readers have been away too long to come back; return how many."""
    ended = len(sessions._cache.expire())  # type: ignore[attr-defined]
    if ended:
        gc.collect()  # a session refers to itself
        trim_heap()  # its logits and caches lie among what others hold: 17 MB each of a large vocabulary
    return ended


class PlainFigure(BaseFigure):
    """A figure that `st.plotly_chart` sends as it is: a dict it would first check property by property, at every run.

    Streamlit asks whether it is Plotly's figure, and for `to_dict`. When that changes, give the dict.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        object.__setattr__(self, "_spec", spec)

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as it was given."""
        return self._spec
