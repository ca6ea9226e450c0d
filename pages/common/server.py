"""The server around the pages: Streamlit, with headers on every answer, our style, and the live parts' scripts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import AsyncIterator
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from pages.classes import line, operator
from pages.common import own_stages, streamlit_private
from pages.common.first_page import FirstPage
from pages.common.headers import SecurityHeaders
from pages.live.part import scripts, version

_SWEEP = 15.0  # seconds between two looks for sessions that have ended
_FOREVER = "public, max-age=31536000, immutable"  # the address has the version in it


def around_the_pages() -> dict[str, Any]:
    """Return what `st.App` is given besides its script; Streamlit finds the app by that call, written out."""
    streamlit_private.look_for_no_older_pages()
    own_stages.load()
    base = f"/{st.get_option('server.baseUrlPath').strip('/')}".rstrip("/")
    routes = [Route(f"{base}/live/{{version}}/{{path:path}}", _script), line.route(base)]
    return {"routes": routes, "middleware": [Middleware(SecurityHeaders), Middleware(FirstPage)], "lifespan": _sweeping}


@contextlib.asynccontextmanager
async def _sweeping(_app: object) -> AsyncIterator[None]:
    """Let go of ended sessions and old classes as long as the server runs.

    Streamlit would let go of a session when the next reader leaves.
    """

    async def sweep() -> None:
        while True:
            await asyncio.sleep(_SWEEP)
            if (sessions := streamlit_private.session_storage()) is not None:
                streamlit_private.forget_ended(sessions)
            try:
                operator.store().forget()
            except (sqlite3.Error, OSError, ValueError):
                logging.getLogger(__name__).exception("%s cannot be used", operator.FILE_VARIABLE)

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
