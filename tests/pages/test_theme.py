"""The base builders carry the exact numbers and escape every label."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.figures import theme
from tests.pages.hostile import TEXTS

PAGES = tomllib.loads((Path(__file__).parents[2] / ".streamlit/config.toml").read_text())["theme"]
LABELS = ["a", "a", "<b>"]  # texts repeat, and may be markup


def test_heatmap_keeps_values_and_repeated_labels() -> None:
    values = np.arange(9.0).reshape(3, 3) / 10
    figure = theme.heatmap(values, LABELS, LABELS, kind="probability")
    (cells,) = figure.data
    np.testing.assert_array_equal(cells.z, values)
    assert (cells.zmin, cells.zmax) == (0.0, 1.0)
    assert cells.text[2][0] == "&lt;b&gt; · a"  # row first
    assert list(figure.layout.yaxis.ticktext) == ["a", "a", "&lt;b&gt;"]


def test_heatmap_scale_of_signed_values_is_centred_on_zero() -> None:
    figure = theme.heatmap([[-1.0, 3.0]], ["r"], ["x", "y"], kind="signed")
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-3.0, 3.0)


def test_heatmap_masks_cells_without_a_number() -> None:
    figure = theme.heatmap([[0.5, -np.inf]], ["r"], ["x", "y"], kind="signed", masked=[[False, True]])
    grey, cells = figure.data
    assert np.isnan(cells.z[0][1]) and cells.zmax == 0.5
    assert np.isnan(grey.z[0][0]) and grey.z[0][1] == 1.0


def test_heatmap_refuses_labels_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"\(1, 2\)"):
        theme.heatmap([[1.0, 2.0]], ["r", "s"], ["x", "y"], kind="amount")


def test_the_given_array_is_not_changed() -> None:
    values = np.ones((1, 2))
    theme.heatmap(values, ["r"], ["x", "y"], kind="probability", masked=[[True, False]])
    assert values.tolist() == [[1.0, 1.0]]


def test_large_maps_do_not_carry_a_label_a_cell() -> None:
    labels = [str(index) for index in range(200)]
    figure = theme.heatmap(np.zeros((200, 200)), labels, labels, kind="probability")
    assert figure.data[0].text is None
    assert len(figure.layout.xaxis.ticktext) <= 48


def test_bars_mark_the_removed_and_the_chosen() -> None:
    figure = theme.bars([0.6, 0.4, 0.0], LABELS, kind="probability", removed=[False, False, True], chosen=1)
    (bar,) = figure.data
    assert list(bar.x) == [0.6, 0.4, 0.0]
    assert list(bar.marker.pattern.shape) == ["", "", "/"]
    assert bar.marker.color[2] == theme.REMOVED != bar.marker.color[0]
    assert [width > 0 for width in bar.marker.line.width] == [False, True, False]
    assert list(bar.text) == ["60.00 %", "40.00 %", "0 %"]
    assert figure.layout.xaxis.range[0] == 0.0


def test_labels_of_bars_and_lines_are_escaped() -> None:
    bar = theme.bars(range(len(TEXTS)), TEXTS, kind="amount").data[0]
    assert not any("<" in label for label in bar.customdata)
    assert theme.lines([0, 1], {"<b>": [1, 2]}).data[0].name == "&lt;b&gt;"


@given(st.floats(min_value=0, max_value=1))
def test_a_probability_is_never_shown_as_nothing_unless_it_is_nothing(p: float) -> None:
    shown = float(theme.fmt_probability(p).removesuffix(" %"))
    assert (shown == 0) == (p == 0)
    assert shown == pytest.approx(100 * p, rel=0.06, abs=0.00501)


def test_neighbouring_positions_have_distant_hues() -> None:
    hues = [int(theme.position_colour(index).split("(")[1].split(",")[0]) for index in range(50)]
    for first, second in zip(hues, hues[1:], strict=False):
        assert min((first - second) % 360, (second - first) % 360) > 90


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """WCAG 2.2: the ratio of the relative luminances of two colours, red, green and blue from 0 to 255."""

    def luminance(colour: np.ndarray) -> float:
        parts = colour / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


def test_the_contrast_of_black_on_white_and_of_a_grey_is_wcags() -> None:
    white = np.full(3, 255.0)
    assert contrast(white, np.zeros(3)) == pytest.approx(21)
    assert contrast(white, np.full(3, 0x77)) == pytest.approx(4.48, abs=0.005)  # #777 on white, just too little


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("kind", ["probability", "signed", "amount"])
def test_text_in_cells_can_be_read_on_every_colour_of_the_scale(kind: theme.Kind, mode: str) -> None:
    values = np.linspace(-1 if kind == "signed" else 0, 1, 201)
    figure = theme.heatmap([values], ["r"], [str(value) for value in values], kind=kind, limit=1.0)
    theme.write_in_cells(figure, [[f"{value:.2f}" for value in values]])
    cells, text = figure.data
    assert len(text.text) == 201 and text.textfont.color is None  # the page's own
    ink, paper = (
        np.array([int(PAGES[mode][name][at : at + 2], 16) for at in (1, 3, 5)])
        for name in ("textColor", "backgroundColor")
    )
    stops = np.array([[place, *map(float, re.findall(r"[\d.]+", colour))] for place, colour in cells.colorscale])
    places = (values - cells.zmin) / (cells.zmax - cells.zmin)
    *rgb, opacity = (np.interp(places, stops[:, 0], stops[:, part]) for part in range(1, 5))
    painted = np.stack(rgb, -1) * opacity[:, None] + paper * (1 - opacity[:, None])
    assert min(contrast(ink, colour) for colour in painted) >= 4.5
    assert contrast(paper, painted[-1]) > 2.4  # and the fullest cells still stand out
