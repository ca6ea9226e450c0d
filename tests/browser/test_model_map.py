"""The diagram of the model in a real browser: a click chooses, and the address says it."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, settle


def test_a_click_on_a_block_a_head_and_a_part_chooses_it(open_page: OpenPage) -> None:
    page = open_page("/blocks?prompt=The+king")
    page.locator(".map .blocks button").nth(2).click()
    settle(page)
    expect(page).to_have_url(re.compile("layer=2"))
    expect(page.locator(".map .title")).to_have_text("Block 2 of small-world")

    page.locator(".map .heads button").nth(3).click()
    settle(page)
    expect(page).to_have_url(re.compile("head=3"))
    expect(page.locator(".map .heads button").nth(3)).to_have_attribute("aria-pressed", "true")

    page.locator(".map .branch > button", has_text="mlp").click()
    settle(page)
    expect(page).to_have_url(re.compile("blocks.view=mlp"))

    page.locator(".map .heads button").nth(1).click()  # a head belongs to attention
    settle(page)
    expect(page).to_have_url(re.compile("blocks.view=attention"))
    expect(page).to_have_url(re.compile("head=1"))
