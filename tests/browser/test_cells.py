"""Text written into heat maps, in a real browser: it can be read on every colour of the scale, in light and dark."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pages.figures import theme
from tests.browser.conftest import OpenPage, Server, settle


def colour(written: str) -> np.ndarray:
    """Return red, green, blue from 0 to 255 and, where there is one, the opacity."""
    return np.array([float(part) for part in re.findall(r"[\d.]+", written)])


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """Return the ratio of the relative luminances of two colours (WCAG 2.2), from 1 to 21."""

    def luminance(rgb: np.ndarray) -> float:
        parts = rgb / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


def test_the_contrast_of_known_colours() -> None:
    white = np.full(3, 255.0)
    assert contrast(white, np.zeros(3)) == pytest.approx(21)
    assert contrast(white, np.full(3, 0x77)) == pytest.approx(4.48, abs=0.005)  # #777 on white: just too little


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("view", "kind"), [("lens", "probability"), ("parts", "signed")])
def test_text_in_cells_can_be_read(open_page: OpenPage, view: str, kind: theme.Kind, scheme: str) -> None:
    page = open_page(f"/logits?prompt=The+king&logits.view={view}", color_scheme=scheme)
    texts = page.locator("g.textpoint text")
    texts.first.wait_for()
    inks = {*texts.evaluate_all("all => all.map(text => getComputedStyle(text).fill)")}
    paper = colour(page.get_by_test_id("stApp").evaluate("app => getComputedStyle(app).backgroundColor"))[:3]
    assert len(inks) == 1
    labels = page.locator(".xtick text, .ytick text, .cbaxis text, .infolayer .xtitle, .infolayer .ytitle")
    for label in {*labels.evaluate_all("all => all.map(text => getComputedStyle(text).fill)")}:
        assert contrast(colour(label)[:3], paper) >= 4.5, "a label of an axis"
    ink = colour(inks.pop())[:3]
    figure = theme.heatmap([[1.0]], ["r"], ["c"], kind=kind, limit=1.0)
    theme.write_in_cells(figure, [["1"]])
    places, scale = zip(*figure.data[0].colorscale, strict=True)
    stops = np.array([colour(stop) for stop in scale])
    for place in np.linspace(0, 1, 101):
        *rgb, opacity = (np.interp(place, places, stops[:, part]) for part in range(4))
        assert contrast(ink, np.array(rgb) * opacity + paper * (1 - opacity)) >= 4.5, place


# The click on a chart's cell (its key, row and column), and what the address then says.
CHOICES = [
    ("/blocks?blocks.view=attention", "pattern", (2, 1), {"position": "2"}),
    ("/blocks?blocks.view=residual", "stream", (3, 1), {"position": "1", "layer": "1"}),
    ("/position?position.view=sinusoidal", "position-sinusoidal", (20, 9), {"position.place": "20"}),
    ("/position?position.view=compare", "position-compare-rope", (20, 9), {"position.query": "20"}),
    ("/position?position.view=alibi", "position-bias-0", (2, 1), {"position": "2", "position.key": "1"}),
    ("/position?position.view=rope", "position-rope-square", (7, 3), {"position.placed": "7,3"}),
    ("/logits?logits.view=lens", "lens-map", (3, 1), {"position": "1"}),
    ("/embedding?table.view=lookup", "embedding-lookup", (1, 5), {"position": "1"}),
]
_MIDDLE_OF_CELL = """(chart, [row, column]) => {
  const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
  return [box.left + xaxis._offset + xaxis.d2p(column), box.top + yaxis._offset + yaxis.d2p(row)];
}"""


def test_a_click_on_a_cell_chooses_what_it_is_about(open_page: OpenPage, server: Server) -> None:
    page = open_page("/about", viewport={"width": 1280, "height": 1400})
    for address, key, cell, chosen in CHOICES:
        page.goto(f"{server.url}{address}&prompt=The+weather+today+is&lang=en")
        settle(page)
        chart = page.locator(f".st-key-{key} .js-plotly-plot")
        chart.locator(".nsewdrag").first.wait_for()
        chart.scroll_into_view_if_needed()
        middle = chart.evaluate(_MIDDLE_OF_CELL, list(cell))
        page.mouse.move(*middle)
        page.locator(".hovertext").first.wait_for()  # Plotly has found the cell
        page.mouse.click(*middle)
        for name, value in chosen.items():
            page.wait_for_function(
                "([name, value]) => new URL(location).searchParams.get(name) === value", arg=[name, value]
            )
