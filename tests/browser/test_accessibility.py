"""Every view through axe-core in light and dark; every control reached and worked by the keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenPage, Server, settle, visit
from tests.browser.views import VIEWS, address

# Streamlit's own markup, which no option or style of ours changes: (rule, part of the selector or markup, reason).
ACCEPTED = (
    (
        "scrollable-region-focusable",
        "katex-display",
        "an equation with a part wider than the window; Chromium and Firefox let the keyboard scroll it",
    ),
    ("scrollable-region-focusable", "<pre class", "long lines of a block of code; its own frame has the focus"),
)
# Marks what has the focus, through shadow roots; tells whether anything of the page has.
_MARK_FOCUSED = """() => {
  let focused = document.activeElement;
  while (focused?.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement;
  if (!focused || focused === document.body) return false;
  focused.wasFocused = true;
  return true;
}"""
# Visible controls that never had the focus and do not belong to a group of which one had it (arrows do the rest).
_NEVER_FOCUSED = """() => {
  const roots = [document], controls = [];
  for (const root of roots)
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) roots.push(element.shadowRoot);
      if (element.matches("a[href], button, input, select, textarea, [tabindex], [role=slider], [role=option]"))
        controls.push(element);
    }
  const group = "[role=radiogroup], [role=listbox], [role=group], [role=grid], [role=toolbar], [role=slider], " +
    ".stNumberInput, .stSelectbox, .stMultiSelect, .stDataFrame, .stPlotlyChart";
  const wasFocused = (element) => element.wasFocused || [...element.querySelectorAll("*")].some((e) => e.wasFocused);
  return controls
    .filter((element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
    .filter((element) => !element.matches(":disabled, [aria-disabled=true], [aria-hidden=true] *, [inert] *"))
    .filter((element) => element.getBoundingClientRect().width > 1)
    .filter((element) => !wasFocused(element))
    .filter((element) => element.tabIndex >= 0 || element.matches("a[href], button, input, [role=option]"))
    .filter((element) => !(element.closest(group) && wasFocused(element.closest(group))))
    .map((element) => element.outerHTML.slice(0, 160));
}"""


def violations(page: Page, scheme: str) -> list[tuple[str, str, str]]:
    """Return the serious and critical violations axe-core finds, but for what is accepted: rule, where, markup."""
    page.emulate_media(color_scheme=scheme)
    only = {"runOnly": ["color-contrast"]} if scheme == "dark" else {}  # nothing but colours differs
    for _try in range(5):  # colours fade from one theme to the other, and parts are given their words a moment later
        page.wait_for_timeout(300)
        if not (found := _once(page, only)):
            break
    return found


def _once(page: Page, only: dict[str, list[str]]) -> list[tuple[str, str, str]]:
    found = Axe().run(page, options={"resultTypes": ["violations"], **only}).response["violations"]
    told = [
        (violation["id"], str(node["target"]), node["html"][:200])
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
    return [
        (rule, where, markup)
        for rule, where, markup in told
        if not any(rule == known and part in where + markup for known, part, _reason in ACCEPTED)
    ]


@pytest.fixture(scope="module")
def examined(browser: Browser, server: Server) -> Iterator[Page]:
    context = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(120_000)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("name", VIEWS)
def test_no_serious_violation_in_light_or_dark(examined: Page, server: Server, name: str) -> None:
    for view in VIEWS[name][1]:
        visit(examined, server, address(name, view, lang="en"))
        for scheme in ("light", "dark"):
            assert violations(examined, scheme) == [], f"{view}, {scheme}"


@pytest.mark.parametrize("name", VIEWS)
def test_every_control_is_reached_by_tab(examined: Page, server: Server, name: str) -> None:
    examined.goto(server.url + address(name, "", lang="en"))
    settle(examined)
    for _round in range(3):  # a page that draws once more takes the focus away, and the round is cut short
        for _press in range(500):
            examined.keyboard.press("Tab")
            if not examined.evaluate(_MARK_FOCUSED):  # the round is over: the focus left the page
                break
        else:
            pytest.fail("Tab never leaves the page")
        if not (left_out := examined.evaluate(_NEVER_FOCUSED)):
            return
    assert left_out == []


def tab_to(page: Page, is_wanted: str) -> None:
    """Press Tab until the focused element, through shadow roots, fulfils a condition in JavaScript on `e`."""
    condition = f"""() => {{
      let e = document.activeElement;
      while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
      return Boolean(e && ({is_wanted}));
    }}"""
    for _press in range(200):
        page.keyboard.press("Tab")
        if page.evaluate(condition):
            return
    pytest.fail(f"Tab never leads to {is_wanted}")


def test_a_visit_by_keyboard_alone(open_page: OpenPage) -> None:
    page = open_page("/tokenization?lang=en", viewport={"width": 1280, "height": 900})
    page.set_default_timeout(120_000)
    tab_to(page, "e.matches('a[href*=sampling]')")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/sampling(\?|$)"))
    settle(page)
    tab_to(page, "e.getAttribute('aria-label') === 'Prompt'")
    page.keyboard.press("Control+A")
    page.keyboard.type("The king")
    page.keyboard.press("Enter")
    settle(page)
    page.wait_for_url(re.compile("prompt=The(%20|\\+)king"))
    tab_to(page, "e.matches('input[type=range]')")
    before = page.get_by_test_id("stMain").locator("input[type=range]").first.input_value()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_test_id("stMain").locator("input[type=range]").first).not_to_have_value(before)
    tab_to(page, "e.matches('button') && e.textContent.trim() === 'Draw'")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Nothing has been drawn from this distribution yet.")).to_have_count(0)


def test_views_and_the_language_are_changed_by_arrow_keys(open_page: OpenPage) -> None:
    page = open_page("/blocks?lang=en", viewport={"width": 1280, "height": 900})
    page.set_default_timeout(120_000)
    tab_to(page, "e.closest('.st-key-blocks-view')")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    settle(page)
    page.wait_for_url(re.compile("blocks.view=query"))
    tab_to(page, "e.closest('.st-key-lang')")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Space")
    settle(page)
    page.wait_for_url(re.compile("lang=zh"))
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Transformer blocks")
