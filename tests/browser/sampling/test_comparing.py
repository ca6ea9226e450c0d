"""Two distributions in the lab: what was pinned, and another engine under the same knobs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

import lmcore
from lmcore.sampling import PRESETS, History, preset, reshape
from tests.browser.conftest import OpenPage, settle
from tests.browser.sampling.page import (
    MODEL,
    PROMPT,
    assert_rows_are,
    changed,
    expect_query,
    model_result,
    open_lab,
    tile,
)


def test_pinning_compares_with_what_was(open_page: OpenPage) -> None:
    page = open_lab(open_page)
    page.get_by_role("button", name="Pin").click()
    field = page.get_by_role("spinbutton", name="Temperature")
    field.fill("0.5")
    field.press("Enter")
    settle(page)
    plain, _ = model_result()
    cold, _ = model_result(temperature=0.5)
    distance = lmcore.distribution.total_variation(plain.probs, cold.probs).item()
    expect(page.locator(".tile[data-tile=removed]")).to_contain_text(f"total variation {distance:.4f}")
    expect(page.locator(".tile[data-tile=entropy]")).to_contain_text(f"pinned: {plain.entropy_bits:.3f} bits")
    expect_query(page, temperature="0.5", pinned='{"engine":"lmcore"}')


def test_a_pinned_comparison_is_in_the_link(open_page: OpenPage) -> None:
    page = open_lab(open_page, temperature="0.5", pinned='{"temperature":1.5,"top_k":3,"logit_bias":{"7":"-inf"}}')
    warm, _ = model_result(temperature=1.5, top_k=3)
    expect(page.locator(".tile[data-tile=entropy]")).to_contain_text(f"pinned: {warm.entropy_bits:.3f} bits")
    pin = page.get_by_role("button", name="Pin")
    expect(pin).to_have_attribute("aria-pressed", "true")
    pin.click()
    expect(page).not_to_have_url(re.compile("pinned=%7B"))
    expect(page.locator(".tile[data-tile=entropy]")).not_to_contain_text("pinned")


@pytest.mark.parametrize("pinned", ["nonsense", "[1]", '{"temperature":[]}', '{"temperature":-1}', '{"engine":"gpt"}'])
def test_a_pinned_comparison_that_does_not_fit_is_said(open_page: OpenPage, pinned: str) -> None:
    page = open_lab(open_page, pinned=pinned)
    expect(page.get_by_text("is not valid for pinned")).to_be_visible()
    expect(page.get_by_role("button", name="Pin")).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize("engine", ["llama.cpp", "exllamav2", "vllm"])
def test_choosing_an_engine_and_dragging_shows_what_the_engine_does(open_page: OpenPage, engine: str) -> None:
    page = open_lab(open_page, temperature="2", top_k="9", top_p="0.8", repetition_penalty="1.3", typical_p="0.9")
    select = page.get_by_role("combobox", name="Rules of")
    select.select_option(engine)
    expect_query(page, engine=engine)
    off = dict.fromkeys(PRESETS[engine].defaults)

    def expected(**knobs: float) -> Any:
        lm = lmcore.load(MODEL)
        ids = lm.tokenizer.encode(PROMPT).ids
        told = {"temperature": 2, "top_k": 9, "top_p": 0.8, "repetition_penalty": 1.3, "typical_p": 0.9, **knobs}
        return reshape(lm(ids)[-1], preset(engine, **{**off, **told}), History(prompt=ids))

    assert_rows_are(page, expected())
    has_typical = "typical_p" in PRESETS[engine].order
    expect(page.locator("[data-stage=typical_p]")).to_have_class(re.compile("stage$" if has_typical else "lacks"))
    slider = page.get_by_role("slider", name="Top-p", exact=True)
    slider.focus()
    before = tile(page, "entropy")
    for _ in range(15):
        page.keyboard.press("ArrowLeft")
    changed(page, "entropy", before)
    page.evaluate("() => new Promise(requestAnimationFrame)")  # the frame that draws the last step
    top_p = float(slider.get_attribute("aria-valuetext"))
    assert tile(page, "candidates") == f"{expected(top_p=top_p).candidates:,}"
    assert_rows_are(page, expected(top_p=top_p))
    page.get_by_role("button", name="Its defaults").click()
    settings = preset(engine)
    lm = lmcore.load(MODEL)
    ids = lm.tokenizer.encode(PROMPT).ids
    own = reshape(lm(ids)[-1], settings, History(prompt=ids))
    expect(page.locator(".tile[data-tile=entropy] strong")).to_have_text(f"{own.entropy_bits:.3f} bits")
    assert_rows_are(page, own)


def test_no_stage_of_an_engines_defaults_is_hidden(open_page: OpenPage) -> None:
    page = open_lab(open_page)
    for name in PRESETS:
        page.get_by_role("combobox", name="Rules of").select_option(name)
        page.get_by_role("button", name="Its defaults").click()
        settings = preset(name)
        on = page.locator(".stage:not(.off)")
        expect(on).to_have_count(len(settings.active))
        for card, stage in zip(on.all(), settings.active, strict=True):
            expect(card).to_be_visible()
            expect(card).to_have_attribute("data-stage", stage)
            assert float(card.locator(".field").first.input_value()) == getattr(settings, stage)


def test_two_engines_stand_side_by_side_under_the_same_knobs_while_dragging(open_page: OpenPage) -> None:
    page = open_lab(open_page, temperature="2", top_k="9", top_p="0.8", engine="transformers", against="llama.cpp")
    lm = lmcore.load(MODEL)
    ids = lm.tokenizer.encode(PROMPT).ids

    def reshaped(engine: str, **knobs: float) -> Any:
        off = dict.fromkeys(PRESETS[engine].defaults)
        told = {"temperature": 2, "top_k": 9, "top_p": 0.8, **knobs}
        return reshape(lm(ids)[-1], preset(engine, **{**off, **told}), History(prompt=ids))

    def assert_beside(**knobs: float) -> None:
        ours, theirs = reshaped("transformers", **knobs), reshaped("llama.cpp", **knobs)
        distance = lmcore.distribution.total_variation(ours.probs, theirs.probs).item()
        removed = page.locator(".tile[data-tile=removed] .under")
        expect(removed).to_contain_text(f"total variation {distance:.4f}")
        under = page.locator(".tile[data-tile=candidates] .under")
        expect(under).to_have_text(f"llama.cpp: {theirs.candidates}")
        assert tile(page, "candidates") == str(ours.candidates)

    assert_beside()
    assert reshaped("transformers").candidates != reshaped("llama.cpp").candidates
    slider = page.get_by_role("slider", name="Top-p", exact=True)
    slider.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    page.evaluate("() => new Promise(requestAnimationFrame)")  # the frame that draws the last step
    assert_beside(top_p=float(slider.get_attribute("aria-valuetext")))


def test_an_engine_that_refuses_a_temperature_says_so_and_the_old_picture_fades(open_page: OpenPage) -> None:
    page = open_lab(open_page, engine="transformers", temperature="0.5")
    field = page.get_by_role("spinbutton", name="Temperature")
    field.fill("0")
    expect(page.get_by_role("alert").filter(has_text="refuses temperature 0")).to_be_visible()
    expect(page.locator(".lab.refused")).to_have_count(1)
    field.fill("0.5")
    expect(page.locator(".lab.refused")).to_have_count(0)


def test_a_page_that_opens_with_settings_an_engine_refuses_takes_keys_and_comes_back(open_page: OpenPage) -> None:
    page = open_page("/sampling?lang=en&prompt=今天天气&engine=transformers&temperature=0&top_k=5")
    expect(page.get_by_role("alert").filter(has_text="refuses temperature 0").first).to_be_visible()
    for place, name, value in (("1", "Temperature", "0"), ("2", "Top-k", "5")):
        card = page.locator(".stage").filter(has_text=name)
        expect(card.locator(".number")).to_have_text(place)
        expect(card.get_by_role("switch")).to_be_checked()
        expect(card.get_by_role("spinbutton")).to_have_value(value)
    expect(page.locator(".stage:not(.off)")).to_have_count(2)
    for name in ("Cumulative", "Probability by rank"):
        page.get_by_role("slider", name=name).press("ArrowRight")  # an error in a script fails the test
        expect(page.locator(".curve").filter(has_text=name).locator(".reading")).to_have_text("rank 1: no candidate")
    page.get_by_role("listbox", name="The most probable tokens").press("ArrowDown")
    field = page.get_by_role("spinbutton", name="Temperature")
    field.fill("0.5")
    field.press("Enter")
    expect_query(page, temperature="0.5")
    settle(page)
    assert_rows_are(page, model_result(temperature=0.5, top_k=5)[0])
