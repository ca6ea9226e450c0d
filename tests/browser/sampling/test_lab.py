"""The lab in a real browser: what it shows is what lmcore computes."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import lmcore
from lmcore.sampling import PRESETS, STAGES, SamplingSettings, reshape
from tests.browser.conftest import PASTE, OpenPage, Server, as_app, settle
from tests.browser.sampling.page import (
    MODEL,
    assert_rows_are,
    changed,
    expect_query,
    model_result,
    open_lab,
    rows,
    tile,
)


def test_the_page_shows_what_lmcore_computes(open_page: OpenPage) -> None:
    page = open_lab(open_page, temperature="1.3", top_k="8", top_p="0.9", repetition_penalty="1.2")
    result, _ = model_result(temperature=1.3, top_k=8, top_p=0.9, repetition_penalty=1.2)
    assert_rows_are(page, result)
    assert tile(page, "entropy") == f"{result.entropy_bits:.3f} bits"
    assert tile(page, "candidates") == f"{result.candidates}"
    expect(page.locator(".tile[data-tile=candidates] .under")).to_have_text(f"of {result.start.vocab_size:,}")
    assert tile(page, "removed") == f"{100 * result.removed_mass:.2f} %"
    # Removed ones are named after the stage that removed them, and the rest is one row.
    lost = {row["now"] for row in rows(page, 20)} - {""}
    assert lost & {"Top-k", "Top-p"}
    expect(page.locator(".rest .token")).to_contain_text(f"{result.start.vocab_size - 20:,} others")


def test_settings_survive_a_page_change_and_other_pages_links(open_page: OpenPage) -> None:
    page = open_lab(open_page, min_p="0.1")
    page.get_by_role("slider", name="Temperature", exact=True).press("ArrowRight")
    expect_query(page, temperature="1.01")
    page.get_by_role("link", name=re.compile("Tokenization")).first.click(delay=80)
    settle(page)
    page.get_by_role("link", name=re.compile("Sampling")).first.click(delay=80)
    settle(page)
    page.locator(".row .now").first.wait_for()
    expect_query(page, temperature="1.01", min_p="0.1")
    assert page.get_by_role("spinbutton", name="Temperature").input_value() == "1.01"
    page.get_by_role("link", name=re.compile("The usual pairing")).click(delay=80)
    settle(page)
    expect(page.get_by_role("spinbutton", name="Temperature")).to_have_value("0.8")
    result, _ = model_result(temperature=0.8, top_p=0.9, min_p=0.1)
    assert_rows_are(page, result)


def test_the_prompt_changes_the_picture(open_page: OpenPage) -> None:
    page = open_lab(open_page)
    before = rows(page, 3)
    page.get_by_role("textbox", name="Prompt").fill("The king")
    page.get_by_role("textbox", name="Prompt").press("Enter")
    settle(page)
    lm = lmcore.load(MODEL)
    best = lmcore.distribution.top(lm(lm.tokenizer.encode("The king").ids)[-1], 3).ids.tolist()
    expect(page.locator(".row .id").first).to_have_text(str(best[0]))
    assert [row["id"] for row in rows(page, 3)] == [str(token) for token in best] != [row["id"] for row in before]
    expect(page.locator(".stage")).to_have_count(len(STAGES))  # once each, also after other logits came


LARGE_LAB = """
import numpy as np
import streamlit as st
from lmcore.sampling import STAGES
from pages.live.sampling_lab import sampling_lab
from pages.stages.sampling.knobs import numbers, off

start = {"logit_bias": {}, **{name: off(name) for name in numbers()}, "order": list(STAGES)}
start |= {"engine": "lmcore", "against": "", "pinned": None}
st.session_state.setdefault("told", {**start, "bars": 20, "log": False, "token": None})
logits = np.random.default_rng(1).normal(0, 3, 50_257).astype(np.float32)
told = st.session_state["told"]
sampling_lab(logits, str, told, key="lab", on_settings=lambda told: st.session_state.update(told=told))
st.text(f"told {st.session_state['told']['temperature']}")
"""


def test_the_logits_of_a_large_vocabulary_travel_once(open_page: OpenPage, tmp_path: Path) -> None:
    script = tmp_path / "lab.py"
    script.write_text(as_app(LARGE_LAB), encoding="utf-8")
    server = Server(str(script), tmp_path / "log.txt")
    try:
        page = open_page(server.url)
        received: list[int] = []
        page.on("websocket", lambda socket: socket.on("framereceived", lambda payload: received.append(len(payload))))
        page.reload()
        page.locator(".row .now").first.wait_for()
        settle(page)
        large = [size for size in received if size > 4 * 50_257]
        assert len(large) == 1 and large[0] < 4 * 50_257 + 2000
        assert tile(page, "candidates") == "50,257"
        received.clear()
        page.get_by_role("slider", name="Temperature", exact=True).press("ArrowRight")
        expect(page.get_by_text("told 1.01")).to_be_visible()
        settle(page)
        assert received and sum(received) < 20_000
    finally:
        server.stop()


def test_texts_are_shown_as_they_are_and_kept_apart_when_equal(open_page: OpenPage) -> None:
    hostile = '"><img src=x onerror=alert(1)>'
    page = open_lab(open_page, source="own", own_logits=f"{hostile}: 2\n<b>bold</b>: 1\nsame: 0.5\nsame: 0.4\nwrong")
    shown = rows(page, 4)
    assert [row["token"] for row in shown] == ['"><img␣src=x␣onerror=alert(1)>', "<b>bold</b>", "same", "same"]
    assert [row["id"] for row in shown] == ["0", "1", "2", "3"]
    assert page.locator(".lab img, .lab b:text('bold')").count() == 0
    expect(page.get_by_text("Line 5 is not a logit: wrong")).to_be_visible()


def test_a_token_is_chosen_by_keys_and_its_way_is_shown(open_page: OpenPage) -> None:
    page = open_lab(open_page, temperature="0.5", top_k="2")
    listbox = page.get_by_role("listbox", name="The most probable tokens")
    listbox.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    chosen = rows(page, 3)[2]
    expect(page.locator(".who .token")).to_have_text(chosen["token"])
    expect(page.locator(".stop").last).to_contain_text("removed")
    expect_query(page, token=chosen["id"])


def test_curves_are_read_by_keys(open_page: OpenPage) -> None:
    page = open_lab(open_page, top_p="0.9")
    curve = page.get_by_role("slider", name=re.compile("Cumulative"))
    curve.focus()
    curve.press("Home")
    curve.press("ArrowRight")
    result, lm = model_result()
    best = lmcore.distribution.top(result.probs, 2)
    text = curve.get_attribute("aria-valuetext")
    sums = [float(number) for number in re.findall(r"([\d.]+) %", text)]
    assert sums[0] == pytest.approx(100 * best.values[1].item(), abs=1e-5)
    assert sums[1] == pytest.approx(100 * best.values.sum().item(), abs=1e-5)


def number_of(page: Page, token: int) -> str:
    """What stands at the end of a token's own row."""
    row = page.locator(f".row:has(.id:text-is('{token}'))")
    expect(row).to_have_count(1)
    return row.locator(".now").inner_text()


def test_a_token_is_banned_and_let_come_again_and_one_that_is_lifted_has_a_bar(open_page: OpenPage) -> None:
    plain, _ = model_result()
    best, last = int(plain.start.logits.argmax()), int(plain.start.logits.argmin())
    page = open_lab(open_page, token=str(best), temperature="0.9")
    page.get_by_role("button", name="Ban").click()
    expect_query(page, logit_bias=f"{best}:-inf")
    banned, _ = model_result(temperature=0.9, logit_bias={best: -math.inf})
    assert_rows_are(page, banned)
    assert number_of(page, best) == "Logit bias"
    expect(page.get_by_test_id("stCode")).to_contain_text(f'logit_bias={{{best}: float("-inf")}}')
    page.get_by_role("button", name="Ban").click()
    page.wait_for_url(re.compile(r"logit_bias=(&|$)"), wait_until="commit")
    assert_rows_are(page, model_result(temperature=0.9)[0])
    # Typed into the field, with a true minus sign and an infinity, or as words; and what is no number is refused.
    field = page.get_by_role("textbox", name=re.compile("Logit bias"))
    for ban in ("-inf", "\u2212\u221e", "-Infinity"):
        field.fill(ban)
        expect(page.get_by_role("button", name="Ban")).to_have_attribute("aria-pressed", "true")
        field.fill("")
        expect(page.get_by_role("button", name="Ban")).to_have_attribute("aria-pressed", "false")
    field.fill("much")
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("0.5")
    field.press("Enter")
    expect_query(page, logit_bias=f"{best}:0.5")
    # A token from the very end of the vocabulary, lifted above all others, stands first with a bar of its own.
    page = open_lab(open_page, logit_bias=f"{last}:60")
    lifted, _ = model_result(logit_bias={last: 60})
    assert rows(page, 1)[0]["id"] == str(last)
    assert float(number_of(page, last).split()[0]) == pytest.approx(100 * lifted.probs[last].item(), abs=0.00501)
    page.get_by_role("listbox", name="The most probable tokens").focus()
    page.keyboard.press("Home")
    expect(page.locator(".who .facts")).to_contain_text(f"id {last}")


def test_a_token_is_found_by_id_or_text(open_page: OpenPage) -> None:
    result, _ = model_result()
    last = int(result.start.logits.argmin())
    page = open_lab(open_page)
    field = page.get_by_role("searchbox", name="Find a token")
    field.fill(str(last))
    field.press("Enter")
    expect_query(page, token=str(last))
    expect(page.locator(".who .facts")).to_contain_text(f"id {last}")
    settle(page)
    expect(field).to_be_focused()  # also after the texts of other tokens came
    best = rows(page, 1)[0]
    field.fill(best["token"])
    field.press("Enter")
    expect_query(page, token=best["id"])
    field.fill("no such token")
    field.press("Enter")
    expect(field).to_have_attribute("aria-invalid", "true")


def test_screen_readers_get_every_value(open_page: OpenPage) -> None:
    page = open_lab(open_page, temperature="0.5", top_k="3")
    result, lm = model_result(temperature=0.5, top_k=3)
    best = int(result.start.logits.argmax())
    first = page.get_by_role("listbox", name="The most probable tokens").get_by_role("option").first
    expect(first).to_have_attribute("aria-label", re.compile("final"))
    label = first.get_attribute("aria-label")
    assert f"id {best}" in label and f"final {100 * result.probs[best].item():.2f} %" in label
    slider = page.get_by_role("slider", name="Temperature", exact=True)
    assert slider.get_attribute("aria-valuetext") == "0.5"
    expect(page.locator(".spoken")).to_contain_text(f"Entropy {result.entropy_bits:.3f} bits")
    grip = page.get_by_role("button", name="Move Top-k")
    grip.press("Home")
    expect(page.locator(".spoken")).to_contain_text("Top-k is now number 1 of 10")


def test_300_000_lines_are_pasted_and_the_page_stays_responsive(open_page: OpenPage) -> None:
    page = open_lab(open_page, source="own", own_logits="a: 1\nb: 2")
    page.get_by_role("textbox", name="Your own logits").press("Control+a")
    values = np.random.default_rng(3).normal(0, 3, 300_000).round(4)
    lines = [f"t{index}: {value}" for index, value in enumerate(values)]
    page.get_by_role("textbox", name="Your own logits").evaluate(PASTE, "\n".join([*lines, "no line"]))
    expect(page.locator(".tile[data-tile=candidates] strong")).to_have_text("300,000")
    expect(page.get_by_text("Line 300001 is not a logit: no␣line")).to_be_visible()
    before = tile(page, "entropy")
    page.get_by_role("slider", name="Temperature", exact=True).press("ArrowLeft")
    changed(page, "entropy", before)
    expect_query(page, temperature="0.99")
    result = reshape(values.tolist(), SamplingSettings(temperature=0.99))
    expect(page.locator(".tile[data-tile=entropy] strong")).to_have_text(f"{result.entropy_bits:.3f} bits")


def test_labels_of_the_lab_are_translated(open_page: OpenPage) -> None:
    page = open_lab(open_page, lang="zh", temperature="0.8")
    text = page.locator(".lab").inner_text()
    names = {word for engine in PRESETS.values() for word in re.findall(r"[A-Za-z]{4,}", engine.title)} - {"assumed"}
    tokens = set(re.findall(r"[A-Za-z]{4,}", json.dumps(rows(page, 20), ensure_ascii=False)))
    found = set(re.findall(r"[A-Za-z]{4,}", text)) - {"logit", "lmcore"} - names - tokens
    assert found <= {"API", "assumed"}  # an engine's name
