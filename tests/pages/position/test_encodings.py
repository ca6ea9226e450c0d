"""The encodings one by one: their numbers on the page against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

import lmcore
from lmcore import Trace
from pages.figures.theme import fmt_logit, fmt_probability
from tests.pages.harness import decoded, figures, snippet, tables, told
from tests.pages.position.page import run


def test_scaled_frequencies_are_those_of_the_formulas() -> None:
    app = run(**{"position.view": "scaling", "position.factor": "8", "position.trained": "512"})
    table = tables(app)[-1]
    plain = 10_000.0 ** (-np.arange(16) / 16)
    np.testing.assert_allclose(table["θ unscaled"], plain)
    np.testing.assert_allclose(table["θ linear"], plain / 8)
    np.testing.assert_allclose(table["θ NTK-aware"], (10_000 * 8 ** (32 / 30)) ** (-np.arange(16) / 16))
    turns = 512 * plain / (2 * np.pi)
    kept = np.clip((turns - 1) / 3, 0, 1)
    np.testing.assert_allclose(table["θ llama3"], kept * plain + (1 - kept) * plain / 8)
    assert table["θ YaRN"][0] == 1 and table["θ YaRN"][15] == pytest.approx(plain[15] / 8)


@pytest.mark.parametrize("kind", ["linear", "ntk", "yarn", "llama3"])
def test_every_scaling_has_its_view(kind: str) -> None:
    app = run(**{"position.view": "scaling", "position.scaling": kind, "position.factor": "1"})
    assert not app.error
    table = tables(app)[-1]
    for column in table.columns[3:]:
        np.testing.assert_allclose(table[column], table["θ unscaled"])  # a factor of 1 changes nothing


@pytest.mark.slow
def test_scalings_are_measured_on_the_built_in_model_when_asked() -> None:
    app = run(**{"position.view": "scaling"})
    [measure] = [button for button in app.button if button.key == "position.scaled_start"]
    measure.click().run()
    app.session_state["position.scaled_run"].stop()
    assert not app.session_state["position.scaled_run"].error
    assert app.session_state["position.scaled_run"].done > 0


@pytest.mark.parametrize("d_model", ["2", "7", "128"])
def test_encodings_side_by_side_for_any_width(d_model: str) -> None:
    app = run(**{"position.view": "compare", "position.d_model": d_model})
    assert not app.error
    assert ("is odd" in told(app)) == (d_model == "7")
    table = tables(app)[0].set_index("encoding")
    assert table.loc["Learned", "learned parameters"] == 128 * 128
    assert table.loc["Relative bias", "learned parameters"] == 32 * 4


def test_side_by_side_the_lines_are_those_of_the_chosen_query() -> None:
    app = run(**{"position.view": "compare", "position.query": "20"})
    squares = [figure for figure in figures(app) if figure.data[0].type == "heatmap"]
    lines = [figure.data[0] for figure in figures(app) if figure.data[0].type == "scatter"][: len(squares)]
    assert len(squares) == 6
    for square, line in zip(squares, lines, strict=True):
        drawn = np.array(decoded(square.data[0].z), dtype=float)[20, 20::-1]
        np.testing.assert_allclose(decoded(line.y), drawn, atol=1e-6)
        assert (square.layout.shapes[0].y0, square.layout.shapes[0].y1) == (19.5, 20.5)
    _names, said = snippet(app)
    assert f"{decoded(lines[4].y)[3]:.4f}" in said  # relative bias, at distance 3


@pytest.mark.parametrize(
    ("d_model", "place", "base"), [("128", "10", "10000"), ("7", "3", "100"), ("2", "0", "1000000")]
)
def test_sinusoids_are_those_of_the_formula(d_model: str, place: str, base: str) -> None:
    app = run(
        **{
            "position.view": "sinusoidal",
            "position.d_model": d_model,
            "position.place": place,
            "position.base": base,
        }
    )
    table = tables(app)[0]
    assert len(table) == math.ceil(int(d_model) / 2)
    for pair in (0, len(table) - 1):
        angle = int(place) / float(base) ** (2 * pair / int(d_model))
        assert table["sin"][pair] == pytest.approx(math.sin(angle))
        has_cosine = 2 * pair + 1 < int(d_model)
        assert (table["cos"][pair] == pytest.approx(math.cos(angle))) if has_cosine else np.isnan(table["cos"][pair])


def test_rope_scores_stay_when_both_positions_move() -> None:
    app = run(**{"position.view": "rope", "layer": "2", "head": "1", "position.key": "1"})
    lm, trace = lmcore.load("small-world"), Trace()
    lm(lm.tokenizer.encode("小明喜欢小红").ids, trace=trace)
    wanted = trace["blocks.2.attn.scores"][1, 2, 1].item()
    shifts, vectors, pairs = tables(app)
    np.testing.assert_allclose(shifts["score"], wanted, atol=2e-4 * max(1, abs(wanted)))
    assert pairs["share of the score"].sum() == pytest.approx(wanted, abs=1e-4)
    assert f"**{wanted:.5f}**" in told(app)
    vectors = vectors.set_index("vector")
    np.testing.assert_allclose(vectors["length before"], vectors["length after"], rtol=1e-5)
    assert vectors.loc["v", "largest change of a component"] == 0
    assert vectors.loc["q", "largest change of a component"] > 0.01


def test_a_place_of_the_square_begins_the_table_of_shifts() -> None:
    app = run(**{"position.view": "rope", "position.key": "1", "position.placed": "7,3"})
    shifts = tables(app)[0]
    assert shifts.iloc[0, :2].tolist() == [7, 3]
    square = next(figure for figure in figures(app) if figure.data[0].type == "heatmap")
    np.testing.assert_allclose(shifts["score"], np.array(decoded(square.data[0].z))[7, 3], rtol=1e-3)
    assert "7 + shift" not in told(app) and f"{shifts['score'][0]:.4f}"[:5] in snippet(app)[1]
    for wrong in ("7", "24,1", "-1,2", "a,b", ""):
        assert tables(run(**{"position.view": "rope", "position.placed": wrong}))[0].iloc[0, 0] == 2


@pytest.mark.parametrize(("view", "model"), [("alibi", "small-world-alibi"), ("relative", "small-world-relative")])
def test_a_pair_of_the_text_is_told_with_its_bias(view: str, model: str) -> None:
    app = run(**{"position.view": view, "position": "2", "position.key": "1", "head": "1"})
    lm, trace = lmcore.load(model), Trace()
    lm(lm.tokenizer.encode("小明喜欢小红").ids, trace=trace)
    bias, biased = (trace[name][1, 2, 1].item() for name in ("position_bias", "blocks.0.attn.scores"))
    pattern = trace["blocks.0.attn.pattern"][1, 2, 1].item()
    wanted = f"the bias {fmt_logit(bias)} give {fmt_logit(biased)}; the weight goes from"
    assert wanted in told(app) and f"to {fmt_probability(pattern)}." in told(app)


def test_alibi_has_the_slopes_for_six_heads() -> None:
    app = run(**{"position.view": "alibi", "position.n_heads": "6"})
    assert tables(app)[0]["slope"].tolist() == [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]


def test_the_learned_bias_is_the_models() -> None:
    table = tables(run(**{"position.view": "relative", "position.buckets": "16"}))[0]
    weights = lmcore.load("small-world-relative").model.position.weight.detach().numpy()
    np.testing.assert_allclose(table["head 2"][:16], weights[:16, 2], atol=1e-6)
    assert table["bucket"].max() <= 15
