"""The overview in a real browser: one screen, sliders without the server, draws as lmcore's, the walk by keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, WebSocket, expect

import lmcore
from lmcore.generation import generate
from tests.browser.conftest import OpenPage, settle

PROMPT = "The weather today is"
LAPTOP = {"width": 1366, "height": 768}
# The text of each part that is cut off or lies over another one's.
OVERLAPS = """() => {
  const root = document.querySelector(".stMain").querySelectorAll("*");
  const host = [...root].map((e) => e.shadowRoot).filter(Boolean).concat(document);
  const view = host.map((r) => r.querySelector(".overview")).find(Boolean);
  const boxes = [...view.querySelectorAll("h2, .text .token, .note, .head, .says:not(.brief) bdi, .knob-head, .button")]
    .filter((e) => e.textContent && e.checkVisibility())
    .map((e) => ({ text: e.textContent, box: e.getBoundingClientRect() }));
  const found = [];
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
    const wide = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
    const high = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
    if (wide > 1 && high > 1) found.push(`${a.text} over ${b.text}`);
  }));
  return found;
}"""


def view(page: Page):  # noqa: ANN201
    page.set_default_timeout(120_000)
    found = page.locator(".overview")
    found.locator(".bar-row").first.wait_for()
    return found


def tokens(page: Page) -> list[str]:
    return page.locator(".overview .text .row:not(.slot) .token").all_inner_texts()


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("prompt", [PROMPT, "今天天气", "The king and the queen " * 20])
def test_every_part_is_on_one_screen_and_no_label_lies_over_another(
    open_page: OpenPage, lang: str, prompt: str
) -> None:
    page = open_page(f"/?lang={lang}&prompt={prompt}", viewport=LAPTOP)
    parts = view(page).locator(".part")
    assert parts.count() == 9
    for part in parts.all():
        box = part.bounding_box()
        assert box and box["width"] > 20 and box["height"] > 40
        assert box["x"] >= 0 and box["x"] + box["width"] <= LAPTOP["width"]
    whole = view(page).bounding_box()
    assert whole and whole["height"] <= max(LAPTOP["height"] - whole["y"], 560)  # what the window leaves, and not less
    assert page.evaluate(OVERLAPS) == []


def test_a_slider_moves_the_bars_and_says_nothing_to_the_server_until_it_is_let_go(open_page: OpenPage) -> None:
    sent: list[object] = []

    page = open_page(f"/?lang=en&prompt={PROMPT}", viewport=LAPTOP)
    view(page)
    page.wait_for_timeout(500)

    def watch(socket: WebSocket) -> None:
        socket.on("framesent", lambda data: sent.append(data))

    page.on("websocket", watch)
    page.reload()
    settle(page)
    view(page)
    page.wait_for_timeout(800)
    slider = page.get_by_role("slider", name="Temperature")
    box = slider.bounding_box()
    assert box
    before = page.locator(".overview .bar-row .value").first.inner_text()
    sent.clear()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2, steps=6)
    expect(page.locator(".overview .bar-row .value").first).not_to_have_text(before)
    assert sent == []
    page.mouse.up()
    page.wait_for_url(re.compile("temperature=1[.]"))
    expect(page.get_by_test_id("stCode").last).to_contain_text("SamplingSettings(temperature=")


def test_draws_are_those_of_lmcore_with_that_seed_and_can_be_taken_back(open_page: OpenPage) -> None:
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode(PROMPT).ids
    settings = lmcore.SamplingSettings(temperature=1.4, seed=7)
    expected = [step.token for step in generate(lm, ids, settings, max_new_tokens=3)]
    page = open_page(f"/?lang=en&prompt={PROMPT}&temperature=1.4&seed=7", viewport=LAPTOP)
    view(page)
    begun = tokens(page)
    for n, token in enumerate(expected, start=1):
        page.get_by_role("button", name="Draw", exact=True).click()
        expect(page.locator(".overview .text .row:not(.slot)")).to_have_count(len(ids) + n)
        assert tokens(page)[-1] == token.decode().replace(" ", "␣")
    page.wait_for_url(re.compile("overview.drawn="))
    shared = open_page(page.url, viewport=LAPTOP)
    view(shared)
    assert tokens(shared) == tokens(page)
    page.locator(".overview .bar-row").nth(1).click()  # followed through the blocks
    expect(page.locator(".overview .bar-row[aria-selected=true]")).to_have_count(1)
    expect(page.locator(".overview .says").last).to_have_attribute("aria-label", re.compile("rank 2"))
    page.get_by_role("button", name="Step back").click()
    expect(page.locator(".overview .text .row:not(.slot)")).to_have_count(len(ids) + 2)
    page.get_by_role("button", name="Start over").click()
    expect(page.locator(".overview .text .row:not(.slot)")).to_have_count(len(ids))
    assert tokens(page) == begun


def test_the_walk_goes_by_arrow_keys_and_each_step_has_this_texts_numbers(open_page: OpenPage) -> None:
    page = open_page(f"/?lang=en&prompt={PROMPT}", viewport=LAPTOP, reduced_motion="no-preference")
    view(page)
    page.evaluate(
        "() => { window.moved = 0; const animate = Element.prototype.animate;"
        "Element.prototype.animate = function (...given) { window.moved++; return animate.apply(this, given); }; }"
    )
    page.get_by_role("button", name="Walk me through").click()
    seen = []
    for place in range(1, 10):
        expect(page.locator(".overview .place")).to_have_text(f"{place} of 9")
        if place == 4:
            assert page.evaluate("window.moved") > 0  # numbers are seen on their way
            page.emulate_media(reduced_motion="reduce")
            page.evaluate("window.moved = 0")
        assert page.locator(".overview .part.lit").count() == 1
        seen.append(page.locator(".overview .caption").inner_text())
        page.keyboard.press("ArrowRight")
    expect(page.locator(".overview .part.lit")).to_have_count(0)
    assert page.evaluate("window.moved") == 0  # where less motion is asked for, each step is a cut
    assert len(set(seen)) == 9 and not any("{" in caption or "undefined" in caption for caption in seen)
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode(PROMPT).ids
    assert f"number {ids[-1]} of 1,600" in seen[0]
    best = f"{100 * lm(ids)[-1].softmax(-1).max().item():.1f} %"
    assert best in seen[6]


def test_a_part_opens_its_page_at_this_state_with_what_was_drawn(open_page: OpenPage) -> None:
    page = open_page(f"/?lang=en&prompt={PROMPT}&layer=1&overview.head=2", viewport=LAPTOP)
    view(page)
    page.get_by_role("button", name="Draw", exact=True).click()
    expect(page.locator(".overview .text .drawn")).to_have_count(1)
    drawn = tokens(page)[-1].replace("␣", " ")
    page.locator(".overview .part.blocks a.lead").click()
    page.wait_for_url(re.compile(r"/blocks\?"))
    settle(page)
    assert "layer=1" in page.url and "head=2" in page.url and "position=4" in page.url
    expect(page.get_by_role("textbox", name="Prompt").first).to_have_value(PROMPT + drawn)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="The whole way").click()
    settle(page)
    view(page)
    assert tokens(page)[-1] == drawn.replace(" ", "␣")


@pytest.mark.parametrize("address", ["/", "/overview"])
def test_it_is_the_first_page_and_has_an_address_of_its_own(open_page: OpenPage, address: str) -> None:
    page = open_page(f"{address}?lang=zh")
    expect(page.get_by_role("heading", level=1)).to_have_text("全程")
    view(page)
