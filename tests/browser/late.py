"""Controls of any page, worked faster than the server answers; and whether what is then shown is what was done last."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from playwright.sync_api import Error, Locator, Page

from tests.browser.conftest import settle
from tests.browser.delaying_proxy import DelayingProxy

BETWEEN = 250  # milliseconds between two things that are done

# Everything a reader sees: texts in shadow roots too, the numbers of charts, the values of fields.
_SEEN = """() => {
  const main = document.querySelector("[data-testid=stMain]"), texts = [], charts = [];
  const roots = [main];
  for (const root of roots) {
    for (const element of root === main ? [main] : root.children) texts.push(element.innerText ?? "");
    for (const element of root.querySelectorAll("*")) if (element.shadowRoot) roots.push(element.shadowRoot);
  }
  const plain = (name, value) => name === "uid" ? undefined : ArrayBuffer.isView(value) ? Array.from(value) : value;
  for (const chart of main.querySelectorAll(".js-plotly-plot"))
    if (chart.getBoundingClientRect().height) charts.push(JSON.stringify(chart.data, plain));
  return { texts: texts.join("\\n").split("\\n").map((line) => line.trim()).filter(Boolean), charts };
}"""
_LISTED = """() => {
  const kinds = {
    slider: "[data-testid=stSlider]", number: "[data-testid=stNumberInput]", select: "[data-testid=stSelectbox]",
    choice: "[data-testid=stButtonGroup]", toggle: "[data-testid=stCheckbox]", text: "[data-testid=stTextInput]",
  };
  const found = [];
  for (const [kind, selector] of Object.entries(kinds))
    for (const element of document.querySelectorAll(`[data-testid=stMain] ${selector}`)) {
      const box = element.getBoundingClientRect(), named = element.closest("[class*=st-key-]");
      const key = [...(named?.classList ?? [])].find((name) => name.startsWith("st-key-"));
      if (key && box.height && box.width && !element.querySelector("input:disabled, [role=slider][aria-disabled=true]"))
        found.push([kind, key, box.top]);
    }
  return found.sort((a, b) => a[2] - b[2]).map(([kind, key]) => [kind, key]);
}"""
_LIVE = """() => {
  const found = [], roots = [document.querySelector("[data-testid=stMain]")];
  for (const root of roots)
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) roots.push(element.shadowRoot);
      const box = element.getBoundingClientRect();
      if (root === roots[0] || !box.height || !box.width || element.disabled) continue;
      const host = root.host.closest("[class*=st-key-]");
      const key = [...(host?.classList ?? [])].find((name) => name.startsWith("st-key-"));
      if (!key) continue;
      const name = element.getAttribute("aria-label") ?? element.id ?? "";
      if (element.matches("input[type=range], input[type=number]")) found.push([element.type, key, name]);
      if (element.matches("[role=listbox]") && element.querySelectorAll("[role=option]").length > 2)
        found.push(["chips", key, name]);
    }
  return found;
}"""
_BEFORE = ("st-key-model", "st-key-source")  # what they choose is another page
_NUMBER_AT_THE_END = re.compile(r"-\d+$")


@dataclass
class Control:
    """Something to be worked.

    Attributes:
        kind: what it is.
        key: the class that its value's name gives it, without the number of its widget.
        name: for a part that runs in the browser, which of its controls.
        last: what it showed after it was last worked.
    """

    kind: str
    key: str
    name: str = ""
    last: str | None = field(default=None)

    def __str__(self) -> str:
        """Name it."""
        return f"{self.kind} {self.key.removeprefix('st-key-')} {self.name}".strip()

    def on(self, page: Page) -> Locator:
        """Return where it is now: a widget whose value was assigned has a number behind its key."""
        place = page.locator(f'[class*="{self.key}"]')
        inner = {
            "slider": "[role=slider]",
            "number": "input",
            "select": "[data-testid=stSelectbox] input",
            "choice": "[data-testid=stButtonGroup]",
            "toggle": "input",
            "text": "input",
            "range": "input[type=range]",
            "chips": "[role=listbox]",
        }[self.kind]
        found = place.locator(inner)
        if self.name:
            found = found.and_(page.locator(f'[aria-label="{self.name}"], [id="{self.name}"]'))
        return found.first

    def value(self, page: Page) -> str | None:
        """Return what it shows; None where it is no longer on the page."""
        place = self.on(page)
        try:
            if not place.count() or not place.is_visible() and self.kind not in ("toggle", "select"):
                return None
            return _VALUES[self.kind](place)
        except Error:
            return None  # taken away while it was asked

    def work(self, page: Page) -> None:
        """Work it as a reader does, and note what it then shows."""
        place = self.on(page)
        _WORK[self.kind](page, place)
        page.wait_for_timeout(30)
        self.last = self.value(page)


def _value_of_slider(place: Locator) -> str:
    return place.get_attribute("aria-valuetext") or place.get_attribute("aria-valuenow") or ""


def _value_of_choice(place: Locator) -> str:
    chosen = place.locator("[aria-checked=true], [kind=segmented_controlActive], [kind=pillsActive]")
    return "".join(chosen.all_inner_texts())


def _value_of_chips(place: Locator) -> str:
    return str(place.locator("[role=option]").evaluate_all("e => e.findIndex(o => o.ariaSelected === 'true')"))


_VALUES: dict[str, Callable[[Locator], str]] = {
    "slider": _value_of_slider,
    "number": lambda place: place.input_value(),
    "select": lambda place: place.evaluate("e => e.closest('[data-testid=stSelectbox]').innerText.trim()"),
    "choice": _value_of_choice,
    "toggle": lambda place: str(place.is_checked()),
    "text": lambda place: place.input_value(),
    "range": lambda place: place.input_value(),
    "chips": _value_of_chips,
}


def _by_key(page: Page, place: Locator) -> None:
    is_first = (place.get_attribute("aria-valuenow") or "") == (place.get_attribute("aria-valuemax") or " ")
    place.press("ArrowLeft" if is_first else "ArrowRight")


def _range(page: Page, place: Locator) -> None:
    is_first = place.evaluate("e => e.value === e.max")
    place.press("ArrowLeft" if is_first else "ArrowRight")


def _number(page: Page, place: Locator) -> None:
    at_end = place.evaluate("e => e.max !== '' && Number(e.value) >= Number(e.max)")
    place.press("ArrowDown" if at_end else "ArrowUp")


def _select(page: Page, place: Locator) -> None:
    before = _VALUES["select"](place)
    place.click(timeout=10_000)
    options = page.get_by_role("option")
    options.first.wait_for(timeout=5000)
    others = [n for n, text in enumerate(options.all_inner_texts()) if text.strip() not in before]
    if others:
        options.nth(others[0]).click()
    else:
        page.keyboard.press("Escape")


def _choice(page: Page, place: Locator) -> None:
    place.locator(
        "button:not([kind=segmented_controlActive]):not([kind=pillsActive]):not([aria-checked=true])"
    ).first.click()


def _text(page: Page, place: Locator) -> None:
    place.fill("cat" if place.input_value() != "cat" else "the")
    place.press("Enter")


def _chips(page: Page, place: Locator) -> None:
    place.locator("[role=option]:not([aria-selected=true])").first.click()


_WORK: dict[str, Callable[[Page, Locator], None]] = {
    "slider": _by_key,
    "number": _number,
    "select": _select,
    "choice": _choice,
    "toggle": lambda page, place: place.locator("xpath=ancestor::label").click(timeout=10_000),
    "text": _text,
    "range": _range,
    "chips": _chips,
}


def controls(page: Page) -> list[Control]:
    """Return what there is to work on a page, but for what chooses its view; what is folded is opened."""
    folded = page.locator("[data-testid=stMain] details:not([open]) > summary")
    folded.evaluate_all("all => all.forEach((summary) => summary.click())")
    listed: list[list[str]] = []
    for _ in range(20):  # a browser fetches the script of each kind of widget when the first of them is drawn
        before, listed = listed, [*page.evaluate(_LISTED), *page.evaluate(_LIVE)]
        if listed and listed == before:
            break
        page.wait_for_timeout(500)
    found: dict[tuple[str, str, str], Control] = {}
    for kind, key, *name in listed:
        key = _NUMBER_AT_THE_END.sub("", key)
        if key in _BEFORE or key.endswith("-view") or (kind == "number" and name):
            continue
        found.setdefault((kind, key, *(name or [""])), Control(kind, key, *name))
    return list(found.values())


def faults(
    page: Page, proxy: DelayingProxy, fresh: Callable[[str], Page], seconds: float, chosen: list[Control] | None = None
) -> Iterator[str]:
    """Work every control of a page twice while answers are late by some seconds; yield what is then wrong.

    What was done last must be shown, and the page must be the one that its address opens.

    Args:
        page: opened through the proxy.
        proxy: through which its answers come.
        fresh: opens an address in a page of its own, without delay.
        seconds: how late.
        chosen: the controls to be worked; all when not given.
    """
    worked = controls(page) if chosen is None else chosen
    proxy.delay = seconds
    for control in worked:
        for _ in range(2):
            try:
                if control.value(page) is not None:
                    control.work(page)
            except Error as error:
                control.last = None  # another control took it away
                yield f"({control} could not be worked: {str(error).splitlines()[0]})"
                break
            page.wait_for_timeout(BETWEEN)
    try:
        proxy.settle(page)
    except AssertionError:
        yield "(it is not quiet: something on it runs by itself)"
    proxy.delay = 0.0
    page.evaluate("document.activeElement?.blur()")  # a field that has the focus counts its characters
    page.wait_for_timeout(300)
    for control in worked:
        now = control.value(page)
        if None not in (control.last, now) and now != control.last:
            yield f"{control} was last set to {control.last!r} and shows {now!r}"
    other = fresh(page.url)
    settle(other)
    controls(other)  # opens what is folded, as on the other page
    for control in worked:
        if (shown := control.value(page)) != (there := control.value(other)):
            yield f"{control} shows {shown!r}, and where its address is opened {there!r}"
    yield from _differences(page.evaluate(_SEEN), other.evaluate(_SEEN))
    other.close()


def _differences(late: dict[str, list[str]], fresh: dict[str, list[str]]) -> Iterator[str]:
    for line, there in zip(late["texts"], fresh["texts"], strict=False):
        if line != there:
            yield f"it says {line[:80]!r}, and where its address is opened {there[:80]!r}"
            return
    if len(late["texts"]) != len(fresh["texts"]):
        yield f"it has {len(late['texts'])} lines, and where its address is opened {len(fresh['texts'])}"
    if late["charts"] != fresh["charts"]:
        yield "its charts are not those of its address"
