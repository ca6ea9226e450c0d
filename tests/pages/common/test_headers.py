"""The headers that stand before every answer of the server."""

import asyncio
import re
import threading

import pytest

from pages.common.headers import HEADERS, SecurityHeaders

Headers = list[tuple[bytes, bytes]]


def answered(kind: str, given: Headers) -> Headers:
    """Send a request through the middleware to an application that answers with these headers."""
    sent: list[dict] = []

    async def application(scope, receive, send) -> None:
        await send({"type": f"{kind}.response.start", "status": 200, "headers": given})
        await send({"type": f"{kind}.response.body", "body": b"answer"})

    async def send(message) -> None:
        sent.append(message)

    async def receive() -> dict:
        return {}

    answering = threading.Thread(  # of its own: this one may have a loop already, that of a browser
        target=lambda: asyncio.run(SecurityHeaders(application)({"type": kind}, receive, send))
    )
    answering.start()
    answering.join()
    assert sent[1]["body"] == b"answer"
    return sent[0]["headers"]


def test_every_header_is_there_once_and_others_are_kept() -> None:
    found = answered("http", [(b"content-type", b"text/html"), (b"X-Content-Type-Options", b"wrong")])
    assert (b"content-type", b"text/html") in found
    names = [name.lower() for name, _value in found]
    assert len(names) == len(set(names)) == 1 + len(HEADERS)
    assert dict(found)[b"x-content-type-options"] == b"nosniff"


def test_websockets_pass_as_they_are() -> None:
    assert answered("websocket", [(b"a", b"b")]) == [(b"a", b"b")]


@pytest.mark.parametrize("directive", ["default-src", "script-src", "connect-src", "img-src", "font-src", "style-src"])
def test_no_source_is_outside(directive: str) -> None:
    policy = dict(part.split(" ", 1) for part in HEADERS["Content-Security-Policy"].split("; "))
    allowed = {"'self'", "data:", "blob:", "'unsafe-inline'", "'wasm-unsafe-eval'"}
    assert {source for source in policy[directive].split() if not source.startswith("'sha256-")} <= allowed
    assert "'self'" in policy[directive]
    assert not re.search("'unsafe-|data:", policy["script-src"])
