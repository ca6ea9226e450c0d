"""The figures of the position page hold the numbers they are given."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmcore.analysis.position.length import Bins
from pages.figures.position import comparison, encodings, rope, scaling, sinusoidal


def test_a_clocks_hand_ends_at_cosine_and_sine() -> None:
    figure = sinusoidal.clocks([1.0, 0.1], 7, [0, 1], 1, "pair")
    hands = [trace for trace in figure.data if trace.mode == "lines+markers"]
    for pair, (hand, angle) in enumerate(zip(hands, (7.0, 0.7), strict=True)):
        assert hand.x[1] - hand.x[0] == pytest.approx(math.cos(angle))
        assert hand.y[1] == pytest.approx(math.sin(angle))
        assert tuple(hand.customdata[1]) == pytest.approx((pair, angle, math.sin(angle), math.cos(angle)))
    assert [trace.line.color for trace in figure.data if trace.mode == "lines"][1] == sinusoidal.theme.OUTLINE


def test_waves_have_a_point_at_every_position() -> None:
    figure = sinusoidal.waves(0.3, 20, 5, names=("sin", "cos"), x_title="position")
    sine, cosine = (trace for trace in figure.data if trace.mode == "markers" and len(trace.x) == 20)
    np.testing.assert_allclose(sine.y, np.sin(0.3 * np.arange(20)))
    np.testing.assert_allclose(cosine.y, np.cos(0.3 * np.arange(20)))


def test_wavelengths_are_on_a_logarithmic_axis_that_holds_them_all() -> None:
    figure = sinusoidal.wavelengths([6.3, 63.0, 630.0], 1, shown=128, x_title="", y_title="", note="shown")
    assert figure.layout.yaxis.type == "log"
    assert list(figure.data[0].y) == [6.3, 63.0, 630.0]
    assert set(figure.data[1].y) == {128}


def test_a_table_outlines_the_chosen_row() -> None:
    figure = sinusoidal.table(np.eye(4), chosen=2, row_title="", column_title="", value_title="")
    shape = figure.layout.shapes[0]
    assert (shape.y0, shape.y1, shape.x1) == (1.5, 2.5, 3.5)
    assert not sinusoidal.table(np.eye(4), chosen=None, row_title="", column_title="", value_title="").layout.shapes


def test_pairs_are_drawn_to_one_scale_in_each_plane() -> None:
    q = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]])
    k = np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])
    figure = rope.pair_planes((q, q), (k, k), 0, [4, 8, 15], names=("a", "b", "c", "d"))
    arrows = {trace.name: trace for trace in figure.data if trace.name}
    ends = np.array([v for v in arrows["b"].x if v is not None]).reshape(-1, 2)
    assert ends[0, 1] - ends[0, 0] == pytest.approx(3 / 5)
    assert ends[1, 1] - ends[1, 0] == pytest.approx(1 / 2)
    assert np.isfinite(ends).all()  # also a pair of zeros
    assert tuple(arrows["d"].customdata[3]) == (8, 2.0, 0.0)


def test_one_plane_draws_the_arc_the_short_way_round() -> None:
    before, after = (1.0, 0.0), (math.cos(0.5), math.sin(0.5))
    figure = rope.pair_plane((before, after), (before, before), names=("a", "b", "c", "d"))
    arc = figure.data[0]
    assert (arc.x[-1], arc.y[-1]) == pytest.approx(after)
    assert max(np.abs(np.diff(arc.y))) < 0.02


def test_the_square_of_scores_uses_the_whole_scale() -> None:
    cells = rope.square([[8.5, 8.7], [8.6, 8.5]], row_title="", column_title="", value_title="score").data[0]
    assert cells.zmin is None and cells.zmax is None  # from the least to the largest, not from 0
    assert cells.z[1][0] == 8.6


def test_the_strip_numbers_the_pairs_of_both_layouts() -> None:
    names = {"half_split": "half", "interleaved": "inter"}
    cells = rope.layout_strip(6, names=names, component="component", pair="pair").data[0]
    assert [list(row) for row in cells.z] == [[0, 1, 2, 0, 1, 2], [0, 0, 1, 1, 2, 2]]


def test_rounding_is_written_as_zero_and_the_number_stays_in_the_hover() -> None:
    cells, written = comparison.stage_differences([[3e-8, 0.25]], ["attn"], ["none", "rope"], "d").data
    assert list(written.text) == ["0", "0.250"]
    assert cells.z[0][0] == 3e-8


def test_scores_leave_the_future_empty() -> None:
    _, cells, written = comparison.scores([[1.0, 9.0], [0.5, 0.5]], ["a", "b"], probability=True, limit=None).data
    assert np.isnan(cells.z[0][1])
    assert list(written.text) == ["100.0%", "", "50.0%", "50.0%"]


def test_two_distributions_keep_their_order_and_escape_labels() -> None:
    figure = comparison.two_distributions(["<b>", "x"], [0.7, 0.3], [0.2, 0.8], ("A", "B"), "p")
    assert [list(trace.x) for trace in figure.data] == [[0.7, 0.3], [0.2, 0.8]]
    assert figure.layout.yaxis.ticktext[0] == "&lt;b&gt;"
    assert figure.layout.xaxis.range == [0.0, 0.8] and figure.layout.margin.r >= 50  # where the numbers stand


def bins(means: list[float], width: int) -> Bins:
    starts = np.arange(len(means)) * width
    return Bins(starts, starts + width - 1, np.array(means), np.full(len(means), 0.1))


@pytest.mark.parametrize("logarithmic", [False, True])
def test_curves_end_where_there_are_no_positions(logarithmic: bool) -> None:
    curves = {"grammar": bins([1.0, 1.0, 1.0, 1.0], 4), "learned": bins([2.0, 3.0], 4)}
    figure = encodings.by_position(
        curves,
        {"learned": "red"},
        length=16,
        trained=8,
        ends={"learned": 8},
        baseline="grammar",
        note="beyond",
        end_note="ends",
        x_title="",
        y_title="",
        logarithmic=logarithmic,
    )
    grammar, learned, cross = figure.data
    assert grammar.line.dash == "dash" and learned.line.color == "red"
    assert list(learned.x) == [1.5, 5.5] and list(learned.y) == [2.0, 3.0]
    assert list(learned.customdata[1]) == [4, 7, 0.1]
    assert (cross.x[0], cross.y[0]) == (7.5, 3.0)
    assert figure.layout.shapes[0].x0 == 7.5 and figure.layout.shapes[0].x1 == 15.5
    assert figure.layout.annotations[0].y == pytest.approx(math.log10(3) if logarithmic else 3)


def test_weights_that_vanish_have_no_point_on_a_logarithmic_axis() -> None:
    figure = encodings.by_distance(
        {"a": [0.5, 0.0], "b": [0.25]},
        ["red", "blue"],
        baseline=("even", [0.75, 0.5]),
        x_title="",
        y_title="",
        logarithmic=True,
    )
    assert figure.data[0].y[0] == 0.5 and np.isnan(figure.data[0].y[1])
    assert [trace.line.dash for trace in figure.data] == ["solid", "solid", "dash"]
    low, high = figure.layout.yaxis.range
    assert low < math.log10(0.25) and high > math.log10(0.75)


def test_a_dot_for_every_head_of_every_block() -> None:
    figure = encodings.mean_distances([[1.0, 2.0], [3.0, 4.0]], head_name="head", x_title="", y_title="block")
    dots = figure.data[0]
    assert list(zip(dots.x, dots.y, dots.customdata, strict=True)) == [(1, 0, 0), (2, 0, 1), (3, 1, 0), (4, 1, 1)]


def test_what_an_encoding_does_leaves_the_future_empty() -> None:
    cells = encodings.effect([[1.0, 5.0], [-2.0, 1.0]], 1, row_title="", column_title="").data[0]
    assert np.isnan(cells.z[0][1]) and cells.zmax == 2.0 and cells.zmin == -2.0


def test_angles_are_lines_and_the_shade_ends_with_training() -> None:
    figure = scaling.angles(
        {"plain": 0.5, "scaled": 0.25},
        {"plain": "red", "scaled": "blue"},
        trained=9,
        length=33,
        note="",
        x_title="",
        y_title="",
    )
    assert figure.layout.shapes[0].y1 == 4.0 and figure.layout.shapes[0].x1 == 8
    np.testing.assert_allclose(figure.data[1].y, 0.25 * np.arange(33))


def test_slopes_of_the_second_rule_have_another_colour() -> None:
    figure = comparison.slopes([0.25, 0.06, 0.5], 2, names=("first", "then"), x_title="", y_title="")
    assert [list(trace.x) for trace in figure.data] == [[0, 1], [2]]
    assert figure.data[0].line.color != figure.data[1].line.color
    assert len(comparison.slopes([0.5, 0.25], 2, names=("first", "then"), x_title="", y_title="").data) == 1


def test_differences_of_probabilities_show_their_sign() -> None:
    cells, written = comparison.differences([[0.5, -0.25], [0.0001, 1.0]], ["a", "b"], ["x", "y"], "d").data
    assert cells.zmin == -1 and cells.zmax == 1
    assert list(written.text) == ["+0.500", "−0.250", "0", "+1.000"]
