"""The lab under a finger: real touches, on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from lmcore.sampling import STAGES
from tests.browser.conftest import OpenPage
from tests.browser.sampling.page import changed, count_messages, expect_query, rows, tile

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
TABLET = {"width": 1180, "height": 820}
Point = tuple[float, float]


class Finger:
    """One finger on a page."""

    def __init__(self, page: Page) -> None:
        self.page, self.session = page, page.context.new_cdp_session(page)

    def put(self, point: Point) -> None:
        self._send("touchStart", point)

    def drag(self, start: Point, end: Point, steps: int = 20) -> None:
        """Put it down and move it; it stays there."""
        self.put(start)
        for step in range(1, steps + 1):
            between = [a + (b - a) * step / steps for a, b in zip(start, end, strict=True)]
            self._send("touchMove", (between[0], between[1]))
            self.page.wait_for_timeout(20)

    def lift(self) -> None:
        self._send("touchEnd")

    def tap(self, target: Locator) -> None:
        self.put(middle(target))
        self.lift()

    def _send(self, kind: str, *points: Point) -> None:
        touches = [{"x": x, "y": y} for x, y in points]
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})


@pytest.fixture
def phone(open_page: OpenPage) -> Page:
    page = open_page("/sampling?lang=en&prompt=今天天气&temperature=0.8&top_p=0.9", **PHONE)
    page.locator(".row .now").first.wait_for(timeout=60_000)
    return page


def middle(target: Locator) -> Point:
    box = target.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def show(target: Locator) -> None:
    """Bring it to where it is seen: what stays at the top of the page hides the upper half."""
    target.evaluate("e => e.scrollIntoView({ block: 'end' })")
    target.page.evaluate("document.querySelector('[data-testid=stMain]').scrollBy(0, 150)")
    target.page.wait_for_timeout(300)


def scrolled(page: Page) -> float:
    return page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")


def test_a_slider_follows_the_finger_and_sends_when_it_is_lifted(phone: Page) -> None:
    sent = count_messages(phone)
    slider = phone.get_by_role("slider", name="Temperature", exact=True)
    show(slider)
    top, before = scrolled(phone), tile(phone, "entropy")
    x, y = middle(slider)
    finger = Finger(phone)
    finger.drag((x - 60, y), (x + 60, y + 5))
    during = changed(phone, "entropy", before)
    phone.wait_for_timeout(500)
    assert sent == [] and scrolled(phone) == top
    finger.lift()
    value = slider.get_attribute("aria-valuetext")
    assert float(value) > 1
    expect_query(phone, temperature=value)
    assert tile(phone, "entropy") == during


def test_a_finger_that_scrolls_the_page_leaves_a_slider_as_it_is(phone: Page) -> None:
    slider = phone.get_by_role("slider", name="Temperature", exact=True)
    show(slider)
    top, before = scrolled(phone), tile(phone, "entropy")
    box = slider.bounding_box()
    finger = Finger(phone)
    finger.drag((box["x"] + 5, box["y"] + 20), (box["x"] + 8, box["y"] - 150))
    finger.lift()
    phone.wait_for_function("y => document.querySelector('[data-testid=stMain]').scrollTop > y + 50", arg=top)
    expect(slider).to_have_attribute("aria-valuetext", "0.8")
    assert slider.input_value() == "80"
    assert tile(phone, "entropy") == before
    assert "temperature=0.8&" in phone.url


def test_a_stage_is_moved_by_its_grip(phone: Page) -> None:
    grip, above = (phone.get_by_role("button", name=f"Move {stage}") for stage in ("Top-p", "Top-k"))
    show(grip)
    top, (x, y) = scrolled(phone), middle(grip)
    finger = Finger(phone)
    finger.drag((x, y), (x, middle(above)[1] - 10))
    finger.lift()
    order = [name for name in STAGES if name != "top_p"]
    order.insert(order.index("top_k"), "top_p")
    expect_query(phone, order=",".join(order))
    assert scrolled(phone) == top


def test_a_tap_chooses_a_bar_and_switches_a_stage(phone: Page) -> None:
    finger = Finger(phone)
    row = phone.locator(".list .row").nth(2)
    row.evaluate("e => e.closest('.lab').scrollIntoView()")
    phone.wait_for_timeout(300)
    finger.tap(row)
    expect(phone.locator(".who .token")).to_have_text(rows(phone, 3)[2]["token"])
    expect_query(phone, token=rows(phone, 3)[2]["id"])
    switch = phone.get_by_role("switch", name="Top-k", exact=True)
    show(switch)
    finger.tap(switch)
    expect_query(phone, top_k="40")


def test_a_chart_is_read_under_the_finger_and_when_it_is_lifted(phone: Page) -> None:
    chart = phone.locator(".curve").filter(has_text="Cumulative")
    reading = chart.locator(".reading")
    show(reading)
    x, y = middle(chart.locator("svg"))
    finger = Finger(phone)
    finger.drag((x - 80, y), (x + 40, y))
    under = re.compile(r"rank \d+: .+ · sum \d")
    expect(reading).to_have_text(under)
    finger.lift()
    phone.wait_for_timeout(300)
    expect(reading).to_have_text(under)
    expect(phone.locator(".who .token")).to_have_text(rows(phone, 1)[0]["token"])  # nothing is looked at any more


def test_targets_are_as_large_as_a_fingertip(phone: Page) -> None:
    small = phone.evaluate("""() => {
      const host = [...document.querySelectorAll("*")].find((e) => e.shadowRoot?.querySelector(".lab"));
      const root = host?.shadowRoot ?? document;
      const targets = root.querySelectorAll(".lab :is(.grip, .title, .button, .select, input[type=range], .field)");
      const shown = [...targets].filter((e) => e.checkVisibility());
      const heights = shown.map((e) => [e.className || e.type, e.getBoundingClientRect().height]);
      return [heights.length, heights.filter(([, height]) => height < 36)];
    }""")
    assert small[0] > 40 and small[1] == []
    row = phone.locator(".list .row").first.bounding_box()
    assert row["height"] >= 32


def test_on_a_tablet_no_stages_name_is_covered(open_page: OpenPage) -> None:
    page = open_page("/sampling?lang=en&temperature=0.8&repetition_penalty=1.3", **{**PHONE, "viewport": TABLET})
    page.locator(".row .now").first.wait_for(timeout=60_000)
    for card in page.locator(".stage:has(.field):visible").all():
        text, field = card.locator(".title span").first.bounding_box(), card.locator(".field").first.bounding_box()
        assert text["x"] + text["width"] <= field["x"]
