"""No page needs anything from outside, none asks for it, and every answer says that it may not."""

from __future__ import annotations

import urllib.request
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Route

from pages.common.headers import HEADERS
from tests.browser.conftest import Server, settle
from tests.browser.views import VIEWS, address, shown_errors

# A note of everything the policy of the page forbade.
_NOTE_FORBIDDEN = """addEventListener("securitypolicyviolation", (event) => {
  (globalThis.forbidden ??= []).push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
});"""


def test_every_page_works_without_a_network_and_asks_for_nothing_outside(browser: Browser, server: Server) -> None:
    own, outside = urlsplit(server.url).netloc, list[str]()

    def refuse_outside(route: Route) -> None:
        if urlsplit(route.request.url).netloc == own:
            route.continue_()
        else:
            outside.append(route.request.url)
            route.abort("internetdisconnected")

    context = browser.new_context(locale="en-US")
    context.set_default_timeout(120_000)
    context.add_init_script(_NOTE_FORBIDDEN)
    context.route(lambda url: url.startswith(("http:", "https:")), refuse_outside)
    page = context.new_page()
    page.on("websocket", lambda socket: outside.append(socket.url) if urlsplit(socket.url).netloc != own else None)
    for name in VIEWS:
        page.goto(server.url + address(name, "", lang="en"))
        settle(page)
        assert page.get_by_role("heading", level=1).count() == 1
        assert shown_errors(page) == []
        assert page.evaluate("globalThis.forbidden ?? []") == [], name
        page.mouse.wheel(0, 20_000)  # what is loaded only when it is looked at
        page.wait_for_timeout(200)
    context.close()
    assert outside == []


@pytest.mark.parametrize("path", ["/", "/blocks?layer=2", "/_stcore/health", "/static/no-such-file", "/media/none.csv"])
def test_every_answer_has_the_headers(server: Server, path: str) -> None:
    try:
        answer = urllib.request.urlopen(server.url + path, timeout=30)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        assert {name: answer.headers.get_all(name) for name in HEADERS} == {n: [text] for n, text in HEADERS.items()}
