"""HTTP headers of every response: which sources the pages may use, and who may frame them."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import streamlit as st
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def _inline_scripts() -> list[str]:
    """Return the hashes of the scripts that Streamlit's own page has in it, as a policy names them."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    hashes = [hashlib.sha256(code.encode()).digest() for code in re.findall("<script>(.*?)</script>", page, re.DOTALL)]
    return [f"'sha256-{base64.b64encode(found).decode()}'" for found in hashes]


_SOURCES = {
    "default-src": "'self'",
    # Streamlit loads the scripts of client-side parts from blobs, and decodes with WebAssembly. No other inline script
    # and no eval: a text that became markup after all would have nothing to run.
    "script-src": " ".join(["'self'", "blob:", "'wasm-unsafe-eval'", *_inline_scripts()]),
    "style-src": "'self' 'unsafe-inline'",  # Streamlit writes the theme as inline styles
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "worker-src": "'self' blob:",
    "connect-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'self'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {sources}" for name, sources in _SOURCES.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # the address holds what was typed
    "X-Frame-Options": "SAMEORIGIN",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class SecurityHeaders:
    """ASGI middleware that puts `HEADERS` on every answer, in place of the same headers of the application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; websockets have no headers that matter here and pass as they are."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = {name.lower().encode() for name in HEADERS}
                others = [pair for pair in message.get("headers", []) if pair[0].lower() not in ours]
                message["headers"] = others + [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
            await send(message)

        await self._app(scope, receive, send_with_headers)
