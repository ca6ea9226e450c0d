"""The live parts' scripts by themselves, without a server: a blank page that can import them."""

from __future__ import annotations

from playwright.sync_api import Page, Route

from pages.live.part import scripts

_ORIGIN = "http://scripts.test"


def open_scripts(page: Page) -> None:
    """Open a blank page in which `import("/sampling_lab/reshape.js")` works."""

    def answer(route: Route) -> None:
        path = route.request.url.removeprefix(f"{_ORIGIN}/")
        if path in scripts():
            route.fulfill(body=scripts()[path], content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html><title>scripts</title>", content_type="text/html")

    page.route(f"{_ORIGIN}/**", answer)
    page.goto(f"{_ORIGIN}/")
