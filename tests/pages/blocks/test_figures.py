"""The figures of the blocks page: they carry the numbers, and long ones stay small."""

from __future__ import annotations

import json
import math

import numpy as np

from pages.figures import theme
from pages.figures.blocks import attention, residual
from tests.pages.hostile import TEXTS


def cells_inside(path: str, n: int) -> np.ndarray:
    """Return which cells of a square lie inside a closed path of horizontal and vertical steps, [row, column]."""
    x, y = map(float, path.split()[1].split(","))
    inside = np.zeros((n, n), dtype=bool)
    for step, to in zip(path.split()[2:-1:2], map(float, path.split()[3:-1:2]), strict=True):
        if step == "V":  # each vertical side turns what lies to the right of it, from its upper to its lower end
            low, high = sorted((y, to))
            rows = [row for row in range(n) if low < row < high]
            inside[rows, math.ceil(x) :] ^= True
            y = to
        else:
            x = to
    return inside


def test_additions_of_attention_and_mlp_differ_in_colour_with_norms_behind_them_too() -> None:
    names = ["blocks.0.attn.out", "blocks.0.mlp.out", "blocks.17.attn_post_norm.out", "blocks.17.mlp_post_norm.out"]
    figure = residual.additions([1.0, 2.0, 3.0, 4.0], names, "Length")
    assert list(figure.data[0].marker.color) == [residual.ATTENTION, residual.MLP] * 2
    assert not any("…" in label for label in figure.layout.yaxis.ticktext)


def test_pattern_greys_the_future_and_outlines_the_query() -> None:
    weights = np.tril(np.full((3, 3), 0.25)) + 0.0
    figure = attention.pattern(weights, ["a", "<b>", "c"], 1, ("Query of all", "Key", "Weight"))
    (cells,), (grey, box) = figure.data, figure.layout.shapes
    np.testing.assert_array_equal(np.isnan(cells.z), np.triu(np.ones((3, 3)), 1) == 1)
    np.testing.assert_array_equal(cells_inside(grey.path, 3), np.triu(np.ones((3, 3)), 1))
    assert grey.fillcolor == theme.MASKED
    np.testing.assert_array_equal(cells.z[np.tril_indices(3)], 0.25)
    assert (cells.zmin, cells.zmax) == (0, 1)
    assert (box.y0, box.y1, box.x1) == (0.5, 1.5, 1.5)  # ends at the query: later keys are not its own
    assert figure.layout.yaxis.title.text == "Query of all"


def test_a_pattern_of_512_tokens_is_a_small_message() -> None:
    figure = attention.pattern(
        np.full((512, 512), 1 / 512), [f"{i}:x" for i in range(512)], 5, ("Query", "Key", "Weight")
    )
    assert len(json.dumps(figure.spec())) < 3e6
    assert len(figure.layout.yaxis.ticktext) <= 24 and len(figure.layout.xaxis.ticktext) <= 24


def test_the_scale_of_a_long_pattern_fits_its_weights() -> None:
    weights = np.tril(1 / np.arange(1.0, 201)[:, None] * np.ones(200))
    cells = attention.pattern(weights, [f"{i}:x" for i in range(200)], 5, ("Query", "Key", "Weight")).data[-1]
    assert 0.02 < cells.zmax < 0.2 and cells.z[0][0] == 1  # the first row's weight is beyond it, and says so on hover


def test_every_head_has_a_thumbnail_and_the_chosen_one_its_outline() -> None:
    patterns = np.random.default_rng(0).random((5, 4, 4))
    figure = attention.all_patterns(patterns, 3, "Head")
    for trace, pattern in zip(figure.data, patterns, strict=True):
        np.testing.assert_allclose(trace.z[np.tril_indices(4)], pattern[np.tril_indices(4)], rtol=1e-6)
        assert np.isnan(trace.z[0, 1])
    boxes = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert [box.line.color == theme.OUTLINE for box in boxes] == [i == 3 for i in range(5)]
    steps = {(shape.xref, shape.yref) for shape in figure.layout.shapes if shape.type == "path"}
    assert steps == {(trace.xaxis, trace.yaxis) for trace in figure.data}


def test_a_long_pattern_is_drawn_by_the_largest_of_each_patch() -> None:
    weights = np.zeros((130, 130))
    weights[129, 65] = 0.7
    small = attention.shrink(weights)
    assert small.shape == (44, 44) and small[43, 21] == 0.7 and np.count_nonzero(small) == 1


def test_scores_and_weights_stand_side_by_side_and_hidden_keys_have_no_weight() -> None:
    figure = attention.scores_to_weights(
        [1.0, -2.0, 5.0], [0.9, 0.1, 0.0], [False, False, True], ["a", "b", "c"], ("Score", "Weight")
    )
    scores, weights = figure.data
    assert list(scores.x) == [1.0, -2.0, 5.0] and list(weights.x) == [0.9, 0.1, 0.0]
    assert scores.marker.color[2] == theme.REMOVED and scores.marker.pattern.shape[2] == "/"
    assert list(weights.text) == ["90.00 %", "10.00 %", ""]
    assert weights.xaxis == "x2" and figure.layout.xaxis2.range[0] == 0


def test_entries_that_are_not_finite_are_grey_and_scales_fit_the_tensor() -> None:
    masked = residual.tensor([[1.0, -np.inf]], ["a"], ["b", "c"], ("query", "key"), "blocks.0.attn.masked_scores")
    assert np.isnan(masked.data[1].z[0][1]) and (masked.data[1].zmin, masked.data[1].zmax) == (-1, 1)
    pattern = residual.tensor([[0.5]], ["a"], ["b"], ("query", "key"), "blocks.0.attn.pattern").data[0]
    scale = residual.tensor([[0.5]], ["a"], ["b"], ("", "position"), "final_norm.scale").data[0]
    assert (pattern.zmin, pattern.zmax) == (0, 1) and (scale.zmin, scale.zmax) == (0, 0.5)


def test_labels_of_figures_are_literal() -> None:
    figure = attention.vectors(np.ones((len(TEXTS), 2)), TEXTS, "d_head", "Value", marked=0)
    assert not any("<" in text for text in figure.layout.yaxis.ticktext)


def test_a_stream_can_end_its_scale_before_the_longest_vector() -> None:
    values, names, tokens, titles = [[9000.0, 3.0], [8000.0, 4.0]], ["a", "b"], ["x", "y"], ("Position", "Length")
    whole, cut = (
        residual.stream(values, names, tokens, 1, titles, signed=False, limit=end).data[0] for end in (None, 4)
    )
    assert (whole.zmax, cut.zmax) == (9000.0, 4) and cut.z[0][0] == 9000.0
