"""The real server on a free port, and a page in a real Chromium: the system's, else Playwright's own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Playwright, expect, sync_playwright

from tests.browser.delaying_proxy import DelayingProxy

ROOT = Path(__file__).parents[2]
# The shell is the same engine without windows: a page takes it half the processor time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# A paste, as an event of a field: to be given the text.
PASTE = """(field, text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text);
  field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true, composed: true }));
}"""


# The server answers this after what the browser sent before it.
_ROUND_TRIP = "() => fetch('/_stcore/health', { cache: 'no-store' }).then((answer) => answer.text()).catch(() => '')"


class Server:
    """`streamlit run` of a script on a free port of its own."""

    def __init__(self, script: str, log: Path) -> None:
        self.script, self.log = script, log
        with socket.socket() as free:
            free.bind(("localhost", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://localhost:{self.port}"
        self.start()
        _servers.append(self)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = ["--server.port", str(self.port), "--server.headless", "true"]
        command = [sys.executable, "-m", "streamlit", "run", self.script, *options]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        deadline = time.monotonic() + 600  # on a busy machine it takes its time; one that has ended is noticed at once
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=5).close()
                return
            except (urllib.error.URLError, OSError):
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    pytest.fail(f"the server did not start:\n{self.log.read_text(errors='replace')[-2000:]}")
                time.sleep(0.1)

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    def stop(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()


def as_app(body: str) -> str:
    """Return a script that Streamlit serves as it serves the explorer, with the scripts of the live parts."""
    lines = "\n".join(f"    {line}" if line else "" for line in body.strip("\n").splitlines())
    return (
        f"import streamlit as st\n\nif __name__ == '__main__':\n{lines}\nelse:\n"
        "    from pages.common.server import around_the_pages\n    app = st.App(__file__, **around_the_pages())\n"
    )


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve the app for all tests of the run."""
    running = Server("app.py", tmp_path_factory.mktemp("server") / "log.txt")
    yield running
    running.stop()


@pytest.fixture
def delaying_proxy(server: Server) -> Iterator[DelayingProxy]:
    """Give the app's server behind a slow line, whose slowness a test sets."""
    proxy = DelayingProxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium; skip, or fail under CI, when there is none."""
    expect.set_options(timeout=60_000)  # a busy machine may take its time: what is asked is that it comes, not when
    with sync_playwright() as playwright:
        running = launch(playwright)
        yield running
        running.close()


def launch(playwright: Playwright) -> Browser:
    """Start the Chromium of the system, else Playwright's own."""
    system = next((path for path in map(shutil.which, BROWSERS) if path), None)
    try:
        return playwright.chromium.launch(executable_path=system, args=FLAGS)
    except Error as error:
        reason = (
            "no browser for the tests: install one (Debian: apt-get install chromium-headless-shell) or run "
            f"`playwright install chromium`. {str(error).splitlines()[0]}"
        )
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


OpenPage = Callable[..., Page]
collect_ignore_glob = ["link_app/*", "literal_app.py"]  # scripts that Streamlit serves: to be run, not imported


_servers: list[Server] = []  # of this run of the tests, also those that have ended
_LOGS = pytest.StashKey[dict[Path, int]]()  # how long the servers' logs were when a test began
_LONGEST_LOG = 20_000  # characters of it that are shown


def _said(server: Server) -> bytes:
    return server.log.read_bytes() if server.log.exists() else b""  # folders of tests that passed are removed


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note how much the servers have said before a test."""
    item.stash[_LOGS] = {server.log: len(_said(server)) for server in _servers}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a test that failed what the servers said meanwhile: a page does not say what went wrong in its code."""
    report = yield
    if report.failed:
        for server in _servers:
            new = _said(server)[item.stash.get(_LOGS, {}).get(server.log, 0) :].decode(errors="replace")
            if new.strip():
                report.sections.append((f"what the server of {server.script} said", new[-_LONGEST_LOG:]))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is collected below this folder, so that the other tests can be run by themselves."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def profile(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Give a function that returns the browser profile with these options, which keeps what it has compiled.

    A page of a new profile reads and compiles megabytes of scripts first, for seconds.
    """
    profiles: dict[str, BrowserContext] = {}

    def profile_(**options: Any) -> BrowserContext:
        calm = {"locale": "en-US", "viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
        options = {**calm, **options}  # a fifth of what a page costs is what moves in it
        key = json.dumps(options, sort_keys=True)
        if key not in profiles:
            profiles[key] = browser.new_context(**options)
            profiles[key].set_default_timeout(120_000)
        return profiles[key]

    yield profile_
    for context in profiles.values():
        context.close()


@pytest.fixture
def open_page(request: pytest.FixtureRequest, profile: Callable[..., BrowserContext]) -> Iterator[OpenPage]:
    """Give a function that opens an address of the app in a page of its own and waits for it.

    It takes the path with its query ("/blocks?layer=2") and what `Browser.new_context` takes, e.g. locale="zh-CN".
    Afterwards the test fails when the browser met an error in a script, or the page showed a traceback.
    """
    opened: list[Page] = []
    problems: list[str] = []

    def open_(address: str = "/", **options: Any) -> Page:
        page = profile(**options).new_page()
        opened.append(page)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(address if "://" in address else request.getfixturevalue("server").url + address)
        settle(page)
        return page

    yield open_
    for page in opened:
        if not page.is_closed():
            problems += page.get_by_test_id("stException").all_inner_texts()
            problems += page.get_by_test_id("stDialog").all_inner_texts()  # "Page not found", "Connection error"
            page.evaluate("localStorage.clear()")
            page.close()
    assert not problems


# An address and a step to it, as the browser's Back and Forward take it.
_GO = """address => {
  history.pushState(null, "", address);
  dispatchEvent(new PopStateEvent("popstate", { state: null }));
}"""


def visit(page: Page, server: Server, address: str) -> None:
    """Open an address, at once where the page is in the app already: loading its scripts anew takes most of the time.

    Nothing is left of what the reader had chosen, as at the first visit.
    """
    if page.url.startswith(server.url):
        page.evaluate(_GO, f"{address}{'&' if '?' in address else '?'}apply=fresh")
    else:
        page.goto(server.url + address)
    settle(page)


def settle(page: Page) -> None:
    """Wait until the app has run to its end and drawn what it gave."""
    app = page.locator("[data-testid=stApp][data-test-connection-state=CONNECTED]")
    app.wait_for()
    page.get_by_test_id("stElementContainer").first.wait_for(state="attached")  # the first run has begun to draw
    page.wait_for_timeout(150)  # a change made just now has first to start a run,
    page.evaluate(_ROUND_TRIP)  # and on a busy machine the server takes longer to hear of it
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
    page.wait_for_timeout(100)
