"""The map of tokens in a real browser: it moves, finds, tells, chooses, encircles and plays."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

import lmcore
from lmcore.analysis.embedding.pca import principal_components
from lmcore.corpus.occurring import occurring_tokens
from tests.browser.conftest import OpenPage, settle

LAST = f"{lmcore.builtin.record(lmcore.builtin.DEFAULT)['training']['steps']:,} steps"


def token_id(text: str) -> int:
    (token,) = lmcore.builtin.tokenizer().encode(text).ids
    return token


def labels(page: Page) -> list[str]:
    return page.locator(".token-map").evaluate("root => root.map.data.labels")


def on_screen(page: Page, index: int) -> tuple[float, float]:
    """Return where a point stands in the window."""
    canvas = page.locator(".token-map canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    x, y = page.locator(".token-map").evaluate(
        "(root, i) => [root.map.screen[3 * i], root.map.screen[3 * i + 1]]", index
    )
    return box["x"] + x, box["y"] + y


def alone(page: Page) -> int:
    """Return the index of the point with the most room around it."""
    screen = np.array(page.locator(".token-map").evaluate("root => [...root.map.screen]")).reshape(-1, 3)[:, :2]
    apart = np.linalg.norm(screen[:, None] - screen[None], axis=-1) + np.diag([np.inf] * len(screen))
    return int(apart.min(1).argmax())


def output(page: Page) -> Locator:
    return page.locator(".token-map output")


def test_hover_tells_the_numbers_and_a_click_chooses(open_page: OpenPage) -> None:
    page = open_page("/embedding?table.view=map&lang=en")
    index = alone(page)
    label = labels(page)[index]
    page.mouse.move(*on_screen(page, index))
    tip = page.locator(".token-map .tip")
    expect(tip).to_contain_text(label)
    table = lmcore.load().model.token_embedding.weight.detach()
    rows = table[list(occurring_tokens(lmcore.builtin.tokenizer()))]
    token = int(label.rsplit("#", 1)[1])
    expected = principal_components(rows).project(table[[token]], 2)[0].tolist()
    told = [float(number) for number in re.search(r"\((.*)\)", tip.inner_text())[1].split(", ")]
    np.testing.assert_allclose(told, expected, atol=2e-6)

    page.mouse.click(*on_screen(page, index))
    settle(page)
    expect(page).to_have_url(re.compile(f"token={token}(&|$)"))
    assert page.locator(".token-map").evaluate("root => root.map.data.chosen") == index


def test_search_marks_at_once_and_enter_chooses(open_page: OpenPage) -> None:
    page = open_page("/embedding?table.view=map&lang=en")
    field = page.locator(".token-map input[type=search]")
    field.fill("国王")
    expect(page.locator(".token-map .found")).to_have_text("1 of 650")
    before = page.url
    for composing in ({"isComposing": True}, {"keyCode": 229}):  # an input method's own Enter chooses nothing
        field.evaluate(
            "(field, kind) => field.dispatchEvent("
            "new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, ...kind }))",
            composing,
        )
    settle(page)
    assert page.url == before
    field.press("Enter")
    settle(page)
    expect(page).to_have_url(re.compile(f"token={token_id('国王')}(&|$)"))


def test_a_box_lists_what_it_holds_and_reset_forgets_it(open_page: OpenPage) -> None:
    page = open_page("/embedding?table.view=map&lang=en&table.shown=words&table.words=king+queen+cat")
    page.get_by_role("button", name="Box", exact=True).click()
    x, y = on_screen(page, 0)
    page.mouse.move(x - 12, y - 12)
    page.mouse.down()
    page.mouse.move(x + 12, y + 12, steps=4)
    page.mouse.up()
    settle(page)
    expect(page.get_by_text("Tokens selected: 1.")).to_be_visible()
    page.locator(".token-map .reset").click()
    settle(page)
    expect(page.get_by_text("Tokens selected")).to_have_count(0)


def test_dragging_turns_three_dimensions_and_nothing_is_sent(open_page: OpenPage) -> None:
    page = open_page("/embedding?table.view=map&lang=en&table.axes=3")
    before = page.locator(".token-map").evaluate("root => root.map.camera.yaw")
    address = page.url
    box = page.locator(".token-map canvas").bounding_box()
    page.mouse.move(box["x"] + 30, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 130, box["y"] + 60, steps=5)
    page.mouse.up()
    assert page.locator(".token-map").evaluate("root => root.map.camera.yaw") > before + 0.5
    assert page.url == address


def test_the_film_plays_to_its_end_and_the_neighbours_with_it(open_page: OpenPage) -> None:
    page = open_page(f"/embedding?table.view=film&lang=en&token={token_id('猫')}")
    expect(output(page)).to_contain_text(LAST)
    slider = page.locator(".token-map .film input")
    slider.evaluate("element => { element.value = 0; element.oninput(); }")
    expect(output(page)).to_have_text(re.compile("^0 steps · "))
    at_first = page.locator(".token-map .neighbours").inner_text()
    spread = "root => Math.max(...root.map.points.map(Math.abs))"
    start = page.locator(".token-map").evaluate(spread)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(output(page)).to_contain_text(LAST, timeout=30_000)
    expect(page.get_by_role("button", name="Play")).to_be_visible(timeout=10_000)
    at_last = page.locator(".token-map .neighbours").inner_text()
    assert at_last != at_first and "狗" in at_last
    assert page.locator(".token-map").evaluate(spread) > 2 * start


def test_tsne_is_made_while_one_looks_on(open_page: OpenPage) -> None:
    page = open_page("/embedding?table.view=map&lang=en&table.method=tsne&table.start=random&table.seed=77")
    page.get_by_role("button", name="Make the map").click()
    expect(page.get_by_text(re.compile("Making the map · step [1-9]"))).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_text("Stopped · step")).to_be_visible(timeout=15_000)
    expect(page.get_by_role("button", name="Make the map")).to_be_visible()


def test_a_large_vocabulary_is_searched(open_page: OpenPage) -> None:
    name = "smollm2-135m-instruct"
    if name not in [model.name for model in lmcore.available() if model.installed]:
        pytest.skip(f"{name} is not installed")
    page = open_page(f"/embedding?table.view=neighbours&lang=en&model={name}")
    field = page.get_by_role("textbox", name="Token: search")
    field.fill("queen")
    field.press("Enter")
    settle(page)
    expect(page.get_by_role("combobox", name="Token")).to_have_value("␣queen#15731", timeout=60_000)
