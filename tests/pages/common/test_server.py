"""What the server does around the pages with Streamlit's private names: if one moves, mend pages/common/server.py."""

from __future__ import annotations

import weakref

from streamlit.runtime import Runtime
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.runtime import RuntimeConfig
from streamlit.runtime.session_manager import SessionInfo
from streamlit.runtime.websocket_session_manager import WebsocketSessionManager

from pages.common.server import forget_ended


class Ended:
    """What a session manager keeps of a reader who has left; it refers to itself, as a session does."""

    id = "left"

    def __init__(self) -> None:
        self.myself = self


def test_a_session_is_gone_when_its_time_is_over_and_nobody_else_leaves() -> None:
    for seconds, expected in ((-1, 1), (100, 0)):
        storage, session = MemorySessionStorage(ttl_seconds=seconds), Ended()
        storage.save(SessionInfo(client=None, session=session, script_run_count=1))
        held = weakref.ref(session)
        del session
        assert held() is not None
        assert forget_ended(storage) == expected
        assert (held() is None) == bool(expected)


def test_the_runtime_keeps_its_sessions_where_the_sweep_looks() -> None:
    assert RuntimeConfig.__dataclass_fields__["session_storage"].default_factory is MemorySessionStorage
    assert RuntimeConfig.__dataclass_fields__["session_manager_class"].default is WebsocketSessionManager
    assert "_session_mgr" in Runtime.__init__.__code__.co_names
    assert "_session_storage" in WebsocketSessionManager.__init__.__code__.co_names
