"""Rows of chips that are longer than their box: the chosen one is in view, and the page around stays where it is."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage, settle

LONG = "%20".join(["The weather today is nice and the king lives in the palace"] * 12)
SCROLLED = "document.querySelector('[data-testid=stMain]').scrollTop"


def is_inside(box: Locator, chip: Locator) -> bool:
    outer, inner = box.bounding_box(), chip.bounding_box()
    assert outer and inner
    return outer["y"] <= inner["y"] + 1 and inner["y"] + inner["height"] <= outer["y"] + outer["height"] + 1


def scroll_of(box: Locator) -> list[int]:
    return box.evaluate("(e) => [e.scrollTop, e.scrollHeight - e.clientHeight]")


def in_the_middle(page: Page, box: Locator) -> int:
    """Put the box into the middle of the view; return how far the page is scrolled then."""
    box.evaluate("(e) => e.scrollIntoView({block: 'center'})")
    page.wait_for_timeout(300)
    return page.evaluate(SCROLLED)


def test_the_chosen_chip_of_a_strip_is_in_view(open_page: OpenPage) -> None:
    page = open_page(f"/sampling?prompt={LONG}", viewport={"width": 500, "height": 900})
    strip = page.locator(".strip")
    chips = strip.get_by_role("option")
    expect(chips.last).to_have_attribute("aria-selected", "true", timeout=60_000)
    assert scroll_of(strip)[1] > 100
    scrolled = in_the_middle(page, strip)
    assert is_inside(strip, chips.last) and not is_inside(strip, chips.first)
    chips.last.focus()
    page.keyboard.press("Home")
    expect(chips.first).to_be_focused()
    assert is_inside(strip, chips.first) and page.evaluate(SCROLLED) == scrolled
    settle(page)
    expect(chips.first).to_have_attribute("aria-selected", "true")
    strip.evaluate("(e) => { e.scrollTop = 200; }")  # whoever looks around keeps the place when the page runs again
    page.get_by_role("slider", name="Temperature", exact=True).press("ArrowRight")
    settle(page)
    assert scroll_of(strip)[0] == 200


def test_a_long_coloured_text_is_read_from_its_beginning(open_page: OpenPage) -> None:
    page = open_page(f"/logits?logits.view=text&prompt={LONG}", viewport={"width": 500, "height": 900})
    text = page.get_by_role("list", name="The coloured text")
    expect(text.get_by_role("listitem").last).to_be_attached(timeout=60_000)
    assert scroll_of(text)[0] == 0 and scroll_of(text)[1] > 100
    assert text.get_by_role("listitem").first.get_attribute("title")
