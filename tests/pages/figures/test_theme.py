"""The base builders carry the exact numbers and escape every label."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.figures import theme
from tests.pages.hostile import TEXTS

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


def test_what_has_no_colour_is_written_in_the_pages_ink() -> None:
    figure = theme.heatmap([[1.0]], ["r"], ["c"], kind="signed", row_title="rows", column_title="columns")
    figure.add_scatter(x=[0], y=[0], marker={"color": [1.0], "colorbar": {"title": {"text": "n"}}})
    figure.update_xaxes(tickfont={"size": 9, "color": "red"})
    spec = figure.spec()
    theme.write_in_ink(spec)
    layout, bars = spec["layout"], [spec["data"][-2]["colorbar"], spec["data"][-1]["marker"]["colorbar"]]
    assert layout["xaxis"]["tickfont"] == {"size": 9, "color": "red"}
    parts = [layout["yaxis"]["tickfont"], layout["font"], layout["legend"]["font"]]
    parts += [part["title"]["font"] for part in (layout["xaxis"], layout["yaxis"], *bars)]
    assert {part["color"] for part in [*parts, *(bar["tickfont"] for bar in bars)]} == {theme.INK}


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


def test_text_in_cells_keeps_the_hue_and_order_of_the_scale() -> None:
    figure = theme.heatmap([[-1.0, 0.0, 1.0]], ["r"], ["x", "y", "z"], kind="signed")
    plain = [colour for _place, colour in figure.data[0].colorscale]
    theme.write_in_cells(figure, [["a", "<b>", "c"]])
    cells, text = figure.data
    assert list(text.text) == ["a", "&lt;b&gt;", "c"] and list(text.x) == [0, 1, 2] and list(text.y) == [0, 0, 0]
    assert text.textfont.color == theme.INK
    for (_place, fainter), full in zip(cells.colorscale, plain, strict=True):
        assert fainter.rsplit(",", 1)[0] == full.rsplit(",", 1)[0]
        assert 0 < float(fainter.rsplit(",", 1)[1][:-1]) < float(full.rsplit(",", 1)[1][:-1])
