"""The generation page in a real browser: run, stop, rewind, branch, look elsewhere, and come back."""

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import OpenPage, settle
from tests.browser.delaying_proxy import DelayingProxy

WAIT = 90_000  # milliseconds; a machine with other work to do is slow, not wrong
SET = ("temperature", "top_p", "seed")
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
    expect(page.locator("strong").filter(has_text=f"Position {position}:")).to_be_visible(timeout=WAIT)
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
    go(page, "^7 ")
    expect(tokens(page).nth(len(seen) + 2)).to_be_visible(timeout=WAIT)
    assert text(page)[: len(seen)] == seen
    expect(button(page, "run")).to_be_visible(timeout=WAIT)
    expect(page.get_by_label("Prompt", exact=True)).to_have_value("The king")


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
    expect(page.get_by_label("Prompt", exact=True)).to_have_value("The king")


def test_hostile_text_is_shown_as_it_is(open_page: OpenPage) -> None:
    page = open_page("/generation?prompt=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&pace=0&max_new_tokens=2")
    run_to_the_end(page)
    assert page.locator(".generated img, .stCode img").count() == 0
    expect(page.locator(".stCode").first).to_contain_text("<img src=x onerror=alert(1)>")


def branch_list(page: Page) -> Locator:
    return page.locator("[class*=st-key-generation-branch-]")


def begin_a_branch(page: Page, number: int, position: int) -> None:
    choose(page, number, position)
    press(page, "take")
    expect(page.locator(".generated .taken")).to_have_count(1, timeout=WAIT)


def test_a_branch_is_named_pruned_and_put_back(page: Page) -> None:
    run_to_the_end(page)
    begin_a_branch(page, 2, position=4)
    branch = text(page)
    page.get_by_label("Name of the current branch").fill("<b>mine</b>")
    page.get_by_label("Name of the current branch").press("Enter")
    settle(page)
    expect(branch_list(page).nth(1)).to_contain_text("<b>mine</b>", timeout=WAIT)
    press(page, "prune")
    expect(branch_list(page)).to_have_count(0, timeout=WAIT)  # one branch needs no list
    press(page, "undo")
    expect(branch_list(page)).to_have_count(2, timeout=WAIT)
    assert text(page) == branch
    expect(page.get_by_label("Name of the current branch")).to_have_value("<b>mine</b>", timeout=WAIT)


def test_a_tree_is_saved_and_opened_by_someone_else(page: Page, open_page: OpenPage, tmp_path: Path) -> None:
    run_to_the_end(page)
    begin_a_branch(page, 2, position=4)
    seen = text(page)
    page.get_by_text("Save and open").click(timeout=WAIT)
    with page.expect_download(timeout=WAIT) as download:
        page.get_by_role("button", name="Save the tree as JSON").click(timeout=WAIT)
    file = tmp_path / "tree.json"
    download.value.save_as(file)

    other = open_page("/generation?prompt=Something%20else")
    other.get_by_text("Save and open").click(timeout=WAIT)
    other.locator("input[type=file]").set_input_files(file)
    expect(button(other, "open")).to_be_enabled(timeout=WAIT)
    press(other, "open")
    expect(branch_list(other)).to_have_count(2, timeout=WAIT)
    expect(tokens(other)).to_have_count(len(seen), timeout=WAIT)
    assert text(other) == seen
    expect(other.get_by_label("Prompt", exact=True)).to_have_value("The king")

    file.write_text(file.read_text(encoding="utf-8").replace('"small-world"', '"<img src=x>"'), encoding="utf-8")
    third = open_page("/generation?prompt=Something%20else")
    third.get_by_text("Save and open").click(timeout=WAIT)
    third.locator("input[type=file]").set_input_files(file)
    expect(button(third, "open")).to_be_enabled(timeout=WAIT)
    press(third, "open")
    expect(third.get_by_text("The file could not be opened. Nothing has changed.")).to_be_visible(timeout=WAIT)
    expect(third.get_by_text("it was made with the model '<img src=x>'")).to_be_visible(timeout=WAIT)
    assert third.locator(".stCode img").count() == 0


def test_the_search_answers_a_slider_and_draws_the_tree(open_page: OpenPage) -> None:
    page = open_page("/generation?prompt=I%20like&generation.view=search&search.tokens=2")
    expect(page.get_by_text("Greedy misses the more probable sentence.")).to_be_visible(timeout=WAIT)
    expect(page.locator(".js-plotly-plot").first).to_contain_text("apples", timeout=WAIT)
    page.get_by_role("slider", name="Tokens to look ahead").press("ArrowRight")
    settle(page)
    expect(page.get_by_text("1,600³ sentences")).to_be_visible(timeout=WAIT)


def test_work_in_another_view_goes_on_and_its_result_is_kept(open_page: OpenPage) -> None:
    page = open_page("/generation?prompt=I%20like&generation.view=many&many.texts=16&many.tokens=40")
    page.locator(".st-key-generation-many-start button").first.click(timeout=WAIT)
    settle(page)
    go(page, "Tokenization")
    page.wait_for_timeout(1000)
    go(page, "^7 ")
    expect(page.get_by_text("second: T 0.5", exact=False).first).to_be_visible(timeout=WAIT)
    expect(page.locator(".st-key-generation-many-start button").first).to_be_visible(timeout=WAIT)
    expect(page.get_by_role("heading", name="The numbers")).to_be_visible(timeout=WAIT)


def test_long_work_stops_when_asked_and_keeps_what_it_found(open_page: OpenPage) -> None:
    page = open_page("/generation?prompt=I%20like&generation.view=trap&trap.tokens=300")
    # A press at once, where the button is: on a fast machine the work may end at any moment, and its button with it.
    page.locator(".st-key-generation-trap-stop button").evaluate_all("(found) => found.forEach((one) => one.click())")
    expect(page.locator(".st-key-generation-trap-start button").first).to_be_visible(timeout=WAIT)
    expect(page.locator(".js-plotly-plot").first).to_be_visible(timeout=WAIT)


@pytest.fixture(params=[0.3, 1.5])
def late(request: pytest.FixtureRequest, delaying_proxy: DelayingProxy, open_page: OpenPage) -> Page:
    """The page at a server whose answers come late."""
    page = open_page(f"{delaying_proxy.url}/generation?prompt=The%20king&pace=0")
    expect(page.get_by_role("slider", name="Temperature")).to_be_visible(timeout=WAIT)
    delaying_proxy.delay = request.param
    return page


def comes_to(page: Page, proxy: DelayingProxy, temperature: str, seed: str) -> None:
    """Wait until the last of what was set has arrived, and whatever else is on its way."""
    page.wait_for_url(re.compile(rf"temperature={temperature}&.*seed={seed}&"), timeout=WAIT)
    expect(page.get_by_role("slider", name="Temperature")).to_have_value(f"{float(temperature):g}", timeout=WAIT)
    proxy.settle(page)


def drawn_with(page: Page) -> dict[str, float]:
    """What the address, the snippet and the sliders say is set; they must agree."""
    told = {name: float(value[-1]) for name, value in parse_qs(urlsplit(page.url).query).items() if name in SET}
    assert float(page.get_by_role("slider", name="Temperature").input_value()) == told["temperature"]
    assert float(page.get_by_label("Seed", exact=True).input_value()) == told["seed"]
    code = page.locator(".stCode").last.inner_text()
    assert f"seed={int(told['seed'])})" in code
    assert ("temperature=" in code) == (told["temperature"] != 1)
    return told


def test_what_was_set_last_wins_although_the_answers_come_late(late: Page, delaying_proxy: DelayingProxy) -> None:
    late.get_by_role("slider", name="Temperature").focus(timeout=WAIT)
    for _ in range(4):
        late.keyboard.press("ArrowLeft")
    late.wait_for_timeout(250)
    late.get_by_label("Seed", exact=True).fill("7")
    late.get_by_label("Seed", exact=True).press("Enter")
    comes_to(late, delaying_proxy, "0.8", "7")
    assert drawn_with(late) == {"temperature": 0.8, "top_p": 1.0, "seed": 7}

    late.get_by_role("button", name="T 0.8 + top-p 0.9").click()
    late.wait_for_timeout(250)
    late.get_by_label("Seed", exact=True).fill("8")
    late.get_by_label("Seed", exact=True).press("Enter")
    comes_to(late, delaying_proxy, "0.8", "8")
    assert drawn_with(late) == {"temperature": 0.8, "top_p": 0.9, "seed": 8}

    late.get_by_role("button", name="Greedy", exact=True).click()
    button(late, "step").click()
    comes_to(late, delaying_proxy, "0.0", "8")
    assert drawn_with(late)["temperature"] == 0
    expect(late.get_by_text("1 candidate: the seed has no effect.")).to_be_visible()
