"""The grid of switches in a real browser: press, see the change, take it back."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage, settle


def test_a_head_is_switched_off_in_the_grid_and_back_on_at_its_chip(open_page: OpenPage) -> None:
    page = open_page("/blocks?prompt=The+king&blocks.view=interventions")
    cells = page.locator(".grid .cell")
    expect(cells).to_have_count(4 * (4 + 2))
    expect(cells.first).to_have_attribute("title", re.compile(r"^blocks\.0\.attn\.head\.0: 0\.\d{4}$"))
    mlp = cells.nth(5)
    mlp.click()
    settle(page)
    expect(mlp).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(re.compile(r"interventions=blocks\.0\.mlp"))
    distance = page.get_by_test_id("stMetricValue").first
    expect(distance).not_to_have_text("0.0000")

    page.locator(".grid .whole").nth(3).press("Enter")  # a block, by keyboard
    settle(page)
    expect(page).to_have_url(re.compile(r"interventions=blocks\.0\.mlp%2Cblocks\.3"))

    page.get_by_role("button", name="block 0 · MLP ✕").click()
    settle(page)
    expect(mlp).to_have_attribute("aria-pressed", "false")
    page.get_by_role("button", name="Undo").click()
    settle(page)
    expect(mlp).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Clear all").click()
    settle(page)
    expect(distance).to_have_text("0.0000")

    cells.evaluate_all("all => all.slice(0, 3).forEach((cell) => cell.click())")  # before the first is answered
    settle(page)
    for place in range(3):
        expect(cells.nth(place)).to_have_attribute("aria-pressed", "true")
