"""Each private name is where the app takes it from: one that fails has moved, and its function says what to do."""

from __future__ import annotations

import ctypes
import inspect
import json
import sys
import weakref

import pytest
from streamlit.runtime import Runtime
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.runtime import RuntimeConfig
from streamlit.runtime.session_manager import SessionInfo
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager
from streamlit.testing.v1 import AppTest

from pages.common.streamlit_private import forget_ended, in_a_session, look_for_no_older_pages
from tests.bench.models import resident
from tests.pages.harness import ROOT


class Ended:
    """What a session manager keeps of a reader who has left; it refers to itself, as a session does."""

    id = "left"

    def __init__(self) -> None:
        self.myself = self
        self.held: list[bytes] = []


def test_a_session_is_gone_when_its_time_is_over_and_nobody_else_leaves() -> None:
    for seconds, expected in ((-1, 1), (100, 0)):
        storage, session = MemorySessionStorage(ttl_seconds=seconds), Ended()
        storage.save(SessionInfo(client=None, session=session, script_run_count=1))
        held = weakref.ref(session)
        del session
        assert held() is not None
        assert forget_ended(storage) == expected
        assert (held() is None) == bool(expected)


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="only glibc keeps what is free"
)
def test_what_ended_sessions_held_goes_back_to_the_system() -> None:
    storage, session = MemorySessionStorage(ttl_seconds=-1), Ended()
    session.held = [b"x" * 100_000 for _ in range(800)]
    stays = b"x" * 100_000  # behind them: what is free is not at the end
    storage.save(SessionInfo(client=None, session=session, script_run_count=1))
    del session
    before = resident()
    assert forget_ended(storage) == 1 and stays
    assert before - resident() > 60e6


def test_the_runtime_keeps_its_sessions_where_the_sweep_looks() -> None:
    assert RuntimeConfig.__dataclass_fields__["session_storage"].default_factory is MemorySessionStorage
    assert RuntimeConfig.__dataclass_fields__["session_manager_class"].default is WebsocketSessionManager
    assert "_session_mgr" in Runtime.__init__.__code__.co_names
    assert "_session_storage" in WebsocketSessionManager.__init__.__code__.co_names


def test_the_older_kind_of_pages_is_not_looked_for(monkeypatch) -> None:
    monkeypatch.setattr(PagesManager, "uses_pages_directory", True)
    look_for_no_older_pages()
    assert not PagesManager(str(ROOT / "app.py"), None, setup_watcher=False).uses_pages_directory
    assert "uses_pages_directory" in inspect.getsource(PagesManager.__init__)


def test_code_knows_whether_it_runs_for_a_reader() -> None:
    assert not in_a_session()
    app = AppTest.from_string(
        "import streamlit as st\nfrom pages.common.streamlit_private import in_a_session\nst.text(in_a_session())"
    )
    assert app.run().text[0].value == "True"


def test_a_figure_is_sent_as_it_was_given() -> None:
    def page() -> None:
        import streamlit as st

        from pages.common.streamlit_private import PlainFigure

        st.plotly_chart(PlainFigure({"data": [{"type": "bar", "y": [1]}], "layout": {"not a name of Plotly's": 1}}))

    (chart,) = AppTest.from_function(page).run().get("plotly_chart")
    assert json.loads(chart.proto.spec)["layout"] == {"not a name of Plotly's": 1}
