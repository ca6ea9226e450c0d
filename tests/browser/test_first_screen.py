"""On a laptop the controls and the picture of a view are on the first screen, by their places alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.bench.first_screen import LAPTOP, screens
from tests.browser.conftest import Server

# There the picture comes when something has been measured or asked for.
COMES_LATER = {("position", "length"), ("logits", "several")}


@pytest.mark.parametrize("name", ["tokenization", "embedding", "position", "blocks", "logits"])
def test_controls_and_picture_are_on_the_first_screen(browser: Browser, server: Server, name: str) -> None:
    missed = {
        view: screen.misses(LAPTOP, page)
        for page, view, screen in screens(browser, server.url, LAPTOP, [name])
        if (page, view) not in COMES_LATER
    }
    assert {view: told for view, told in missed.items() if told} == {}
