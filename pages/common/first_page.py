"""The one HTML page of the server, Streamlit's: with our style, language and title before any script has run.

Streamlit would write the style seconds after the page is seen, when a session has started.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.common.escape import markup_literal
from pages.locale.catalogues import translations
from pages.locale.languages import LANGUAGES, greeting

TITLE = "Language model explorer"
_CHANGED = {b"content-length", b"etag", b"last-modified"}  # of the page as Streamlit has it
_ASKED = {b"accept-encoding", b"if-none-match", b"if-modified-since", b"range"}


@cache
def style() -> str:
    """Return the style of every page."""
    return Path(__file__).with_name("style.css").read_text(encoding="utf-8")


def styled(page: str, language: str) -> str:
    """Return Streamlit's page in a language, with the style after everything that its head may get.

    Args:
        page: HTML with a head and a body.
        language: its code.
    """
    title = markup_literal(translations(language).gettext(TITLE))
    page = re.sub(r'<html lang="[^"]*">', f'<html lang="{LANGUAGES[language].tag}">', page, count=1)
    page = re.sub(r"<title>[^<]*</title>", lambda _match: f"<title>{title}</title>", page, count=1)
    return page.replace("</body>", f"<style>{style()}</style></body>")


class FirstPage:
    """ASGI middleware that gives browsers `styled` in place of Streamlit's page; all else passes as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = dict(scope.get("headers", ()))
        if scope["type"] != "http" or b"text/html" not in headers.get(b"accept", b""):
            await self._app(scope, receive, send)
            return
        asked = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] not in _ASKED]}
        start: Message = {}
        body = b""

        async def collect(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
            elif message["type"] == "http.response.body" and _is_page(start):
                body += message.get("body", b"")
                if not message.get("more_body"):
                    body = styled(body.decode("utf-8"), _language(scope, headers)).encode("utf-8")
                    kept = [pair for pair in start["headers"] if pair[0].lower() not in _CHANGED]
                    length = (b"content-length", str(len(body)).encode())
                    await send({**start, "headers": [*kept, length]})
                    await send({"type": "http.response.body", "body": body})
            else:
                if start:
                    await send(start)
                    start = {}
                await send(message)

        await self._app(asked, receive, collect)


def _is_page(start: Message) -> bool:
    headers = {name.lower(): value for name, value in start.get("headers", ())}
    return start.get("status") == 200 and headers.get(b"content-type", b"").startswith(b"text/html")


def _language(scope: Scope, headers: dict[bytes, bytes]) -> str:
    given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("lang", [""])[0]
    wanted = given or headers.get(b"accept-language", b"").decode("latin-1")
    return greeting(wanted)
