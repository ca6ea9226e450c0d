"""Text of users and models shows as it is, in every place a page can put it, and runs nothing."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from pages.common.escape import visible
from tests.browser.conftest import OpenPage, Server, settle
from tests.pages.hostile import TEXTS


@pytest.fixture(scope="module")
def literal_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server("tests/browser/literal_app.py", tmp_path_factory.mktemp("literal") / "log.txt")
    yield running
    running.stop()


def text_of(element: Locator) -> str:
    """What a reader sees: a code span may begin and end with a blank, a word joiner takes no room."""
    return element.evaluate("e => e.textContent").strip().replace("\u2060", "")


@pytest.fixture
def page(open_page: OpenPage, literal_app: Server) -> Page:
    return open_page(literal_app.url, viewport={"width": 1280, "height": 4000})


def test_markdown_shows_every_text_as_it_is(page: Page) -> None:
    for number, text in enumerate(TEXTS):
        shown = page.locator(f".st-key-markdown-{number}")
        assert text_of(shown.locator("code").first) == visible(text)
        assert shown.locator("p").first.evaluate("e => e.textContent").startswith("before ")
        assert shown.locator("img, a, script, style, em, strong, .katex, [role=img]").count() == 0
    labels = page.locator(".st-key-labels")
    for text in TEXTS:
        if text.strip():
            assert labels.locator("code", has_text=visible(text)[:10]).count() >= 1
    assert labels.locator("img, a, script, em, strong, .katex, [role=img]").count() == 0


def test_plotly_shows_every_label_as_it_is(page: Page) -> None:
    page.locator(".ytick text").first.wait_for()
    ticks = page.locator(".ytick text").evaluate_all("all => all.map(e => e.textContent)")
    shown = [visible(text) for text in TEXTS if text]  # nothing is drawn for nothing
    assert ticks == [text if len(text) <= 24 else text[:23] + "…" for text in shown]
    assert page.locator(".ytick a, .ytick image, .ytick foreignObject").count() == 0


def test_chips_show_every_text_and_are_chosen_by_mouse_and_keys(page: Page) -> None:
    chips = page.get_by_role("listbox", name="Texts").get_by_role("option")
    chips.first.wait_for()
    assert chips.locator(".text").evaluate_all("all => all.map(e => e.textContent)") == [visible(t) for t in TEXTS]
    expect(chips.nth(1)).to_have_attribute("aria-selected", "true")
    chips.nth(4).click()
    expect(page.get_by_text("CHOSEN 4")).to_be_visible()
    chips.nth(4).press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_text("CHOSEN 5")).to_be_visible()
    settle(page)
    expect(chips.nth(5)).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_text(f"CHOSEN {len(TEXTS) - 1}")).to_be_visible()
    expect(chips.last).to_have_attribute("aria-selected", "true")
