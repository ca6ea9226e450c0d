"""Hostile texts through every view in a real browser: they stay text, run nothing, fetch nothing, break no layout."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import PASTE, ROOT, Server, settle, visit
from tests.browser.views import VIEWS, address, shown_errors, too_wide
from tests.pages.hostile import TEXTS

WIDTHS = WIDE, NARROW = (1280, 360)
# What the texts would put into the page if one of them were taken for markup.
INJECTED = (
    "img[src=x], img[src*='outside.example'], link[href*='outside.example'], base, "
    "iframe, svg[onload], a[href^='javascript:'], [onerror], [onload]"
)
# As many at a time as the small world's context holds with room to spare.
JOINED = [" ".join(TEXTS[first : first + 9]).replace("\n", " ").replace("\r", " ") for first in range(0, len(TEXTS), 9)]
PROMPTS = [*JOINED, "W" * 300, "字" * 300]
LONG_LINE = 1_000_000


class Watched:
    """A page whose scripts, requests and dialogs are noted; without the policy that would stop what gets through."""

    def __init__(self, context: BrowserContext, server: Server) -> None:
        self.page, self._server, self._problems = context.new_page(), server, list[str]()
        self.page.on("dialog", self._dialog)
        self.page.on("pageerror", lambda error: self._problems.append(f"error in a script: {error}"))
        self.page.on("request", lambda request: self._note(request.url))
        self.page.on("websocket", lambda socket: self._note(socket.url))

    def _dialog(self, dialog) -> None:
        self._problems.append(f"a script said {dialog.message}")
        dialog.dismiss()

    def _note(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.netloc != urlsplit(self._server.url).netloc:
            self._problems.append(f"asked for {url}")

    def open(self, path: str) -> Page:
        """Open an address; see `visit`."""
        visit(self.page, self._server, path)
        return self.page

    def load(self, path: str) -> Page:
        """Open an address that only a browser's address field takes."""
        self.page.goto(self._server.url + path)
        settle(self.page)
        return self.page

    def problems(self, *widths: int) -> list[str]:
        """Return what went wrong since the last time, and what is wrong with the page in windows of these widths."""
        found, self._problems = self._problems + shown_errors(self.page), []
        if self.page.evaluate("globalThis.canary !== undefined"):
            found.append("a script set the canary")
        found += self.page.locator(INJECTED).evaluate_all("all => all.map(e => e.outerHTML.slice(0, 200))")
        for width in widths:
            self.page.set_viewport_size({"width": width, "height": 900})
            found += [f"at {width}: {what}" for what in too_wide(self.page)]
        return found


@pytest.fixture(scope="module")
def watched(browser: Browser, server: Server) -> Iterator[Watched]:
    viewport = {"width": WIDE, "height": 900}
    context = browser.new_context(locale="en-US", bypass_csp=True, viewport=viewport, reduced_motion="reduce")
    context.set_default_timeout(120_000)
    yield Watched(context, server)
    context.close()


def test_every_page_and_view_is_known() -> None:
    assert set(VIEWS) == {path.parent.name for path in ROOT.glob("pages/stages/*/page.py")}


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_meets_hostile_texts_from_its_address(watched: Watched, name: str) -> None:
    key, views = VIEWS[name]
    for number, view in enumerate(views):
        watched.open(address(name, view, lang="en", prompt=JOINED[number % len(JOINED)]))
        assert watched.problems(*WIDTHS) == [], view
    if key:
        offered = watched.page.locator(f".st-key-{key.replace('.', '-')}").get_by_role("radio").count()
        if offered < len(views):
            watched.page.locator(".st-key-views").get_by_role("button", name="More").click()
            expect(watched.page.get_by_test_id("stPopoverBody")).to_be_visible()
            offered += watched.page.get_by_test_id("stPopoverBody").get_by_role("button").count()
        assert offered == len(views)


@pytest.mark.parametrize("name", VIEWS)
def test_every_page_meets_typed_hostile_texts(watched: Watched, name: str) -> None:
    page = watched.open(address(name, "", lang="en"))
    field = page.get_by_label("Prompt", exact=True)
    for prompt in PROMPTS:
        field.fill(prompt)
        field.press("Enter")
        settle(page)
        expect(field).to_have_value(prompt)
        assert watched.problems(NARROW) == [], prompt


def test_lone_surrogates_and_bytes_that_are_no_text(watched: Watched) -> None:
    for name in VIEWS:
        page = watched.load(f"/{name}?lang=en&prompt=a%ED%A0%80b%FF%00c")
        assert watched.problems() == [], name
        page.get_by_label("Prompt", exact=True).evaluate(
            """field => {
                const set = Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set;
                set.call(field, "a" + String.fromCharCode(0xd800) + "b" + String.fromCharCode(0xdfff));
                field.dispatchEvent(new Event("input", { bubbles: true }));
            }"""
        )
        page.get_by_label("Prompt", exact=True).press("Enter")
        settle(page)
        assert watched.problems() == [], name


def test_a_line_of_a_megabyte_is_refused_in_a_sentence_and_kept(watched: Watched) -> None:
    line = "<b>$x$ 字" * (LONG_LINE // 8)
    for name in ("tokenization", "blocks", "generation"):
        page = watched.open(address(name, "", lang="en"))
        field = page.get_by_label("Prompt", exact=True)
        field.fill("")
        field.evaluate(PASTE, line)
        field.press("Enter")
        settle(page)
        expect(page.get_by_text("This prompt has 1,000,000 characters").first).to_be_visible()
        assert field.input_value() == line
        assert len(page.url) < 8000  # an address of that length could not be opened again
        assert watched.problems() == [], name


def test_the_longest_prompt_is_in_the_address_and_opens_again(watched: Watched) -> None:
    page = watched.open(address("tokenization", "", lang="en"))
    field = page.get_by_label("Prompt", exact=True)
    field.fill("字" * 4000)
    field.press("Enter")
    settle(page)
    page.reload()
    settle(page)
    expect(page.get_by_label("Prompt", exact=True)).to_have_value("字" * 4000)
    assert watched.problems() == []


def test_values_of_every_kind_in_an_address_are_taken_for_text(watched: Watched) -> None:
    hostile = TEXTS[0] + TEXTS[3] + "$x$ :red[x] %s {0}"
    keys = ("model", "lang", "layer", "head", "position", "temperature", "top_p", "top_k", "order", "seed", "lesson")
    for name, (key, _views) in VIEWS.items():
        state = dict.fromkeys([*keys, *([key] if key else [])], hostile)
        watched.open(address(name, "", prompt="The king", **state))
        assert watched.problems() == [], name
