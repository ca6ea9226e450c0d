"""The controls and the picture of a view are on the first screen, in four sizes, by their places alone."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect

from pages.lessons.record import COOKIE, Record
from tests.bench.first_screen import LAPTOP, LARGE, PHONE, PROJECTOR, measured, screens
from tests.browser.conftest import Server, visit
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


def test_an_answered_step_of_a_lesson_leaves_its_picture_on_the_first_screen(browser: Browser, server: Server) -> None:
    context = browser.new_context(locale="en-US", reduced_motion="reduce")
    answered = urlencode({"2-embedding": Record(1, {1: (1,)}).as_text()})
    context.add_cookies([{"name": COOKIE, "value": answered, "url": server.url}])
    page, missed = context.new_page(), {}
    for size, enough in ((LAPTOP, 250), (PROJECTOR, 200), (PHONE, 150)):
        page.set_viewport_size({"width": size.width, "height": size.height})
        visit(page, server, f"/embedding?lang=en&lesson=2-embedding&lesson.step=2&present={int(size.presenter)}")
        expect(page.get_by_text("Measured just now")).to_be_visible()
        screen = measured(page)
        assert screen.picture is not None
        seen = min(screen.picture[1], size.height) - screen.picture[0]
        if seen < enough:
            missed[size.name] = seen
    context.close()
    assert missed == {}
