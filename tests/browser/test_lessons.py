"""A lesson, the presenter view and the shared link in a real browser."""

from __future__ import annotations

import re

import segno
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, settle

WAIT = 60_000


def test_a_step_waits_for_an_answer_and_goes_on(open_page: OpenPage) -> None:
    page = open_page("/lessons?lang=en")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page).to_have_url(re.compile("/tokenization.*lesson.step=1"), timeout=WAIT)
    title = page.get_by_role("heading", name="Tokenization")
    expect(title).to_have_count(0)
    page.get_by_text("Four, one for each word").click()
    answer = page.get_by_role("button", name="Answer", exact=True)
    expect(answer).to_be_enabled(timeout=WAIT)
    answer.click()
    expect(title).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("Measured just now: 4.")).to_be_visible()
    page.get_by_role("button", name="Next step").click()
    expect(page).to_have_url(re.compile("/embedding.*lesson.step=2"), timeout=WAIT)


def test_a_temperature_step_shows_the_page_before_and_after(open_page: OpenPage) -> None:
    page = open_page("/sampling?lang=en&lesson=tour&lesson.step=6&prompt=今天天气")
    expect(page.get_by_role("spinbutton", name="Temperature")).to_have_value("1", timeout=WAIT)
    page.get_by_text("It becomes more probable").click()
    answer = page.get_by_role("button", name="Answer", exact=True)
    expect(answer).to_be_enabled(timeout=WAIT)
    answer.click()
    expect(page.get_by_role("spinbutton", name="Temperature")).to_have_value("0.5", timeout=WAIT)
    expect(page.get_by_text("Measured just now")).to_be_visible(timeout=WAIT)


def test_the_presenter_view_leaves_the_picture_and_a_way_out(open_page: OpenPage) -> None:
    page = open_page("/blocks?lang=en")
    size = "() => parseFloat(getComputedStyle(document.querySelector('h1')).fontSize)"
    before = page.evaluate(size)
    page.get_by_role("button", name="Presenter view").click()
    out = page.get_by_role("button", name="Leave the presenter view")
    expect(out).to_be_visible(timeout=WAIT)
    settle(page)
    assert page.evaluate(size) >= 1.25 * before
    expect(page.get_by_text("The same in Python")).to_have_count(0)
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    expect(page.locator(".js-plotly-plot").first).to_be_visible()
    out.click()
    expect(page.get_by_text("The same in Python")).to_be_visible(timeout=WAIT)
    expect(page.get_by_test_id("stSidebar")).to_be_visible()


def test_the_shared_link_opens_the_same_page_elsewhere(open_page: OpenPage) -> None:
    page = open_page("/blocks?lang=en&prompt=我喜欢&layer=2&blocks.view=residual")
    page.get_by_role("button", name="Share").click()
    code = page.get_by_test_id("stCode").filter(has_text="layer=2").first
    expect(code).to_be_visible(timeout=WAIT)
    settle(page)
    link = code.inner_text().strip()
    expect(page).to_have_url(link, timeout=WAIT)
    expect(page.get_by_role("img", name="QR code of the link")).to_be_visible()
    assert segno.make(link, error="l", micro=False).error == "L"  # it fits
    other = open_page(link)
    expect(other.get_by_role("radio", name="Residual stream")).to_be_checked(timeout=WAIT)
    expect(other.get_by_role("textbox", name="Prompt")).to_have_value("我喜欢")
    assert other.url == link
