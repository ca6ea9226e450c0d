"""The generation page in a real browser: run, stop, rewind, branch, look elsewhere, and come back."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage, settle

WAIT = 90_000  # milliseconds; a machine with other work to do is slow, not wrong
SETTINGS = "&temperature=0.8&top_p=0.9&seed=3&max_new_tokens=40"


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    return open_page(f"/generation?prompt=The%20king&pace=0{SETTINGS}")


def button(page: Page, action: str) -> Locator:
    return page.locator(f".st-key-generation-{action} button").first  # one with a help text is there twice


def tokens(page: Page) -> Locator:
    return page.locator(".generated .drawn, .generated .taken")


def text(page: Page) -> list[str]:
    return tokens(page).locator(".text").all_inner_texts()


def run_to_the_end(page: Page) -> list[str]:
    button(page, "run").click(timeout=WAIT)
    expect(button(page, "run")).to_be_disabled(timeout=WAIT)  # it is there again, and no token can follow
    settle(page)
    return text(page)


def choose(page: Page, number: int, position: int) -> None:
    tokens(page).nth(number).click(timeout=WAIT)
    expect(page.get_by_text(f"Position {position}:")).to_be_visible(timeout=WAIT)
    settle(page)


def press(page: Page, action: str) -> None:
    button(page, action).click(timeout=WAIT)
    settle(page)


def type_prompt(page: Page, prompt: str) -> None:
    page.get_by_label("Prompt", exact=True).fill(prompt)
    page.get_by_label("Prompt", exact=True).press("Enter")
    settle(page)


def go(page: Page, title: str) -> None:
    page.get_by_role("link", name=re.compile(title)).first.click(delay=80)
    settle(page)


def test_a_typed_prompt_is_continued_and_the_same_seed_gives_the_same_text(page: Page, open_page: OpenPage) -> None:
    type_prompt(page, "今天天气")
    first = run_to_the_end(page)
    assert len(first) > 3
    other = open_page(f"/generation?prompt=今天天气&pace=30{SETTINGS}")
    for _ in range(2):
        button(other, "step").click(timeout=WAIT)
        settle(other)
    tokens(other).first.click(timeout=WAIT)  # looking in between changes nothing
    settle(other)
    assert run_to_the_end(other) == first


def test_stop_acts_at_once_and_keeps_what_was_drawn(open_page: OpenPage) -> None:
    page = open_page(f"/generation?prompt=The%20king&pace=2{SETTINGS}")
    button(page, "run").click(timeout=WAIT)
    expect(tokens(page).nth(1)).to_be_visible(timeout=WAIT)
    button(page, "stop").click(timeout=WAIT)
    expect(button(page, "run")).to_be_enabled(timeout=WAIT)
    settle(page)
    kept = text(page)
    page.wait_for_timeout(1500)  # three tokens' time: none may come
    assert text(page) == kept and 2 <= len(kept) < 40


def test_a_generation_goes_on_while_the_reader_looks_at_another_page(open_page: OpenPage) -> None:
    page = open_page(f"/generation?prompt=The%20king&pace=5{SETTINGS}")
    button(page, "run").click(timeout=WAIT)
    expect(tokens(page).nth(1)).to_be_visible(timeout=WAIT)
    seen = text(page)
    go(page, "Tokenization")
    page.wait_for_timeout(1500)
    go(page, "7 · Generation")
    expect(tokens(page).nth(len(seen) + 2)).to_be_visible(timeout=WAIT)
    assert text(page)[: len(seen)] == seen
    expect(button(page, "run")).to_be_visible(timeout=WAIT)
    assert page.get_by_label("Prompt", exact=True).input_value() == "The king"


def test_rewind_branch_and_walk_back(page: Page) -> None:
    first = run_to_the_end(page)
    choose(page, 2, position=4)
    press(page, "go_to")
    expect(tokens(page)).to_have_count(3, timeout=WAIT)
    assert text(page) == first[:3]
    expect(page.locator(".generated .ahead")).to_have_count(len(first) - 3, timeout=WAIT)
    choose(page, 1, position=3)
    press(page, "take")
    expect(page.locator(".generated .taken")).to_have_count(1, timeout=WAIT)
    branch = text(page)
    assert branch[:1] == first[:1] and len(branch) == 2 and branch[1] != first[1]
    press(page, "branch-0")
    expect(tokens(page)).to_have_count(len(first), timeout=WAIT)
    assert text(page) == first
    press(page, "branch-1")
    expect(tokens(page)).to_have_count(len(branch), timeout=WAIT)
    assert text(page) == branch


def test_a_new_prompt_begins_anew_and_the_old_generation_comes_back(page: Page) -> None:
    first = run_to_the_end(page)
    type_prompt(page, "I like")
    expect(tokens(page)).to_have_count(0, timeout=WAIT)
    press(page, "earlier-0")
    expect(tokens(page)).to_have_count(len(first), timeout=WAIT)
    assert text(page) == first
    assert page.get_by_label("Prompt", exact=True).input_value() == "The king"


def test_hostile_text_is_shown_as_it_is(open_page: OpenPage) -> None:
    page = open_page("/generation?prompt=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&pace=0&max_new_tokens=2")
    run_to_the_end(page)
    assert page.locator(".generated img, .stCode img").count() == 0
    expect(page.locator(".stCode").first).to_contain_text("<img src=x onerror=alert(1)>")
