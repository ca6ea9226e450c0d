"""Values follow the reader from page to page and into the address; an address opens the same page."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, Server, settle


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server("tests/browser/link_app/app.py", tmp_path_factory.mktemp("link") / "log.txt")
    yield running
    running.stop()


def press(page: Page, label: str, key: str, times: int = 1) -> None:
    slider = page.get_by_role("slider", name=label)
    for _ in range(times):
        slider.press(key)
    page.wait_for_timeout(400)  # a slider sends its value a moment after the last key
    settle(page)


def go(page: Page, name: str) -> None:
    page.get_by_role("link", name=name, exact=True).first.click(delay=80)
    settle(page)


def query(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def expect_query(page: Page, **expected: str) -> None:
    for _ in range(50):
        if query(page) == expected:
            return
        page.wait_for_timeout(100)
    assert query(page) == expected


def test_values_survive_page_changes_and_reach_the_address(open_page: OpenPage, pages: Server) -> None:
    page = open_page(pages.url + "/?prompt=今天天气真不错")
    press(page, "Layer", "ArrowRight", 3)
    press(page, "Place", "ArrowRight", 4)
    page.get_by_role("radio", name="scores").click()
    page.get_by_text("Flag", exact=True).click()
    settle(page)
    expect(page.get_by_text("FIRST layer=5 place=5 kind=scores flag=True")).to_be_visible()
    go(page, "Second")
    expect(page.get_by_text("SECOND layer=5")).to_be_visible()
    expect_query(page, lang="en", prompt="今天天气真不错", layer="5")
    go(page, "Second")  # to where the reader already is
    expect_query(page, lang="en", prompt="今天天气真不错", layer="5")
    press(page, "Layer", "ArrowRight")
    go(page, "First")
    expect(page.get_by_text("FIRST layer=6 place=5 kind=scores flag=True")).to_be_visible()
    assert page.get_by_label("Prompt").input_value() == "今天天气真不错"
    expect_query(page, lang="en", prompt="今天天气真不错", layer="6", place="5", kind="scores", flag="1")


def test_a_fragment_reaches_the_address_and_leaves_the_rest_alone(open_page: OpenPage, pages: Server) -> None:
    page = open_page(pages.url + "/third?layer=4")
    press(page, "Layer", "ArrowRight", 3)
    expect(page.get_by_text("THIRD layer=7")).to_be_visible()
    expect_query(page, lang="en", prompt="hello", layer="7")
    expect(page.get_by_text("RUNS 1")).to_be_visible()
    expect(page.get_by_text("AFTER")).to_be_visible()
    go(page, "Second")
    expect(page.get_by_text("SECOND layer=7")).to_be_visible()


def test_a_fragment_that_changes_what_stands_around_it_runs_everything(open_page: OpenPage, pages: Server) -> None:
    page = open_page(pages.url + "/third")
    page.get_by_role("button", name="Write").click()
    expect(page.get_by_label("Prompt")).to_have_value("written")
    expect(page.get_by_text("RUNS 2")).to_be_visible()
    expect_query(page, lang="en", prompt="written", layer="2")


def test_an_address_opens_the_same_page_elsewhere(open_page: OpenPage, pages: Server) -> None:
    address = pages.url + "/?prompt=abcdef&layer=7&place=3&kind=scores&flag=1"
    page = open_page(address)
    expect(page.get_by_text("FIRST layer=7 place=3 kind=scores flag=True")).to_be_visible()
    page.reload()
    settle(page)
    expect(page.get_by_text("FIRST layer=7 place=3 kind=scores flag=True")).to_be_visible()
    deep = open_page(pages.url + "/second?prompt=abcdef&layer=7")
    expect(deep.get_by_text("SECOND layer=7")).to_be_visible()


def test_back_and_forward_change_the_page_once_and_lose_nothing(open_page: OpenPage, pages: Server) -> None:
    page = open_page(pages.url + "/?prompt=abcdef")
    press(page, "Layer", "ArrowRight", 3)
    press(page, "Place", "ArrowRight", 2)
    go(page, "Second")
    press(page, "Layer", "ArrowRight", 2)
    page.go_back()
    settle(page)
    expect(page.get_by_text("FIRST layer=7 place=3")).to_be_visible()
    page.go_forward()
    settle(page)
    expect(page.get_by_text("SECOND layer=7")).to_be_visible()
    expect_query(page, lang="en", prompt="abcdef", layer="7")


def test_values_that_do_not_fit_are_replaced_and_said(open_page: OpenPage, pages: Server) -> None:
    page = open_page(pages.url + "/?prompt=abcdef&layer=99&place=x&kind=%3Cb%3E&flag=maybe")
    expect(page.get_by_text("FIRST layer=10 place=1 kind=pattern flag=False")).to_be_visible()
    expect(page.get_by_text("99 is not a number from 0 to 10; showing 10.")).to_be_visible()
    expect(page.get_by_text("x is not a number from 0 to 5; showing 1.")).to_be_visible()
    expect(page.get_by_text("<b> is not a choice here; showing pattern.")).to_be_visible()
    expect_query(page, lang="en", prompt="abcdef", layer="10", place="1", kind="pattern", flag="0")
    press(page, "Layer", "ArrowLeft")
    expect(page.get_by_text("99 is not a number")).to_have_count(0)


def test_a_range_that_shrinks_moves_the_value_and_says_so(open_page: OpenPage, pages: Server) -> None:
    page = open_page(pages.url + "/?prompt=abcdefghij&place=9")
    page.get_by_label("Prompt").fill("abc")
    page.get_by_label("Prompt").press("Enter")
    settle(page)
    expect(page.get_by_text("FIRST layer=2 place=2")).to_be_visible()
    expect(page.get_by_text("9 is not a number from 0 to 2; showing 2.")).to_be_visible()
    page.get_by_label("Prompt").fill("abcdef")
    page.get_by_label("Prompt").press("Enter")
    settle(page)
    expect(page.get_by_text("FIRST layer=2 place=2")).to_be_visible()
    press(page, "Place", "ArrowRight", 2)
    expect(page.get_by_text("FIRST layer=2 place=4")).to_be_visible()
    for prompt, place in (("abcdefg", 4), ("abcdefgh", 4), ("abcdefghi", 4), ("abcd", 3), ("abcde", 3)):
        page.get_by_label("Prompt").fill(prompt)
        page.get_by_label("Prompt").press("Enter")
        settle(page)
        expect(page.get_by_text(f"FIRST layer=2 place={place}")).to_be_visible()


def test_a_link_in_the_app_sets_values_each_time_it_is_followed(open_page: OpenPage, pages: Server) -> None:
    page = open_page(pages.url + "/?prompt=abcdef&layer=7")
    go(page, "set it")
    expect(page.get_by_text("SECOND layer=4")).to_be_visible()
    assert page.get_by_label("Prompt").input_value() == "set"
    expect_query(page, lang="en", prompt="set", layer="4")
    press(page, "Layer", "ArrowRight")
    expect(page.get_by_text("SECOND layer=5")).to_be_visible()
    go(page, "set again")
    expect(page.get_by_text("SECOND layer=9")).to_be_visible()
    go(page, "First")
    go(page, "set it")
    expect(page.get_by_text("SECOND layer=4")).to_be_visible()
    go(page, "set again")
    expect(page.get_by_text("SECOND layer=9")).to_be_visible()


def test_typed_text_is_kept_when_the_reader_turns_to_another_page_at_once(open_page: OpenPage, pages: Server) -> None:
    page = open_page(pages.url + "/?prompt=abcdef")
    page.get_by_label("Prompt").fill("typed")
    go(page, "Second")
    expect(page.get_by_text("SECOND layer=2")).to_be_visible()
    assert page.get_by_label("Prompt").input_value() == "typed"
    expect_query(page, lang="en", prompt="typed", layer="2")


def test_the_session_returns_when_the_server_was_restarted(open_page: OpenPage, pages: Server) -> None:
    page = open_page(pages.url + "/?prompt=abcdef")
    press(page, "Layer", "ArrowRight", 4)
    expect_query(page, lang="en", prompt="abcdef", layer="6", place="1", kind="pattern", flag="0")
    pages.stop()
    page.wait_for_timeout(300)
    pages.start()
    page.reload()
    settle(page)
    expect(page.get_by_text("FIRST layer=6")).to_be_visible()
    assert page.get_by_label("Prompt").input_value() == "abcdef"
