"""A lesson, the presenter view and the shared link in a real browser."""

from __future__ import annotations

import re
from urllib.parse import urlencode, urljoin

import segno
from playwright.sync_api import expect

from pages.lessons.panel import WRITING
from tests.browser.conftest import OpenPage, settle

WAIT = 60_000


def test_a_step_waits_for_an_answer_and_goes_on(open_page: OpenPage) -> None:
    page = open_page("/lessons?lang=en")
    page.locator(".st-key-lessons-start-tour button").click()
    expect(page).to_have_url(re.compile("/tokenization.*lesson.step=1"), timeout=WAIT)
    title = page.get_by_role("heading", name="Tokenization")
    expect(title).to_have_count(0)
    page.get_by_text("Four, one for each word").click()
    answer = page.get_by_role("button", name="Answer", exact=True)
    expect(answer).to_be_enabled(timeout=WAIT)
    answer.click()
    expect(title).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("Measured just now: 4.")).to_be_visible()
    settle(page)  # what stood there before the answer is gone
    page.get_by_role("button", name="Next step").click()
    expect(page).to_have_url(re.compile("/embedding.*lesson.step=2"), timeout=WAIT)


def test_a_step_keeps_its_answers_over_language_reload_and_back(open_page: OpenPage) -> None:
    page = open_page("/sampling?lang=en&lesson=tour&lesson.step=6")
    temperature = page.get_by_role("spinbutton", name=re.compile("^(Temperature|温度)$"))
    expect(temperature).to_have_value("1", timeout=WAIT)
    expect(page).to_have_url(re.compile("prompt=%E4%BB%8A"), timeout=WAIT)  # the step's own
    page.get_by_text("It stays as it is").click()
    page.get_by_text("简体中文").click()
    expect(page.get_by_role("radio", name="不变")).to_be_checked(timeout=WAIT)
    page.get_by_role("button", name="回答", exact=True).click()
    expect(temperature).to_have_value("0.5", timeout=WAIT)  # wrong: look, and choose once more
    expect(page.get_by_role("radio", name="不变")).to_have_count(0)
    settle(page)
    expect(page).to_have_url(re.compile("lang=zh.*temperature=0.5"), timeout=WAIT)  # which the reload opens
    page.reload()
    expect(page.get_by_role("radio", name="变大")).to_be_visible(timeout=WAIT)
    expect(temperature).to_have_value("0.5", timeout=WAIT)
    page.get_by_role("button", name="下一步").click()
    expect(page).to_have_url(re.compile("lesson.step=7"), timeout=WAIT)
    settle(page)
    page.go_back()
    expect(page).to_have_url(re.compile("/sampling.*lesson.step=6.*source=model"), timeout=WAIT)
    expect(page.get_by_role("radio", name="变大")).to_be_visible(timeout=WAIT)
    page.get_by_role("link", name="2 嵌入查表").click()
    expect(page.get_by_role("button", name="回到课程")).to_be_visible(timeout=WAIT)
    expect(page.get_by_role("radio", name="变大")).to_have_count(0)


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
    assert "quantity=" in page.url and "quantity=" not in link  # short, for the code is read from the last row
    expect(page.get_by_role("img", name="QR code of the link")).to_be_visible()
    assert segno.make(link, error="l", micro=False).error == "L"  # it fits
    other = open_page(link)
    expect(other.get_by_role("radio", name="Residual stream")).to_be_checked(timeout=WAIT)
    expect(other.get_by_role("textbox", name="Prompt")).to_have_value("我喜欢")
    expect(other).to_have_url(page.url, timeout=WAIT)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stDialog")).to_have_count(0)


def test_a_draft_outlives_the_session(open_page: OpenPage) -> None:
    page = open_page("/sampling?lang=en&top_k=3")
    page.get_by_role("button", name="Share").click()
    page.get_by_role("button", name="Add this page as a step of a lesson").click()
    expect(page.get_by_text("Your lesson has 1 step.")).to_be_visible(timeout=WAIT)
    settle(page)
    page.goto(urljoin(page.url, "/lessons?" + urlencode({"lang": "en", **WRITING})))
    expect(page.get_by_text("top_k = 3").first).to_be_visible(timeout=WAIT)
