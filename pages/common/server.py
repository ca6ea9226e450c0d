"""The server around the pages: Streamlit, with headers on every answer and the scripts of the live parts."""

from __future__ import annotations

from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from streamlit.runtime.pages_manager import PagesManager

from pages.common.headers import SecurityHeaders
from pages.live.part import scripts, version

_FOREVER = "public, max-age=31536000, immutable"  # the address has the version in it


def around_the_pages() -> dict[str, Any]:
    """Return what `st.App` is given besides its script; Streamlit finds the app by that call, written out."""
    # A folder named pages makes Streamlit look for its older kind of pages first: whoever opened a link as the first
    # visitor of a fresh server would be told that the page does not exist.
    PagesManager.uses_pages_directory = False
    base = st.get_option("server.baseUrlPath").strip("/")
    live = Route(f"{'/' if base else ''}{base}/live/{{version}}/{{path:path}}", _script)
    return {"routes": [live], "middleware": [Middleware(SecurityHeaders)]}


async def _script(request: Request) -> Response:
    content = scripts().get(request.path_params["path"])
    if content is None:
        return PlainTextResponse("not found", 404)
    kept = _FOREVER if request.path_params["version"] == version() else "no-store"
    return Response(content, media_type="text/javascript", headers={"Cache-Control": kept})
