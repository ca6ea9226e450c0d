"""A slow line between the browser and the server: what the server says arrives late, in its order, and whole."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Iterator

from playwright.sync_api import Page

_QUIET = 0.6  # seconds without a message after which nothing more is expected
_PATIENCE = 90.0  # seconds that `settle` waits for it
_A_PONG = 16  # bytes; shorter pieces from the browser only say that it is there, and are not answered


class DelayingProxy:
    """A TCP proxy before a server of Streamlit. What the server sends on the socket of a session is delayed.

    Pages, scripts and what the browser sends pass at once.

    Args:
        port: the server's, on this machine.

    Attributes:
        url: where the browser is sent instead of to the server.
        delay: seconds by which messages arrive late; may be changed at any time.

    Example of a test:

        page = open_page(delaying_proxy.url + "/sampling")
        delaying_proxy.delay = 1.0
        page.get_by_label("Seed").fill("4")      # the answer is a second away
        page.get_by_label("Top-k").fill("3")     # ... and this comes before it
        delaying_proxy.settle(page)              # until both are answered
    """

    def __init__(self, port: int) -> None:
        self.delay = 0.0
        self._server = ("localhost", port)
        self._let_through = threading.Event()
        self._let_through.set()
        self._waiting = 0  # messages of the server that have not been passed on
        self._asked = self._answered = time.monotonic()
        self._lock = threading.Lock()
        self._listening = socket.create_server(("localhost", 0))
        self.url = f"http://localhost:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold back everything the server says on a session's socket until the block ends."""
        self._let_through.clear()
        try:
            yield
        finally:
            self._let_through.set()

    def settle(self, page: Page) -> None:
        """Wait until every message of the browser was answered, every answer has arrived, and no script runs."""
        deadline = time.monotonic() + _PATIENCE
        stopped = page.locator("[data-testid=stApp][data-test-script-state=notRunning]")
        while time.monotonic() < deadline:
            page.wait_for_timeout(50)
            with self._lock:
                answered = self._answered >= self._asked and not self._waiting
                quiet = time.monotonic() - max(self._answered, self._asked) > self.delay + _QUIET
            if answered and quiet and stopped.count():
                return
        raise AssertionError(f"the page was not quiet within {_PATIENCE:.0f} seconds")

    def close(self) -> None:
        """Accept no more connections; those there end with the browser's page."""
        self._let_through.set()
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                browser, _ = self._listening.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._connect, args=(browser,), daemon=True).start()

    def _connect(self, browser: socket.socket) -> None:
        with browser, contextlib.suppress(OSError), socket.create_connection(self._server) as server:
            for end in (browser, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            first = browser.recv(2**16)
            is_session = first.startswith(b"GET /_stcore/stream")
            server.sendall(first)
            answering = self._pass_on_late if is_session else _pass_on
            thread = threading.Thread(target=answering, args=(server, browser), daemon=True)
            thread.start()
            while piece := browser.recv(2**16):
                if is_session and len(piece) > _A_PONG:
                    self._asked = time.monotonic()
                server.sendall(piece)
            _end(server)
            thread.join()

    def _pass_on_late(self, server: socket.socket, browser: socket.socket) -> None:
        pieces: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        sending = threading.Thread(target=self._send, args=(pieces, browser), daemon=True)
        sending.start()
        with contextlib.suppress(OSError):
            while piece := server.recv(2**16):
                with self._lock:
                    self._waiting += 1
                pieces.put((time.monotonic() + self.delay, piece))
        pieces.put((0.0, b""))
        sending.join()
        _end(browser)

    def _send(self, pieces: queue.SimpleQueue[tuple[float, bytes]], browser: socket.socket) -> None:
        is_open = True
        while (late := pieces.get())[1]:
            due, piece = late
            time.sleep(max(0.0, due - time.monotonic()))
            self._let_through.wait()
            try:
                if is_open:
                    browser.sendall(piece)
            except OSError:  # the page was closed
                is_open = False
            with self._lock:
                self._waiting -= 1
                self._answered = time.monotonic()


def _pass_on(server: socket.socket, browser: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := server.recv(2**16):
            browser.sendall(piece)
    _end(browser)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
