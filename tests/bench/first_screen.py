"""What is on the first screen of every page and view: `python -m tests.bench.first_screen [page ...]`.

In four sizes, from the address and without scrolling: where the main controls and the main picture begin and end, in
pixels from the top of the window, and whether they fit. On a laptop the whole picture fits, or 350 pixels of a tall
one; in the presenter view the whole of it, or half a window of one as tall as a window; on a phone it begins by 400 and
a control is in reach. A page of text has to begin by 400 in each size.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.conftest import Server, launch, visit
from tests.browser.views import VIEWS, address


@dataclass(frozen=True)
class Size:
    """A window, and what has to be in it.

    Attributes:
        name: for the table.
        width, height: of the window, in pixels.
        presenter: whether the presenter view is on.
    """

    name: str
    width: int
    height: int
    presenter: bool = False


LAPTOP = Size("laptop", 1366, 768)
PROJECTOR = Size("projector", 1280, 720, presenter=True)
LARGE = Size("large", 1920, 1080, presenter=True)
PHONE = Size("phone", 390, 844)
SIZES = (LAPTOP, PROJECTOR, LARGE, PHONE)
TALL = 350  # pixels of a tall picture that are enough on a laptop
BEGINS_BY = 400  # on a phone
WITHOUT_PICTURE = {"lessons", "about"}  # pages of text

# The first picture of the page and the controls before or beside it: [top, bottom] each, or null.
_MEASURE = """() => {
  const main = document.querySelector("[data-testid=stMainBlockContainer]");
  const seen = (element) => element.checkVisibility({ visibilityProperty: true });
  const box = (element) => element.getBoundingClientRect();
  const isInBar = (element) => element.closest(".st-key-prompt-bar, .st-key-presenter-controls, .st-key-lesson");
  const LARGE = ".stPlotlyChart, .stVegaLiteChart, .stBidiComponent";
  const all = (selector) => [...main.querySelectorAll(selector)].filter((e) => seen(e) && !isInBar(e));
  const beside = "[class*=st-key-workbench] > * > .stHorizontalBlock > .stColumn:first-child, [class*=-strip]";
  const isControl = (element) => element.closest(beside);
  const pictures = all(`${LARGE}, .stDataFrame, .stTable, .stCode, .stMetric`)
    .filter((e) => !isControl(e) && box(e).height >= 60);
  const large = pictures.filter((e) => e.matches(LARGE));
  const picture = large[0] ?? pictures[0];
  const controls = all(
    ".stSlider, .stSelectbox, .stButtonGroup, .stNumberInput, .stTextInput, .stTextArea, .stCheckbox, " +
    ".stMultiSelect, .stRadio, .stButton, .stBidiComponent"
  ).filter((e) => e !== picture && box(e).height > 1 && !e.closest("details:not([open])"));
  const words = all(".stTable, .stMarkdown, [class*=st-key-lessons]").find((e) => !e.closest(".st-key-title-line"));
  const text = words ? [box(words).top, box(words).bottom] : null;
  const isAtWork = !!main.querySelector("[data-testid=stProgress]"); // and the picture may be still to come
  if (!picture) return { picture: null, controls: null, text, isAtWork };
  const { top, bottom, left } = box(picture);
  const near = controls.filter((e) => box(e).top < top + 8 || (box(e).right <= left && box(e).top < bottom));
  const edges = near.map((e) => [box(e).top, box(e).bottom]);
  return {
    picture: [top, bottom],
    text,
    isAtWork,
    controls: edges.length ? [Math.min(...edges.map((e) => e[0])), Math.max(...edges.map((e) => e[1]))] : null,
  };
}"""


# The script has ended, nothing stands in for what is still to come, and every chart has its lines in its final size.
_IS_DRAWN = """() => {
  const isFilled = (chart) => {
    const lines = chart.querySelector(".main-svg");
    return lines && Math.abs(lines.getBoundingClientRect().height - chart.getBoundingClientRect().height) < 3;
  };
  return document.querySelector("[data-testid=stApp]").dataset.testScriptState === "notRunning" &&
    !document.querySelector("[data-testid=stSkeleton]") &&
    [...document.querySelectorAll(".stPlotlyChart")].every(isFilled);
}"""


@dataclass(frozen=True)
class Screen:
    """Where things are, [top, bottom] in pixels; None when there are none."""

    picture: tuple[float, float] | None
    controls: tuple[float, float] | None
    text: tuple[float, float] | None = None

    def misses(self, size: Size, page: str) -> list[str]:
        """Return what is not where it has to be; nothing when all is."""
        found = []
        if page in WITHOUT_PICTURE:
            return [] if self.text and self.text[0] <= BEGINS_BY else ["text begins too low"]
        if self.picture is None:
            return ["no picture"]
        top, bottom = self.picture
        if size is PHONE:
            if top > BEGINS_BY:
                found.append("picture begins too low")
            if self.controls and self.controls[0] > size.height - 40:
                found.append("no control in reach")
            return found
        is_tall = bottom - top > 0.8 * size.height  # no window shows it whole: half of the window is its
        enough = TALL if not size.presenter else size.height / 2 if is_tall else bottom - top
        if bottom > size.height + 1 and size.height - top < enough:
            found.append("picture is cut")
        if self.controls and self.controls[1] > size.height + 1:
            found.append("controls are cut")
        return found


def measured(page: Page) -> Screen:
    """Return where things are once all is drawn and has stayed where it is for some readings.

    A page without a picture, or one that is still at work after a minute, is measured as it is.
    """
    before: Any = None
    n_equal = 0
    for _ in range(400):
        now = page.evaluate(_MEASURE) if page.evaluate(_IS_DRAWN) else None
        n_equal = n_equal + 1 if now and now == before else 0
        if now and n_equal >= (3 if now["picture"] else 400 if now["isAtWork"] else 20):
            break
        before = now
        page.wait_for_timeout(150)
    now = page.evaluate(_MEASURE)
    return Screen(*(None if now[key] is None else tuple(now[key]) for key in ("picture", "controls", "text")))


def screens(
    browser: Browser,
    server: Server,
    sizes: Sequence[Size],
    names: Sequence[str],
    *,
    views: Sequence[str] | None = None,
    lang: str = "en",
) -> Iterator[tuple[str, str, Size, Screen]]:
    """Yield each view of these pages with what is measured on its first screen, in each size; of `views` only these.

    A view is opened once for the sizes of the presenter view and once for the others; then the window is changed.
    """
    context = browser.new_context(locale="en-US", reduced_motion="reduce")
    context.set_default_timeout(120_000)
    page = context.new_page()
    for name in names:
        for view in views or VIEWS[name][1]:
            for presenter in (False, True):
                shown = [size for size in sizes if size.presenter == presenter]
                for size in shown:
                    page.set_viewport_size({"width": size.width, "height": size.height})
                    if size is shown[0]:
                        visit(page, server, address(name, view, lang=lang, present=str(int(presenter))))
                    yield name, view, size, measured(page)
    context.close()


def main() -> None:
    """Print the table."""
    names = sys.argv[1:] or list(VIEWS)
    n_missed = 0
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        server, browser = Server("app.py", Path(folder) / "log.txt"), launch(playwright)
        try:
            print(f"{'page':14}{'view':14}{'size':12}{'controls':>14}{'picture':>14}  ")
            for name, view, size, screen in screens(browser, server, SIZES, names):
                misses = screen.misses(size, name)
                n_missed += bool(misses)
                spans = (screen.controls, screen.picture)
                edges = [f"{span[0]:.0f}-{span[1]:.0f}" if span else "-" for span in spans]
                print(f"{name:14}{view:14}{size.name:12}{edges[0]:>14}{edges[1]:>14}  {', '.join(misses)}", flush=True)
        finally:
            browser.close()
            server.stop()
    print(f"\n{n_missed} missed")


if __name__ == "__main__":
    main()
