"""The figures of the generation page."""

import numpy as np
import pytest

from pages.figures import theme
from pages.figures.generation import curves, distribution
from pages.figures.generation.side_by_side import side_by_side
from pages.figures.generation.tree import Path as Way
from pages.figures.generation.tree import tree


def test_a_distribution_shows_the_whole_vocabulary() -> None:
    initial, final = np.array([0.1, 0.4, 0.3, 0.2]), np.array([0.0, 0.57, 0.43, 0.0])
    figure = distribution.distribution(initial, final, final == 0, [1, 2, 3], ["b", '<c> "', "d"], chosen=2)
    before, after = figure.data
    np.testing.assert_allclose(before.x, [0.4, 0.3, 0.2, 0.1])
    np.testing.assert_allclose(after.x, [0.57, 0.43, 0.0, 0.0])
    assert sum(before.x) == pytest.approx(1) and sum(after.x) == pytest.approx(1)
    assert [shape != "" for shape in before.marker.pattern.shape] == [False, False, True, False]
    assert [width > 0 for width in after.marker.line.width] == [False, True, False, False]
    assert before.text[2] == "removed" and list(after.text)[:3] == ["57.00 %", "43.00 %", ""]
    assert max(distribution.distribution([1.0, 0], [1.0, 0], [False] * 2, [0], ["a"]).layout.xaxis.tickvals) == 1
    assert list(figure.layout.yaxis.ticktext) == ["b", '&lt;c&gt; "', "d", "the other 1 tokens"]
    assert figure.layout.xaxis.range[0] == 0


def test_a_distribution_shown_whole_has_no_rest() -> None:
    figure = distribution.distribution([0.5, 0.5], [0.5, 0.5], [False, False], [0, 1], ["a", "a"])
    assert len(figure.data[0].x) == 2


def test_what_is_written_at_the_last_tokens_reaches_to_the_left() -> None:
    figure = tree([-1, 0, 1, 0], list("abcd"), [0.0] * 4, list("abcd"), paths=[Way([0, 1])])
    written = next(trace for trace in figure.data if trace.text)
    assert list(written.textposition) == ["top center", "top center", "top left", "top center"]
    deep = tree([*range(-1, 9)], list("abcdefghij"), [0.0] * 10, list("abcdefghij"), paths=[Way([0, 1])])
    assert set(next(trace for trace in deep.data if trace.text).textposition) == {"top center"}  # there it is scrolled


def test_branches_keep_to_lanes_of_their_own() -> None:
    figure = tree(
        [-1, 0, 1, 0, 3],
        ["prompt", "a", "b", "<c>", "d"],
        [0, 0.5, 1, 0.2, 0.1],
        ["", "a 50 %", "", "", ""],
        paths=[Way([0, 3, 4], "<in view>"), Way([0, 1, 2], "compared", theme.CATEGORICAL[1])],
        present=4,
        by_hand=[3],
        ends={2: "<end>"},
    )
    other, in_view, compared, nodes, ends = figure.data
    assert list(nodes.x) == [0, 1, 2, 1, 2] and list(nodes.y) == [0, 0, 0, 1, 1]
    assert other.x == [] and in_view.x.count(None) == compared.x.count(None) == 2  # an edge to each node but the root
    assert in_view.line.width > compared.line.width and in_view.name == "&lt;in view&gt;"
    assert nodes.text[3] == "&lt;c&gt;" and nodes.customdata[1] == "a 50 %"
    assert nodes.marker.symbol[3] == "diamond" and nodes.marker.symbol[1] == "circle"
    assert nodes.marker.line.color[4] == theme.OUTLINE != nodes.marker.line.color[3]
    assert (nodes.marker.cmin, nodes.marker.cmax) == (0, 1)
    assert ends.x == [2] and 0 < ends.y[0] < 0.5 and ends.text[0].strip() == "&lt;end&gt;"


def test_curves_carry_their_numbers() -> None:
    figure = curves.against_length([1, 8], {"w": [1, 2], "<o>": [3, 4]}, x_title="x", y_title="y", unit="ms")
    assert [list(line.y) for line in figure.data] == [[1.0, 2.0], [3.0, 4.0]]
    assert list(figure.data[0].x) == [1, 8] and figure.data[1].name == "&lt;o&gt;"
    assert figure.layout.yaxis.rangemode == "tozero"
    text = curves.along_text([0.2, 0.9, 1.0], ["a", "b", "<c>"], [(1, 2), (2, 3)], x_title="x", y_title="y")
    assert list(text.data[0].y) == [0.2, 0.9, 1.0] and text.data[0].customdata[2] == "&lt;c&gt;"
    assert [(shape.x0, shape.x1) for shape in text.layout.shapes] == [(0.5, 1.5), (1.5, 2.5)]
    bars = curves.measures({"distinct-1": [0.5, 1.0], "self-BLEU": [None, 0.25]}, ["<a>", "b"], y_title="y")
    assert [list(bar.y) for bar in bars.data] == [[0.5, None], [1.0, 0.25]] and bars.data[0].name == "&lt;a&gt;"
    assert bars.data[0].text == ["0.500", "–"] and bars.layout.yaxis.range[0] == 0


def test_bars_side_by_side_mark_what_was_drawn_and_what_is_not_allowed() -> None:
    figure = side_by_side(
        ["<b>", "c", "rest"], {"p": [0.5, 0.3, 0.2], "q": [0.0, 0.9, 0.1]}, axis="x", chosen=1, removed=[0]
    )
    p, q = figure.data
    assert list(p.x) == [0.5, 0.3, 0.2] and list(q.x) == [0.0, 0.9, 0.1]
    assert list(figure.layout.yaxis.ticktext) == ["&lt;b&gt;", "c", "rest"]
    assert [shape != "" for shape in p.marker.pattern.shape] == [True, False, False]
    assert set(q.marker.pattern.shape) == {""} and p.marker.color[0] == theme.REMOVED
    assert [width > 0 for width in q.marker.line.width] == [False, True, False]
    assert max(figure.layout.xaxis.tickvals) == 1
