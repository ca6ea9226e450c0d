"""The text with arcs in a real browser: as many as the pattern has weights, as wide as they are."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

import lmcore
from tests.browser.conftest import OpenPage, settle


def test_arcs_join_the_query_to_what_it_attends_to(open_page: OpenPage) -> None:
    page = open_page("/blocks?prompt=The+weather+today+is&layer=1&head=2")
    lm, trace = lmcore.load("small-world"), lmcore.Trace()
    lm(lm.tokenizer.encode("The weather today is").ids, trace=trace)
    weights = trace["blocks.1.attn.pattern"][2]
    tokens, arcs = page.locator(".text .token"), page.locator(".frame path")
    expect(tokens).to_have_count(4)

    def drawn() -> list[float]:
        return sorted(
            float(width.removesuffix("px")) for width in arcs.evaluate_all("all => all.map(a => a.style.strokeWidth)")
        )

    shown = weights[3][weights[3] >= 0.005]
    expect(arcs).to_have_count(len(shown))
    assert drawn() == pytest.approx(sorted((0.75 + 9 * shown).tolist()), abs=0.01)
    expect(tokens.nth(1)).to_have_attribute("title", f"3 → 1: {100 * weights[3, 1]:.2f} %")

    tokens.nth(1).hover()  # the pointer shows another query's arcs, and chooses nothing
    expect(arcs).to_have_count(int((weights[1] >= 0.005).sum()))
    expect(tokens.nth(2)).to_have_class(re.compile("future"))
    tokens.nth(1).click()
    settle(page)
    expect(page).to_have_url(re.compile("position=1"))
    expect(page.locator(".strip .chip").nth(1)).to_have_attribute("aria-selected", "true")
