"""The position page in a browser: a measurement that goes on in the background, and views that fit a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage, settle

VIEWS = ["order", "length", "distance", "compare", "sinusoidal", "learned", "rope", "scaling", "alibi", "relative"]


def charts(page: Page) -> int:
    return page.get_by_test_id("stPlotlyChart").count()


def test_long_texts_are_measured_while_one_looks_and_kept_when_one_leaves(open_page: OpenPage) -> None:
    page = open_page("/position?position.view=length&position.windows=16")
    expect(page.get_by_test_id("stMain")).to_contain_text("Learned positions end at position 127")
    expect(page.get_by_test_id("stPlotlyChart")).to_have_count(2, timeout=60_000)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=re.compile("^4 ")).click(delay=80)
    page.wait_for_url(re.compile("/blocks"))
    settle(page)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name=re.compile("^3 ")).click(delay=80)
    page.wait_for_url(re.compile("/position"))
    # The run went on meanwhile; the table is there when it has ended.
    expect(page.get_by_test_id("stDataFrame")).to_have_count(2, timeout=120_000)
    expect(page.get_by_test_id("stProgress")).to_have_count(0)


def test_a_measurement_can_be_stopped(open_page: OpenPage) -> None:
    page = open_page("/position?position.view=length&position.windows=128")
    page.locator("[class*='st-key-position-stop'] button").click()
    go_on = page.locator("[class*='st-key-position-go_on'] button")
    expect(go_on).to_be_visible(timeout=30_000)
    expect(page.get_by_test_id("stMain")).to_contain_text("Stopped")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_a_phone(open_page: OpenPage, view: str) -> None:
    page = open_page(
        f"/position?position.view={view}&prompt=小明喜欢小红", viewport={"width": 390, "height": 844}, locale="zh-CN"
    )
    expect(page.get_by_test_id("stPlotlyChart").first).to_be_visible(timeout=60_000)
    wide = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
    assert wide <= 390
