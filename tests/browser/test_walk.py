"""A visitor walks from text to the next token: every page, both languages, typed prompts, moved sliders."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ROOT, OpenPage, settle

PAGES = [
    "tokenization",
    "embedding",
    "position",
    "blocks",
    "logits",
    "sampling",
    "generation",
    "compare",
    "tying",
    "training",
]


def test_the_pages_are_those_of_the_pipeline() -> None:
    assert sorted(path.parent.name for path in ROOT.glob("pages/stages/*/page.py")) == sorted(
        ["overview", *PAGES, "lessons", "about"]
    )


def type_prompt(page: Page, text: str) -> None:
    field = page.get_by_role("textbox", name=re.compile("^(Prompt|提示词|提示)")).first
    field.fill(text)
    field.press("Enter")
    settle(page)


@pytest.mark.parametrize("name", PAGES)
def test_a_deep_link_shows_the_page_in_the_browsers_language(open_page: OpenPage, name: str) -> None:
    """In Chinese; the sweeps over every view open English ones."""
    page = open_page(f"/{name}?prompt=小明喜欢小红", locale="zh-CN")
    title = page.get_by_role("heading", level=1)
    expect(title).to_be_visible()
    assert not title.inner_text().isascii()
    assert page.get_by_test_id("stAlertContentError").count() == 0


def test_the_whole_walk_keeps_the_prompt(open_page: OpenPage) -> None:
    page = open_page("/")
    marked = page.get_by_test_id("stSidebarNav").locator("[aria-current=page]")
    expect(marked).to_have_text(re.compile("The whole way|全程"))
    type_prompt(page, "小红喜欢小明")
    for number, name in enumerate(PAGES, start=1):
        page.get_by_test_id("stSidebarNav").get_by_role("link", name=re.compile(rf"^{number} ")).click(delay=80)
        page.wait_for_url(re.compile(rf"/{name}(\?|$)"))
        settle(page)
        expect(page.get_by_label("Prompt", exact=True)).to_have_value("小红喜欢小明")
        assert page.get_by_role("heading", level=1).count() == 1
        expect(marked).to_have_text(re.compile(rf"^{number} "))


def test_the_language_switch_turns_the_page(open_page: OpenPage) -> None:
    page = open_page("/sampling", locale="en-US")
    page.get_by_role("radio", name="简体中文").click()
    settle(page)
    assert not page.get_by_role("heading", level=1).inner_text().isascii()
    assert "lang=zh" in page.url


def test_numbers_change_with_the_prompt_and_the_slider(open_page: OpenPage) -> None:
    page = open_page("/blocks?prompt=The king")
    before = page.get_by_test_id("stMain").inner_text()
    type_prompt(page, "The weather today is")
    after = page.get_by_test_id("stMain").inner_text()
    assert before != after
    slider = page.get_by_role("slider").first
    slider.focus()
    slider.press("ArrowRight")
    settle(page)
    assert page.get_by_test_id("stMain").inner_text() != after
