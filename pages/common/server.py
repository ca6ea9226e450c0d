"""The server around the pages: Streamlit, with headers on every answer and the scripts of the live parts."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from streamlit.runtime import Runtime
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.pages_manager import PagesManager

from pages.common.headers import SecurityHeaders
from pages.live.part import scripts, version

_SWEEP = 15.0  # seconds between two looks for sessions that have ended
_FOREVER = "public, max-age=31536000, immutable"  # the address has the version in it


def around_the_pages() -> dict[str, Any]:
    """Return what `st.App` is given besides its script; Streamlit finds the app by that call, written out."""
    # A folder named pages makes Streamlit look for its older kind of pages first: whoever opened a link as the first
    # visitor of a fresh server would be told that the page does not exist.
    PagesManager.uses_pages_directory = False
    base = st.get_option("server.baseUrlPath").strip("/")
    live = Route(f"{'/' if base else ''}{base}/live/{{version}}/{{path:path}}", _script)
    return {"routes": [live], "middleware": [Middleware(SecurityHeaders)], "lifespan": _sweeping}


def forget_ended(sessions: MemorySessionStorage) -> int:
    """Let go of the sessions whose readers have been away too long to come back; return how many."""
    ended = len(sessions._cache.expire())  # type: ignore[attr-defined]
    if ended:
        gc.collect()  # a session refers to itself
    return ended


@contextlib.asynccontextmanager
async def _sweeping(_app: object) -> AsyncIterator[None]:
    """Let go of ended sessions as long as the server runs: Streamlit would do so when the next reader leaves."""

    async def sweep() -> None:
        while True:
            await asyncio.sleep(_SWEEP)
            if Runtime.exists():
                forget_ended(Runtime.instance()._session_mgr._session_storage)  # type: ignore[attr-defined]

    task = asyncio.create_task(sweep())
    try:
        yield
    finally:
        task.cancel()


async def _script(request: Request) -> Response:
    content = scripts().get(request.path_params["path"])
    if content is None:
        return PlainTextResponse("not found", 404)
    kept = _FOREVER if request.path_params["version"] == version() else "no-store"
    return Response(content, media_type="text/javascript", headers={"Cache-Control": kept})
