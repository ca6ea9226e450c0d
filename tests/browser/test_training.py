"""A model learns in the browser: curves grow in place, other sessions and pages go on, buttons do what they say."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, settle

ADDRESS = "/training?training.view=live&training.d_model=16&training.batch=4&training.steps="
PROGRESS = re.compile(r"step (\d+) of")


def steps_done(page: Page) -> int:
    return int(PROGRESS.search(page.get_by_test_id("stProgress").inner_text())[1])


def wait_for_more_than(page: Page, steps: int) -> None:
    for _ in range(600):
        if steps_done(page) > steps:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"still at step {steps_done(page)}")


def test_a_model_learns_while_another_session_goes_on(open_page: OpenPage) -> None:
    # Large enough not to be done before it is stopped.
    page = open_page("/training?training.view=live&training.d_model=64&training.batch=16&training.steps=1000")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_test_id("stProgress")).to_contain_text("Training", timeout=60_000)
    wait_for_more_than(page, 0)
    chart = page.get_by_test_id("stVegaLiteChart").first
    chart.evaluate("element => { element.querySelector('canvas, svg').dataset.mark = 'same'; }")

    other = open_page("/tokenization?prompt=我喜欢猫", locale="zh-CN")
    expect(other.get_by_role("heading", name="分词")).to_be_visible()

    wait_for_more_than(page, 25)
    assert chart.evaluate("element => element.querySelector('canvas, svg').dataset.mark") == "same"  # not drawn anew

    page.get_by_role("link", name="Tokenization").first.click(delay=80)
    settle(page)
    page.get_by_role("link", name="Joint training").first.click(delay=80)
    expect(page.get_by_test_id("stProgress")).to_contain_text("Training")
    wait_for_more_than(page, 25)

    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_test_id("stProgress")).to_contain_text("Paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_test_id("stProgress")).to_contain_text("Training")
    expect(page.get_by_role("button", name="Resume")).to_have_count(0)  # it makes room, and Stop moves up
    settle(page)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_test_id("stProgress")).to_contain_text("Stopped", timeout=60_000)
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Download as CSV")).to_be_visible()


def test_a_finished_training_says_so_by_itself(open_page: OpenPage) -> None:
    page = open_page(ADDRESS + "50", locale="zh-CN")
    page.get_by_role("button", name="开始", exact=True).click()
    expect(page.get_by_test_id("stProgress")).to_contain_text("已完成", timeout=120_000)
    expect(page.get_by_role("button", name="开始", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="下载 CSV")).to_be_visible()
