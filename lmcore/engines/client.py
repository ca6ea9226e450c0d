"""HTTP to one engine: timeouts, bounded retries, streams, and requests that end when nobody wants them any more.

All requests run in one event loop in a thread of their own, because there alone a request can be given up in any phase:
cancelling it closes its connection, which tells the server to stop computing.
"""

from __future__ import annotations

import asyncio
import functools
import json
import random
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2

from lmcore.engines.config import EngineConfig
from lmcore.engines.errors import EngineError, without_secrets

T = TypeVar("T")

TRIES = 3
FIRST_PAUSE = 0.25  # seconds; each further one is twice as long
LONGEST_PAUSE = 5.0  # also when the server asks for more: a reader waits
CONNECT_SECONDS = 5.0
_PASSING = frozenset({429, 500, 502, 503, 504})  # states of a server that may be over when it is asked again
_MAX_CONNECTIONS = 512  # a lecture's worth of streams at once
# How servers word it; vLLM the last way where the text alone fills it.
_CONTEXT = ("context", "maximum length", "max_model_len", "too long", "max_tokens must be at least 1")


@functools.cache
def event_loop() -> asyncio.AbstractEventLoop:
    """Return the loop that all engines' requests run in."""
    loop: asyncio.AbstractEventLoop
    try:
        import uvloop  # a token of a stream takes half the work
    except ImportError:  # on Windows
        loop = asyncio.new_event_loop()
    else:
        loop = uvloop.new_event_loop()
    threading.Thread(target=loop.run_forever, name="engines", daemon=True).start()
    return loop


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run a coroutine in the engines' loop; cancelling the future cancels it."""
    return asyncio.run_coroutine_threadsafe(work, event_loop())


class Client:
    """Requests to an engine; safe to share between threads.

    Args:
        config: which engine.
    """

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self._http = httpx2.AsyncClient(
            base_url=config.base_url.rstrip("/") + "/",
            timeout=httpx2.Timeout(config.timeout, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=32),
            follow_redirects=False,  # a key goes to the address the operator wrote, and nowhere else
            trust_env=False,
        )

    def get(self, path: str, tries: int = TRIES) -> Any:
        """Return the JSON at a path; see `request`."""
        return submit(self.request("GET", path, None, tries)).result()

    def post(self, path: str, body: Mapping[str, Any], tries: int = TRIES) -> Any:
        """Return the JSON that answers a body; see `request`."""
        return submit(self.request("POST", path, body, tries)).result()

    async def request(self, method: str, path: str, body: Mapping[str, Any] | None = None, tries: int = TRIES) -> Any:
        """Ask, and return the answer's JSON.

        Args:
            method: "GET" or "POST".
            path: below the base URL, or from the server's root on when it begins with "/".
            body: what is sent as JSON.
            tries: how often to ask while the server is busy, failing, or not there.

        Raises:
            EngineError: for everything but a good answer.
        """
        async with self._opened(method, path, body, tries) as response:
            try:
                return json.loads(await response.aread())
            except httpx2.TransportError as error:
                raise self._failed(error) from None
            except ValueError:
                raise self._error("unreadable", "its answer is not JSON.") from None

    async def events(self, path: str, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Ask, and yield the JSON of each event of the stream that answers, until the server says it is done.

        Raises:
            EngineError: for everything but a good answer, a stream that breaks off too.
        """
        async with self._opened("POST", path, body, TRIES) as response:
            try:
                async for line in response.aiter_lines():
                    if not line.startswith("data:"):
                        continue  # comments that keep the connection open, and blank lines between events
                    data = line.removeprefix("data:").strip()
                    if data == "[DONE]":
                        return
                    event = self._event(data)
                    if isinstance(event, dict) and event.get("error"):
                        raise self._error("broken off", "the server failed in the middle of its answer.", event)
                    yield event
            except httpx2.TransportError as error:
                if isinstance(error, httpx2.TimeoutException):
                    raise self._failed(error) from None
                raise self._error("broken off", "the connection broke off in the middle of its answer.") from None
        raise self._error("broken off", "the connection broke off in the middle of its answer.")

    def close(self) -> None:
        """Close the connections."""
        submit(self._http.aclose()).result()

    @asynccontextmanager
    async def _opened(
        self, method: str, path: str, body: Mapping[str, Any] | None, tries: int
    ) -> AsyncIterator[httpx2.Response]:
        """A good answer, its body not yet read."""
        for tried in range(1, tries + 1):
            response, error = await self._send(method, path, body)
            if response is not None and response.status_code < 300:
                try:
                    yield response
                finally:
                    await response.aclose()
                return
            if response is not None:
                error = await self._refusal(response)
                await response.aclose()
            passing = response.status_code in _PASSING if response is not None else error.kind == "unreachable"
            if not passing or tried == tries:
                raise error
            await asyncio.sleep(_pause(tried, response))

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None
    ) -> tuple[httpx2.Response | None, EngineError]:
        key = self.config.key()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        base = httpx2.URL(self.config.base_url)
        url = base.copy_with(raw_path=path.encode()) if path.startswith("/") else path
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers["Content-Type"] = "application/json"
        try:
            request = self._http.build_request(method, url, headers=headers, content=content)
            return await self._http.send(request, stream=True), EngineError("failing", "")
        except httpx2.TransportError as error:
            return None, self._failed(error)

    def _failed(self, error: httpx2.TransportError) -> EngineError:
        if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
            return self._error("unreachable", "it is not reachable.")
        if isinstance(error, httpx2.TimeoutException):
            return self._error("slow", f"it has not answered for {self.config.timeout:g} seconds.")
        return self._error("unreachable", "the connection broke off before its answer.")

    async def _refusal(self, response: httpx2.Response) -> EngineError:
        status = response.status_code
        try:
            given = json.loads(await response.aread())
        except (httpx2.TransportError, ValueError):
            given = {}
        words = _words(given)
        if status in (401, 403):  # a server's words here may repeat a part of the key
            return self._error("key refused", f"it refuses the key ({status}).")
        if status == 429:
            return self._error("busy", "it has too much to do and asks to come again later (429).", given)
        if status == 404:
            return self._error("no such model", f"it has no model {self.config.model!r} (404).", given)
        if status < 500 and any(word in words.lower() for word in _CONTEXT):
            return self._error("context too long", f"the text is longer than it reads ({status}).", given)
        if status < 500:
            return self._error("refused", f"it refuses the request ({status}).", given)
        return self._error("failing", f"it failed ({status}).", given)

    def _event(self, data: str) -> Any:
        try:
            return json.loads(data)
        except ValueError:
            raise self._error("unreadable", "a piece of its answer is not JSON.") from None

    def _error(self, kind: Any, sentence: str, given: Any = None) -> EngineError:
        try:
            key = self.config.key()
        except EngineError:
            key = ""
        return EngineError(kind, f"{self.config.name}: {sentence}", without_secrets(_words(given), key))


def _pause(tried: int, response: httpx2.Response | None) -> float:
    """Seconds before the next try: twice as long each time, a little at random so that many do not come at once."""
    asked = response.headers.get("retry-after", "") if response is not None else ""
    try:
        return min(max(float(asked), 0.0), LONGEST_PAUSE)
    except ValueError:
        return min(FIRST_PAUSE * 2 ** (tried - 1), LONGEST_PAUSE) * random.uniform(0.75, 1.25)


def _words(given: Any) -> str:
    """What a server says in an error, wherever it says it."""
    if isinstance(given, dict):
        for name in ("error", "message", "detail"):
            if given.get(name):
                return _words(given[name])
    return given if isinstance(given, str) else ""
