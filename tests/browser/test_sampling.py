"""The lab in a real browser: the same numbers as lmcore.sampling, in the frame in which a slider moves."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Error, Page, expect

import lmcore
from lmcore.sampling import ENGINES, STAGES, History, Rules, SamplingSettings, preset, reshape
from pages.live import sampling_lab
from pages.live.part import joined
from pages.live.sampling_lab import engines
from tests.browser.conftest import PASTE, OpenPage, Server, settle

HISTORY = History(prompt=[0, 1, 1], generated=[2, 1])
VALUES: dict[str, list[Any]] = {
    "temperature": [0, 1e-40, 0.3, 0.8, 1.5, 1e3],
    "top_k": [1, 2, 3, 40, 10**6],
    "top_p": [0, 0.1, 0.5, 0.9, 0.99999],
    "min_p": [0.01, 0.1, 0.5, 1],
    "typical_p": [0, 0.2, 0.5, 0.9],
    "epsilon_cutoff": [3e-4, 0.05, 0.9],
    "eta_cutoff": [3e-4, 0.05],
    "top_n_sigma": [0.5, 1, 2],
    "repetition_penalty": [1.5, 0.7],
    "presence_penalty": [0.5, -1],
    "frequency_penalty": [0.5, -0.3],
    "logit_bias": [{1: 2.5, 0: -1}, {2: -math.inf, 0: 1}],
}
RUN = """([name, settings, history]) => {
  const engine = lab.engines[name];
  const used = lab.under(engine, {...lab.OFF, order: engine.order, ...settings});
  const result = lab.reshape(lab.ranked, used, history, lab.last);
  lab.last = result;
  const probs = lab.probsById(result);
  const kept = Int32Array.from(result.final.ranks, (rank) => lab.ranked.ids[rank]).sort();
  const text = (array) => {
    const bytes = new Uint8Array(array.buffer);
    let out = "";
    for (let i = 0; i < bytes.length; i += 32768) out += String.fromCharCode(...bytes.subarray(i, i + 32768));
    return btoa(out);
  };
  return {
    kept: text(kept),
    probs: text(Float64Array.from(kept, (id) => probs[id])),
    steps: result.steps.map(({name, kept, removedMass}) => [name, kept, removedMass]),
    fate: text(Int8Array.from(lab.ranked.rankOf, (rank) => result.fate[rank])),
    bits: lab.entropyBits(result.final),
    removed: lab.totalRemovedMass(result),
  };
}"""


def grid(seed: int, combinations: int) -> list[dict[str, Any]]:
    """Each value alone, then random combinations of stages, every other one in an order of its own."""
    chosen = [{name: value} for name, values in VALUES.items() for value in values]
    source = random.Random(seed)
    for index in range(combinations):
        names = source.sample(list(VALUES), source.randint(2, 7))
        settings = {name: source.choice(VALUES[name]) for name in names}
        if index % 2:
            settings["order"] = source.sample(STAGES, len(STAGES))
        chosen.append(settings)
    return chosen


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """A busy machine may take its time: what is asked is that it comes, not when."""
    expect.set_options(timeout=30_000)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture(scope="module")
def module_page(browser: Browser) -> Iterator[Page]:
    """A blank page with reshape.js in it."""
    context = browser.new_context()
    page = context.new_page()
    names = "OFF, RULES, rankVocabulary, reshape, under, probsById, entropyBits, totalRemovedMass"
    source = joined(Path(sampling_lab.__file__).parent, ["candidates.js", "nucleus.js", "reshape.js", "engines.js"])
    page.add_script_tag(type="module", content=f"{source}\nglobalThis.lab = {{{names}}};")
    page.wait_for_function("globalThis.lab !== undefined")
    page.evaluate("(engines) => (lab.engines = engines)", engines.table())
    yield page
    context.close()


def give(page: Page, logits: np.ndarray) -> None:
    kind = f"Float{8 * logits.itemsize}Array"
    page.evaluate(
        f"""(text) => {{
          const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
          lab.ranked = lab.rankVocabulary(new {kind}(bytes.buffer));
          lab.last = null;
        }}""",
        base64.b64encode(logits.tobytes()).decode(),
    )


def decoded(text: str, dtype: type) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def compare(page: Page, logits: np.ndarray, settings: dict[str, Any], engine: str = engines.OWN) -> None:
    """Hold the scripts' numbers to lmcore's, under lmcore's own rules or an engine's."""
    if engine == engines.OWN:
        chosen = SamplingSettings(**settings)
    else:
        chosen = preset(engine, **{**dict.fromkeys(ENGINES[engine].defaults), **settings})
    told = dict(settings)
    if "logit_bias" in told:
        told["logit_bias"] = {str(k): v if math.isfinite(v) else "-inf" for k, v in told["logit_bias"].items()}
    arguments = [engine, told, HISTORY._asdict()]
    try:
        expected = reshape(torch.from_numpy(logits), chosen, HISTORY)
    except ValueError:  # a ban of the only token a filter left
        with pytest.raises(Error, match="overflow"):
            page.evaluate(RUN, arguments)
        return
    found = page.evaluate(RUN, arguments)
    kept = decoded(found["kept"], np.int32)
    np.testing.assert_array_equal(kept, expected.kept_ids.numpy(), err_msg=str(settings))
    probs = expected.probs.numpy()[kept]
    np.testing.assert_allclose(decoded(found["probs"], np.float64), probs, rtol=0, atol=1e-9, err_msg=str(settings))
    np.testing.assert_array_equal(decoded(found["fate"], np.int8), expected.removed_by.numpy(), err_msg=str(settings))
    assert [(name, n) for name, n, _ in found["steps"]] == [(step.name, step.kept) for step in expected.steps]
    masses = [step.removed_mass for step in expected.steps]
    np.testing.assert_allclose([mass for _, _, mass in found["steps"]], masses, atol=1e-9, err_msg=str(settings))
    assert found["bits"] == pytest.approx(expected.entropy_bits, abs=1e-9)
    assert found["removed"] == pytest.approx(expected.removed_mass, abs=1e-9)


WORKED = np.array([2.3, 1.5, 3.8, 0.5, 1.2])
VOCABULARIES = {
    "worked": (WORKED, 250),
    "ties": (np.array([1, 2, 2, 2, 3, 2, -1, 3], dtype=np.float32), 250),
    "impossible": (np.array([0.5, -np.inf, 1.5, -0.0, 0.0, -np.inf], dtype=np.float32), 150),
    "equal": (np.zeros(10, dtype=np.float32), 100),
    "large": (np.array([1e30, -1e30, 5.0], dtype=np.float32), 50),
    "one": (np.array([-3.0], dtype=np.float32), 0),
    "50257": (np.random.default_rng(1).normal(0, 3, 50_257).astype(np.float32), 80),
    "262144": (np.random.default_rng(2).normal(0, 3, 262_144).astype(np.float32), 0),
}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_kept_tokens_are_the_same_and_probabilities_agree(module_page: Page, name: str) -> None:
    logits, combinations = VOCABULARIES[name]
    give(module_page, logits)
    compared = 0
    for settings in grid(len(logits), combinations):
        if is_comparable(name, logits, settings):
            compare(module_page, logits, settings)
            compared += 1
    assert compared > 25


def is_comparable(name: str, logits: np.ndarray, settings: dict[str, Any]) -> bool:
    """Ids outside the vocabulary are refused, and 1e30 with edits can overflow."""
    edits = "penalty" in str(settings) or "logit_bias" in settings
    return not edits or (len(logits) > 2 and name != "large")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", VOCABULARIES)
def test_each_engines_rules_give_what_its_preset_gives(module_page: Page, name: str, engine: str) -> None:
    logits, combinations = VOCABULARIES[name]
    give(module_page, logits)
    compared = 0
    for settings in grid(len(logits) + 1, combinations // 3):
        settings.pop("order", None)
        refused = settings.get("temperature") == 0 and engine == "transformers"
        if is_comparable(name, logits, settings) and not refused:
            compare(module_page, logits, settings, engine)
            if "penalty" in str(settings) and ENGINES[engine].penalty_window:
                compare(module_page, logits, {**settings, "penalty_last_n": 2}, engine)
            compared += 1
    assert compared > 25


def test_the_engine_that_refuses_temperature_zero_refuses_it(module_page: Page) -> None:
    give(module_page, WORKED)
    with pytest.raises(Exception, match="zero_temperature"):
        module_page.evaluate(RUN, ["transformers", {"temperature": 0}, HISTORY._asdict()])


def test_the_rules_of_the_scripts_are_lmcores_own(module_page: Page) -> None:
    assert module_page.evaluate("lab.RULES") == dataclasses.asdict(Rules())


def test_a_reused_prefix_gives_the_same_as_a_fresh_run(module_page: Page) -> None:
    give(module_page, VOCABULARIES["ties"][0])
    for top_p, k, t in itertools.product([0.5, 0.9], [2, 0, 5], [1.5, 1, 0.5]):
        compare(
            module_page,
            VOCABULARIES["ties"][0],
            {"repetition_penalty": 1.3, "temperature": t, "top_k": k, "top_p": top_p},
        )


def test_negative_zero_and_zero_are_ranked_by_id(module_page: Page) -> None:
    give(module_page, np.array([0.0, -0.0, 1.0, -0.0, 0.0], dtype=np.float32))
    assert module_page.evaluate("Array.from(lab.ranked.ids)") == [2, 0, 1, 3, 4]


def test_an_edit_that_leaves_no_token_is_an_error(module_page: Page) -> None:
    give(module_page, np.array([3e38], dtype=np.float32))
    with pytest.raises(Exception, match="overflow"):
        module_page.evaluate(
            "lab.reshape(lab.ranked, {...lab.OFF, order: Object.keys(lab.OFF), logit_bias: {0: '-inf'}})"
        )


# ---- The page --------------------------------------------------------------------------------------------------------

MODEL = "small-world"
PROMPT = "今天天气"


def tile(page: Page, name: str) -> str:
    return page.locator(f".tile[data-tile={name}] strong").inner_text()


def rows(page: Page, n: int) -> list[dict[str, str]]:
    return page.evaluate(
        """(n) => {
          const host = [...document.querySelectorAll("*")].find((e) => e.shadowRoot?.querySelector(".lab"));
          const root = (host?.shadowRoot ?? document).querySelector(".list");
          const text = (row, name) => row.querySelector("." + name).textContent;
          return [...root.children].slice(0, n).map((row) =>
            Object.fromEntries(["token", "id", "logit", "was", "now"].map((name) => [name, text(row, name)])));
        }""",
        n,
    )


def changed(page: Page, name: str, before: str) -> str:
    """Return a tile's text once it is no longer what it was."""
    expect(page.locator(f".tile[data-tile={name}] strong")).not_to_have_text(before)
    return tile(page, name)


def query(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query, keep_blank_values=True).items()}


def expect_query(page: Page, **expected: str) -> None:
    for _ in range(300):
        if expected.items() <= query(page).items():
            return
        page.wait_for_timeout(100)
    assert {name: query(page).get(name) for name in expected} == expected


def open_lab(open_page: OpenPage, **parameters: str) -> Page:
    address = "&".join(
        f"{name}={quote(value)}" for name, value in {"lang": "en", "prompt": PROMPT, **parameters}.items()
    )
    page = open_page(f"/sampling?{address}", viewport={"width": 1400, "height": 1000})
    page.locator(".row .now").first.wait_for(timeout=60_000)
    return page


def count_messages(page: Page) -> list[int]:
    """Return a list that gets the size of each message the browser sends from a reload on."""
    sent: list[int] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda payload: sent.append(len(payload))))
    page.reload()
    settle(page)
    page.locator(".row .now").first.wait_for()
    page.wait_for_timeout(500)
    sent.clear()
    return sent


def model_result(**settings: Any) -> tuple[Any, lmcore.LanguageModel]:
    lm = lmcore.load(MODEL)
    ids = lm.tokenizer.encode(PROMPT).ids
    return reshape(lm(ids)[-1], SamplingSettings(**settings), lmcore.History(prompt=ids)), lm


def assert_rows_are(page: Page, result: Any) -> None:
    ids = lmcore.distribution.top(result.start.logits, 10).ids.tolist()
    for row, token in zip(rows(page, 10), ids, strict=True):
        assert row["id"] == str(token)
        assert float(row["was"].split()[0]) == pytest.approx(100 * result.initial_probs[token].item(), abs=0.00501)
        if result.probs[token] > 0:
            assert float(row["now"].split()[0]) == pytest.approx(100 * result.probs[token].item(), abs=0.00501)
        else:
            assert not re.search(r"\d", row["now"])


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
    order.insert(STAGES.index("temperature") + 6, "temperature")
    assert order.index("temperature") > order.index("top_p")
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
    page.get_by_role("button", name="Back to the source's own").click(delay=80)
    expect_query(page, history_out="")


def test_greedy_and_clamping_are_said(open_page: OpenPage) -> None:
    page = open_lab(open_page, temperature="0", top_k="999999")
    expect(page.locator("[data-stage=temperature]")).to_contain_text("greedy")
    expect(page.locator("[data-stage=top_k]")).to_contain_text("clamped")
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


LARGE_LAB = """
import numpy as np
import streamlit as st
from lmcore.sampling import STAGES
from pages.live.sampling_lab import sampling_lab
from pages.stages.sampling.knobs import NUMBERS, off

start = {"logit_bias": {}, **{name: off(name) for name in NUMBERS}, "order": list(STAGES)}
start |= {"engine": "lmcore", "penalty_last_n": 0, "against": ""}
st.session_state.setdefault("told", {**start, "bars": 20, "log": False, "token": None})
logits = np.random.default_rng(1).normal(0, 3, 50_257).astype(np.float32)
told = st.session_state["told"]
sampling_lab(logits, str, told, key="lab", on_settings=lambda told: st.session_state.update(told=told))
st.text(f"told {st.session_state['told']['temperature']}")
"""


def test_the_logits_of_a_large_vocabulary_travel_once(open_page: OpenPage, tmp_path: Path) -> None:
    script = tmp_path / "lab.py"
    script.write_text(LARGE_LAB, encoding="utf-8")
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
    expect(page.get_by_text("Line 5 is no logit: wrong")).to_be_visible()


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
    expect(page.get_by_text("does not fit pinned")).to_be_visible()
    expect(page.get_by_role("button", name="Pin")).to_have_attribute("aria-pressed", "false")


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


@pytest.mark.parametrize("engine", ["llama.cpp", "exllamav2", "vllm"])
def test_choosing_an_engine_and_dragging_shows_what_the_engine_does(open_page: OpenPage, engine: str) -> None:
    page = open_lab(open_page, temperature="4", top_k="9", top_p="0.8", repetition_penalty="1.3", typical_p="0.9")
    select = page.get_by_role("combobox", name="Rules of")
    select.select_option(engine)
    expect_query(page, engine=engine)
    off = dict.fromkeys(ENGINES[engine].defaults)

    def expected(**knobs: float) -> Any:
        lm = lmcore.load(MODEL)
        ids = lm.tokenizer.encode(PROMPT).ids
        told = {"temperature": 4, "top_k": 9, "top_p": 0.8, "repetition_penalty": 1.3, "typical_p": 0.9, **knobs}
        return reshape(lm(ids)[-1], preset(engine, **{**off, **told}), History(prompt=ids))

    assert_rows_are(page, expected())
    has_typical = "typical_p" in ENGINES[engine].order
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


def test_two_engines_stand_side_by_side_under_the_same_knobs_while_dragging(open_page: OpenPage) -> None:
    page = open_lab(open_page, temperature="2", top_k="9", top_p="0.8", engine="transformers", against="llama.cpp")
    lm = lmcore.load(MODEL)
    ids = lm.tokenizer.encode(PROMPT).ids

    def reshaped(engine: str, **knobs: float) -> Any:
        off = dict.fromkeys(ENGINES[engine].defaults)
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


def test_a_token_is_found_by_id_or_text(open_page: OpenPage) -> None:
    result, _ = model_result()
    last = int(result.start.logits.argmin())
    page = open_lab(open_page)
    field = page.get_by_role("searchbox", name="Find a token")
    field.fill(str(last))
    field.press("Enter")
    expect_query(page, token=str(last))
    expect(page.locator(".who .facts")).to_contain_text(f"id {last}")
    best = rows(page, 1)[0]
    field.fill(best["token"])
    field.press("Enter")
    expect_query(page, token=best["id"])
    field.fill("no such token")
    field.press("Enter")
    expect(field).to_have_attribute("aria-invalid", "true")


def test_an_engine_that_refuses_a_temperature_says_so_and_the_old_picture_fades(open_page: OpenPage) -> None:
    page = open_lab(open_page, engine="transformers", temperature="0.5")
    field = page.get_by_role("spinbutton", name="Temperature")
    field.fill("0")
    expect(page.get_by_role("alert").filter(has_text="refuses temperature 0")).to_be_visible()
    expect(page.locator(".lab.refused")).to_have_count(1)
    field.fill("0.5")
    expect(page.locator(".lab.refused")).to_have_count(0)


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
    expect(page.locator(".spoken")).to_contain_text("Top-k is now number 1 of 12")


def test_300_000_lines_are_pasted_and_the_page_stays_responsive(open_page: OpenPage) -> None:
    page = open_lab(open_page, source="own", own_logits="a: 1\nb: 2")
    page.get_by_role("textbox", name="Own logits").press("Control+a")
    values = np.random.default_rng(3).normal(0, 3, 300_000).round(4)
    lines = [f"t{index}: {value}" for index, value in enumerate(values)]
    page.get_by_role("textbox", name="Own logits").evaluate(PASTE, "\n".join([*lines, "no line"]))
    expect(page.locator(".tile[data-tile=candidates] strong")).to_have_text("300,000")
    expect(page.get_by_text("Line 300001 is no logit: no␣line")).to_be_visible()
    before = tile(page, "entropy")
    page.get_by_role("slider", name="Temperature", exact=True).press("ArrowLeft")
    changed(page, "entropy", before)
    expect_query(page, temperature="0.99")
    result = reshape(values.tolist(), SamplingSettings(temperature=0.99))
    expect(page.locator(".tile[data-tile=entropy] strong")).to_have_text(f"{result.entropy_bits:.3f} bits")


def test_labels_of_the_lab_are_translated(open_page: OpenPage) -> None:
    page = open_lab(open_page, lang="zh", temperature="0.8")
    text = page.locator(".lab").inner_text()
    names = {word for engine in ENGINES.values() for word in re.findall(r"[A-Za-z]{4,}", engine.title)} - {"assumed"}
    tokens = set(re.findall(r"[A-Za-z]{4,}", json.dumps(rows(page, 20), ensure_ascii=False)))
    found = set(re.findall(r"[A-Za-z]{4,}", text)) - {"logit", "lmcore"} - names - tokens
    assert found <= {"API", "assumed"}  # an engine's name
