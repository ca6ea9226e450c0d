"""The view Quantisation: its numbers are those of lmcore, its lines run, strange links and models are borne."""

from __future__ import annotations

import numpy as np
import pytest

import lmcore
from lmcore.analysis.quantisation import hidden
from lmcore.analysis.quantisation.costs import Cost, size
from lmcore.analysis.quantisation.weights import matrices, on_levels, piece_at
from lmcore.quantisation import KINDS
from pages.figures.compare import quantisation as figures
from pages.stages.compare.quantisation_costs import CostsSoFar, _table
from tests.pages.harness import clean, decoded, open_page, printed, told
from tests.pages.harness import figures as figures_of

VIEW = {"compare.view": "quantisation", "prompt": "Anna likes Tom"}


def test_a_piece_is_shown_with_its_levels_codes_and_equation() -> None:
    app = clean(open_page("compare", **VIEW, **{"quantisation.kind": "q4_1", "layer": "1", "quantisation.row": "3"}))
    piece = piece_at(matrices(lmcore.load("small-world").model)["blocks.1.mlp.down"], KINDS["q4_1"], 3, 0)
    strokes, before, after = figures_of(app)[0].data
    np.testing.assert_allclose(decoded(before.y), piece.before)
    np.testing.assert_allclose(decoded(after.y), piece.after)
    assert len(strokes.x) == 3 * 32
    assert f"{piece.scale:.6f}" in " ".join(each.value for each in app.markdown)
    assert "one scale d and one minimum m" in told(app)
    assert f"{piece.before[0]:.6f} {piece.codes[0]} {piece.after[0]:.6f}" in printed(app)


def test_a_matrix_its_fallback_and_strange_links_are_borne() -> None:
    address = {"quantisation.look": "matrix", "quantisation.kind": "tq1_0", "quantisation.matrix": "attn.q"}
    app = clean(open_page("compare", **VIEW, **address, layer="99"))
    assert "no multiple of that: llama.cpp keeps it as q4_0" in told(app)
    matrix = matrices(lmcore.load("small-world").model)["blocks.3.attn.q"]
    assert f"{100 * on_levels(matrix, KINDS['q4_0']).relative_error:.2f} %" in told(app)
    strange = {"look": "x", "kind": "q3_k", "matrix": "a", "row": "-5", "piece": "1e9", "sigmas": "nan"}
    strange = {f"quantisation.{key}": value for key, value in strange.items()}
    clean(open_page("compare", **VIEW, **strange, model="small-world-experts:q4_0", lang="zh"))


def test_the_hidden_states_are_those_of_the_two_models() -> None:
    app = clean(open_page("compare", **VIEW, **{"quantisation.look": "hidden"}))
    lm = lmcore.load("small-world")
    wanted = hidden.relative_errors(lm, lmcore.load("small-world:q4_0"), lm.tokenizer.encode("Anna likes Tom").ids)
    np.testing.assert_allclose(
        decoded(figures_of(app)[0].data[0].y), [each.mean() for each in wanted.values()], rtol=1e-5
    )


def test_the_costs_wait_for_the_button_and_say_what_they_are() -> None:
    app = clean(open_page("compare", **VIEW, **{"quantisation.look": "cost", "lang": "zh"}))
    assert any(button.key == "generation.quantisation.start" for button in app.button)
    assert not figures_of(app)


def cost(variant: str, kld: float, truth: float | None = None) -> Cost:
    n = 20
    lm = lmcore.load("small-world")
    return Cost(
        variant,
        *size(lm, variant),
        np.linspace(0, 1, n),
        np.linspace(0, 1, n),
        np.full(n, kld),
        np.ones(n, dtype=bool),
        None if truth is None else np.linspace(truth, 2 * truth, n),
    )


def test_the_table_has_every_number_and_more_where_the_grammar_is_known() -> None:
    plain = _table(CostsSoFar((cost("float32", 0), cost("q4_0", 0.1)), 0.5).costs)
    assert list(plain.columns)[:4] == ["variant", "bits per weight", "bytes", "perplexity"]
    known = _table((cost("float32", 0, 0.1), cost("q4_0", 0.1, 0.2)))
    assert len(known.columns) == len(plain.columns) + 4
    assert known["more than float32 (nats)"].tolist() == pytest.approx([0, 0.15])


def test_a_logarithmic_cost_leaves_out_what_is_not_above_zero() -> None:
    found = figures.against_size(
        [5, 1, 2], [0.0, 0.1, 0.01], [0, 0, 0], ["a", "b", "c"], x_title="", y_title="", logarithmic=True
    )
    assert list(found.data[0].x) == [1, 2] and list(found.data[0].text) == ["b", "c"]


def test_what_is_clipped_is_shaded() -> None:
    def shades(shares: list[float]) -> int:
        drawn = figures.on_levels([-1, 0, 1, 2], shares, (0, 1), clipped="clipped", x_title="", y_title="")
        return sum(shape.type == "rect" for shape in drawn.layout.shapes)

    assert (shades([0.0, 0.5, 0.5]), shades([0.0, 1.0, 0.0])) == (0, 0)
    wide = figures.on_levels(
        np.arange(-1, 2.5, 0.5), [0.1, 0.2, 0.3, 0.3, 0.1, 0.1], (0, 1), clipped="clipped", x_title="", y_title=""
    )
    assert sum(shape.type == "rect" for shape in wide.layout.shapes) == 2
