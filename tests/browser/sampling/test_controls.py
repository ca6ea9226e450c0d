"""The lab's controls in a real browser: what moves in the frame in which a slider moves, and what is sent."""

from __future__ import annotations

from playwright.sync_api import expect

import lmcore
from lmcore.sampling import STAGES
from tests.browser.conftest import OpenPage, settle
from tests.browser.sampling.page import (
    MODEL,
    assert_rows_are,
    changed,
    count_messages,
    expect_query,
    model_result,
    open_lab,
    query,
    rows,
    tile,
)


def test_keys_move_the_numbers_and_only_letting_go_sends_a_message(open_page: OpenPage) -> None:
    page = open_lab(open_page)
    sent = count_messages(page)
    slider = page.get_by_role("slider", name="Temperature", exact=True)
    slider.focus()
    seen = [tile(page, "entropy")]
    for _ in range(5):
        page.keyboard.down("ArrowLeft")
        seen.append(changed(page, "entropy", seen[-1]))
    assert len(set(seen)) == 6
    page.wait_for_timeout(500)
    assert sent == []
    page.keyboard.up("ArrowLeft")
    expect_query(page, temperature="0.95")
    assert sent
    result, _ = model_result(temperature=0.95)
    assert seen[-1] == tile(page, "entropy") == f"{result.entropy_bits:.3f} bits"
    expect(page.get_by_test_id("stCode")).to_contain_text("temperature=0.95")


def test_dragging_moves_the_numbers_and_sends_nothing_until_release(open_page: OpenPage) -> None:
    page = open_lab(open_page, top_p="0.9")
    sent = count_messages(page)
    slider = page.get_by_role("slider", name="Top-p", exact=True)
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.88 * box["width"], middle)
    page.mouse.down()
    seen = set()
    for share in (0.8, 0.6, 0.4, 0.2):
        page.mouse.move(box["x"] + share * box["width"], middle)
        page.wait_for_timeout(300)
        seen.add(tile(page, "removed"))
    assert len(seen) > 1
    assert sent == []
    page.mouse.up()
    top_p = slider.evaluate("e => e.getAttribute('aria-valuetext')")
    assert 0.15 < float(top_p) < 0.25
    expect_query(page, top_p=top_p)
    assert sent
    result, _ = model_result(top_p=float(top_p))
    assert_rows_are(page, result)


def test_stages_are_reordered_by_keyboard_and_by_dragging(open_page: OpenPage) -> None:
    page = open_lab(open_page, temperature="1.5", top_p="0.9")
    grip = page.get_by_role("button", name="Move Temperature")
    for _ in range(6):
        grip.press("ArrowDown")
    settle(page)
    order = [name for name in STAGES if name != "temperature"]
    order.insert(order.index("typical_p") + 1, "temperature")  # past every card in sight; the rare ones are folded
    expect_query(page, order=",".join(order))
    result, _ = model_result(temperature=1.5, top_p=0.9, order=tuple(order))
    assert_rows_are(page, result)
    assert page.get_by_role("button", name="Move Temperature").evaluate("e => e.getRootNode().activeElement === e")
    handle = page.get_by_role("button", name="Move Temperature").bounding_box()
    target = page.get_by_role("button", name="Move Top-k").bounding_box()
    page.mouse.move(handle["x"] + 5, handle["y"] + 5)
    page.mouse.down()
    for step in range(1, 21):
        page.mouse.move(handle["x"] + 5, handle["y"] + 5 + (target["y"] - 8 - handle["y"]) * step / 20)
    page.mouse.up()
    page.wait_for_timeout(500)
    settle(page)
    order = query(page).get("order", ",".join(STAGES)).split(",")
    assert order.index("temperature") < order.index("top_p")
    result, _ = model_result(temperature=1.5, top_p=0.9, order=tuple(order))
    assert_rows_are(page, result)


def test_dragging_a_card_past_others_leaves_the_page_where_it_is(open_page: OpenPage) -> None:
    page = open_lab(open_page, temperature="1.5", top_p="0.9")
    handle = page.get_by_role("button", name="Move Top-p")
    handle.scroll_into_view_if_needed()
    page.evaluate("document.querySelector('[data-testid=stMain]').scrollBy(0, 300)")  # the list begins above the view
    page.wait_for_timeout(300)
    scrolled = page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")
    start = handle.bounding_box()
    above = page.get_by_role("button", name="Move Temperature").bounding_box()
    page.mouse.move(start["x"] + 5, start["y"] + 5)
    page.mouse.down()
    for step in range(1, 31):
        page.mouse.move(start["x"] + 5, start["y"] + 5 + (above["y"] - start["y"]) * step / 30)
        page.wait_for_timeout(30)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == scrolled
    page.mouse.up()
    order = [name for name in STAGES if name != "top_p"]
    order.insert(order.index("temperature"), "top_p")
    expect_query(page, order=",".join(order))
    expect(handle).to_be_focused()


def test_a_token_that_stands_twice_is_switched_off_once_in_the_history(open_page: OpenPage) -> None:
    page = open_lab(open_page, prompt="The weather today is the weather", repetition_penalty="1.3")
    page.get_by_text("History: the tokens that penalties count").click()
    settle(page)
    weather = page.get_by_role("toolbar", name="Before this position").get_by_role("button", name="weather")
    expect(weather).to_have_count(2)
    for out in ("1", "", "1"):
        weather.first.click(delay=80)
        expect_query(page, history_out=out)
    weather.last.click(delay=80)
    expect_query(page, history_out="1,5")
    page.get_by_role("button", name="Restore the tokens of the source").click(delay=80)
    expect_query(page, history_out="")


def test_greedy_and_clamping_are_said(open_page: OpenPage) -> None:
    page = open_lab(open_page, temperature="0", top_k="999999")
    expect(page.locator("[data-stage=temperature]")).to_contain_text("greedy")
    expect(page.locator("[data-stage=top_k]")).to_contain_text("is limited to the 1,600 tokens")
    expect(page.locator(".tile[data-tile=candidates]")).to_contain_text("the seed has no effect")


def test_switching_a_stage_off_and_on_keeps_its_value(open_page: OpenPage) -> None:
    page = open_lab(open_page, top_k="7")
    switch = page.get_by_role("switch", name="Top-k", exact=True)
    switch.uncheck()
    expect_query(page, top_k="0")
    expect(page.locator("[data-stage=top_k] .effect")).to_be_hidden()
    switch.check()
    expect_query(page, top_k="7")


def test_a_value_that_is_not_allowed_is_refused_and_nothing_changes(open_page: OpenPage) -> None:
    page = open_lab(open_page, temperature="0.5")
    before = rows(page, 5)
    field = page.get_by_role("spinbutton", name="Temperature")
    field.fill("-1")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert rows(page, 5) == before
    field.fill("0.7")
    field.press("Enter")
    expect_query(page, temperature="0.7")


def test_a_smaller_vocabulary_has_each_control_once_and_the_slider_is_bounded_by_it(open_page: OpenPage) -> None:
    page = open_lab(open_page, top_k="400")
    page.get_by_role("radio", name="Worked example").or_(page.get_by_role("button", name="Worked example")).click()
    expect(page.locator(".tile[data-tile=candidates] .under")).to_have_text("of 5")
    expect(page.locator(".stage")).to_have_count(len(STAGES))
    slider = page.get_by_role("slider", name="Top-k", exact=True)
    slider.press("Home")
    slider.press("ArrowRight")
    expect(page.locator(".tile[data-tile=candidates] strong")).to_have_text("2")
    assert slider.get_attribute("max") == "5"  # 1 to 5, and off


def test_a_control_stays_the_same_when_other_logits_of_the_same_vocabulary_come(open_page: OpenPage) -> None:
    page = open_lab(open_page)
    slider = page.get_by_role("slider", name="Temperature", exact=True)
    slider.evaluate("e => { globalThis.held = e; }")
    page.get_by_role("textbox", name="Prompt").fill("The king")
    page.get_by_role("textbox", name="Prompt").press("Enter")
    settle(page)
    lm = lmcore.load(MODEL)
    best = int(lm(lm.tokenizer.encode("The king").ids)[-1].argmax())
    expect(page.locator(".row .id").first).to_have_text(str(best))
    assert slider.evaluate("e => e === globalThis.held && e.isConnected")
