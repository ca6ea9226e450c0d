"""The lab's messages with the page, without a server: who wins when an answer comes late."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from lmcore.sampling import STAGES
from pages.live import sampling_lab
from pages.live.sampling_lab import engines
from pages.live.sampling_lab.generated import off
from pages.live.sampling_lab.labels import labels, stages
from pages.stages.sampling.knobs import numbers
from tests.browser.scripts import open_scripts

LOGITS = np.array([2.3, 1.5, 3.8, 0.5, 1.2])
DATA = {
    "crc": zlib.crc32(LOGITS.tobytes()),
    "float": 64,
    "ids": list(range(5)),
    "texts": ["很", "好", "不错", "真", "差"],
    "history": {"prompt": [], "generated": []},
    "engines": engines.table(),
    "stages": stages(5),
    "result": None,
    "labels": labels(),
}
SETTINGS = {
    **{name: off(name) for name in numbers()},
    "logit_bias": {},  # behind the numbers, where the page puts it
    **{"engine": "lmcore", "order": list(STAGES), "against": "", "pinned": None, "bars": 10, "log": False},
    "token": None,
}
MOUNT = """async ([html, data]) => {
  document.body.innerHTML = html;
  document.body.style.setProperty("--row", "20px"); // the lab's style is not here, and rows out of view are not written
  const { default: mount } = await import("/sampling_lab/lab.js");
  globalThis.told = [];
  globalThis.hub = globalThis[Symbol.for("sampling lab")] = {};
  mount({ data, parentElement: document.body, setStateValue: (name, value) => told.push(value) });
}"""


@pytest.fixture
def lab(browser: Browser) -> Iterator[Page]:
    """A lab that waits for its logits and settings."""
    page = browser.new_page()
    open_scripts(page)
    html = Path(sampling_lab.__file__).with_name("lab.html").read_text(encoding="utf-8")
    page.evaluate(MOUNT, [html, DATA])
    yield page
    page.close()


def give_logits(lab: Page) -> None:
    lab.evaluate("(logits) => (hub.bytes = new Uint8Array(Float64Array.from(logits).buffer))", LOGITS.tolist())


def answer(lab: Page, number: int, **settings: Any) -> None:
    """Send settings from the page that follow from the lab's message of that number; 0: from none."""
    lab.evaluate(
        """([settings, number]) => {
          hub.settings = { ...settings, answers: number ? told[number - 1].message : null };
          hub.deliver();
        }""",
        [{**SETTINGS, **settings}, number],
    )
    lab.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))")


def told(lab: Page) -> list[dict[str, Any]]:
    return json.loads(lab.evaluate("JSON.stringify(told)"))


def field(lab: Page, name: str) -> Any:
    return lab.locator(f"[data-stage={name}] .head .field")


def test_a_late_answer_changes_no_control(lab: Page) -> None:
    give_logits(lab)
    answer(lab, 0)
    lab.get_by_role("button", name="Pin").click()
    (first,) = told(lab)
    temperature = field(lab, "temperature")
    temperature.fill("0.5")  # typed, not yet let go
    answer(lab, 1, pinned=first["pinned"])
    assert temperature.input_value() == "0.5"
    temperature.press("Enter")
    assert [each["temperature"] for each in told(lab)] == [1, 0.5]
    answer(lab, 1, pinned=first["pinned"])  # once more, later than the second message
    assert temperature.input_value() == "0.5"
    answer(lab, 2, temperature=0.5, pinned=first["pinned"])
    assert temperature.input_value() == "0.5"


def test_a_bias_that_the_page_writes_in_another_way_holds_nothing_up(lab: Page) -> None:
    give_logits(lab)
    answer(lab, 0, token=2)
    bias = lab.get_by_label("Logit bias: 不错")
    bias.fill("0.3333333333333333")
    bias.press("Enter")
    answer(lab, 1, token=2, logit_bias={"2": 0.333333333333})
    field(lab, "temperature").fill("0.7")
    field(lab, "temperature").press("Enter")
    assert told(lab)[-1]["temperature"] == 0.7
    answer(lab, 2, token=2, logit_bias={"2": 0.333333333333}, temperature=0.7)
    assert field(lab, "temperature").input_value() == "0.7"


def test_what_the_page_changes_itself_is_shown(lab: Page) -> None:
    give_logits(lab)
    answer(lab, 0)
    field(lab, "temperature").fill("0.5")
    field(lab, "temperature").press("Enter")
    answer(lab, 1, temperature=0.5)
    answer(lab, 1, temperature=1.3)  # a button of the page, say
    assert field(lab, "temperature").input_value() == "1.3"
    assert len(told(lab)) == 1


def test_nothing_is_told_that_has_not_changed(lab: Page) -> None:
    give_logits(lab)
    answer(lab, 0)
    field(lab, "temperature").focus()
    field(lab, "temperature").blur()
    lab.locator("[data-stage=temperature] .head").click()
    assert told(lab) == []


def test_the_list_has_its_name_and_says_that_it_waits_before_its_first_numbers(lab: Page) -> None:
    listbox = lab.get_by_role("listbox", name="The most probable tokens")
    assert listbox.get_attribute("data-empty") == "The distribution is on its way."
    give_logits(lab)
    answer(lab, 0)
    assert listbox.locator(".row").count() == 5


def test_a_stage_of_chance_shows_the_mixture_at_once(lab: Page) -> None:
    give_logits(lab)
    answer(lab, 0, xtc_probability=0.5)
    names, numbers = (lab.locator(f".list .row .{part}").all_inner_texts() for part in ("token", "now"))
    finals = dict(zip(names, numbers, strict=True))
    expected = {"很": "33.45 %", "好": "15.03 %", "不错": "34.85 %", "真": "5.53 %", "差": "11.13 %"}
    assert {token: finals[token] for token in expected} == expected
    effect = lab.locator("[data-stage=xtc] .effect").inner_text()
    assert "with probability 0.5 the 1 most probable go; else nothing happens" in effect


def test_a_stage_without_a_kernel_waits_for_the_page(lab: Page) -> None:
    lab.evaluate("import('/sampling_lab/reshape.js').then(({ KERNELS }) => void delete KERNELS.xtc)")
    give_logits(lab)
    answer(lab, 0)
    lab.get_by_role("button", name="More stages").click()
    lab.get_by_role("switch", name="XTC", exact=True).check()
    expect(lab.locator(".problem")).to_have_text("being computed")
    assert told(lab)[-1]["xtc_probability"] == 0.5


def test_rare_stages_are_folded_until_they_are_on_or_asked_for(lab: Page) -> None:
    give_logits(lab)
    answer(lab, 0, top_a=0.2)
    shown = lambda name: lab.locator(f"[data-stage={name}]").evaluate("e => getComputedStyle(e).display")  # noqa: E731
    lab.add_style_tag(path=str(Path(sampling_lab.__file__).with_name("lab.css")))
    assert (shown("top_a"), shown("tfs_z"), shown("top_p")) == ("list-item", "none", "list-item")
    lab.get_by_role("button", name="More stages").click()
    assert shown("tfs_z") == "list-item"
