"""The controls and the picture of a view are on the first screen, in four sizes, by their places alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.bench.first_screen import LAPTOP, LARGE, PHONE, PROJECTOR, screens
from tests.browser.conftest import Server
from tests.browser.views import VIEWS

# There the picture comes when something has been generated or asked for; a model without a template has none to show.
COMES_LATER = {
    ("tokenization", "chat"),
    ("sampling", "step"),
    ("generation", "ties"),
    ("generation", "reported"),
    ("compare", "texts"),
    ("compare", "parts"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_controls_and_picture_are_on_the_first_screen(browser: Browser, server: Server, name: str) -> None:
    missed = {
        (view, size.name): told
        for page, view, size, screen in screens(browser, server, (LAPTOP, PHONE), [name])
        if (page, view) not in COMES_LATER and (told := screen.misses(size, page))
    }
    assert missed == {}


def test_first_views_are_whole_in_the_presenter_view(browser: Browser, server: Server) -> None:
    missed = {}
    for name, (_key, views) in VIEWS.items():
        for _page, view, size, screen in screens(browser, server, (PROJECTOR, LARGE), [name], views=views[:1]):
            if told := screen.misses(size, name):
                missed[name, view, size.name] = told
    assert missed == {}
