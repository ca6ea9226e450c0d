"""The position page: its figures, and its numbers against computations of our own."""

from __future__ import annotations

import contextlib
import io
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import lmcore
from lmcore import Trace
from pages.figures.position import comparison, rope, sinusoidal

ROOT = Path(__file__).parents[2]
VIEWS = ("order", "sinusoidal", "learned", "rope", "alibi", "relative")
PAIR = ("小明喜欢小红，所以", "小红喜欢小明，所以")
ENCODINGS = {
    config.position_encoding: name for name, config in lmcore.builtin.configs().items() if config.tie_embeddings
}


def run(**parameters: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    for name, value in {"lang": "en", "prompt": "小明喜欢小红", **parameters}.items():
        app.query_params[name] = value
    app.run()
    app.switch_page("pages/stages/position.py")
    app.run()
    assert not app.exception, app.exception[0].message
    return app


def tables(app: AppTest) -> list[pd.DataFrame]:
    return [element.value for element in app.dataframe]


def told(app: AppTest) -> str:
    return "\n".join(element.value for element in [*app.markdown, *app.info, *app.caption, *app.text])


def printed(app: AppTest) -> str:
    """Run the page's snippet and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(app.code[-1].value, "snippet", "exec"), {})
    return out.getvalue()


# Figures


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
    figure = rope.pair_planes((q, q), (k, k), 0, names=("a", "b", "c", "d"))
    arrows = {trace.name: trace for trace in figure.data if trace.name}
    ends = np.array([v for v in arrows["b"].x if v is not None]).reshape(-1, 2)
    assert ends[0, 1] - ends[0, 0] == pytest.approx(3 / 5)
    assert ends[1, 1] - ends[1, 0] == pytest.approx(1 / 2)
    assert np.isfinite(ends).all()  # also a pair of zeros
    assert tuple(arrows["d"].customdata[3]) == (1, 2.0, 0.0)


def test_one_plane_draws_the_arc_the_short_way_round() -> None:
    before, after = (1.0, 0.0), (math.cos(0.5), math.sin(0.5))
    figure = rope.pair_plane((before, after), (before, before), names=("a", "b", "c", "d"))
    arc = figure.data[0]
    assert (arc.x[-1], arc.y[-1]) == pytest.approx(after)
    assert max(np.abs(np.diff(arc.y))) < 0.02


def test_the_strip_numbers_the_pairs_of_both_layouts() -> None:
    names = {"half_split": "half", "interleaved": "inter"}
    cells = rope.layout_strip(6, names=names, component="component", pair="pair").data[0]
    assert [list(row) for row in cells.z] == [[0, 1, 2, 0, 1, 2], [0, 0, 1, 1, 2, 2]]


def test_rounding_is_written_as_zero_and_the_number_stays_in_the_hover() -> None:
    cells, written, _ = comparison.stage_differences([[3e-8, 0.25]], ["attn"], ["none", "rope"], "d").data
    assert list(written.text) == ["0", "0.250"]
    assert cells.z[0][0] == 3e-8


def test_scores_leave_the_future_empty() -> None:
    _, cells, written, _ = comparison.scores([[1.0, 9.0], [0.5, 0.5]], ["a", "b"], probability=True, limit=None).data
    assert np.isnan(cells.z[0][1])
    assert list(written.text) == ["100.0%", "", "50.0%", "50.0%"]


def test_two_distributions_keep_their_order_and_escape_labels() -> None:
    figure = comparison.two_distributions(["<b>", "x"], [0.7, 0.3], [0.2, 0.8], ("A", "B"), "p")
    assert [list(trace.x) for trace in figure.data] == [[0.7, 0.3], [0.2, 0.8]]
    assert figure.layout.yaxis.ticktext[0] == "&lt;b&gt;"
    assert figure.layout.xaxis.range[0] == 0 and figure.layout.xaxis.range[1] > 0.8


# The page


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_runs_and_its_snippet_too(view: str, lang: str) -> None:
    app = run(**{"position.view": view, "lang": lang})
    assert not app.error and len(app.title) == 1
    assert app.title[0].value.isascii() == (lang == "en")
    assert len(printed(app)) > 20


def probs_and_traces(name: str) -> tuple[list[np.ndarray], list[Trace]]:
    lm = lmcore.load(name)
    probs, traces = [], []
    for text in PAIR:
        traces.append(Trace())
        logits = lm(lm.tokenizer.encode(text).ids, trace=traces[-1])[-1].double().numpy()
        shares = np.exp(logits - logits.max())
        probs.append(shares / shares.sum())
    return probs, traces


def test_distances_between_the_two_sentences_are_the_models() -> None:
    table = tables(run(**{"position.view": "order", "position.pair": "so"}))[0].set_index("encoding")
    assert set(table.index) == {"rope", "learned", "sinusoidal", "relative", "alibi", "none"}
    for encoding, name in ENCODINGS.items():
        probs, traces = probs_and_traces(name)
        assert table.loc[encoding, "total variation"] == pytest.approx(np.abs(probs[0] - probs[1]).sum() / 2, abs=1e-6)
        a, b = (trace["blocks.1.attn.out"][-1].double().numpy() for trace in traces)
        wanted = np.linalg.norm(a - b) / (np.linalg.norm(a) + np.linalg.norm(b)) * 2
        assert table.loc[encoding, "blocks.1.attn.out"] == pytest.approx(wanted, abs=1e-6)


def test_without_positions_the_first_layer_cannot_tell_and_the_page_shows_it() -> None:
    table = tables(run(**{"position.view": "order", "position.pair": "so"}))[0].set_index("encoding")
    assert table.loc["none", "blocks.0.attn.out"] < comparison.ROUNDING
    assert (table.drop(index="none")["blocks.0.attn.out"] > 100 * comparison.ROUNDING).all()
    assert table.loc["none", "hidden_state"] > 100 * comparison.ROUNDING  # deeper layers can: measured, not assumed


def test_the_readers_prompt_has_two_tokens_exchanged() -> None:
    app = run(prompt="小明喜欢小红，", **{"position.view": "order", "position.pair": "prompt"})
    assert "小红喜欢小明，" in told(app)
    few = run(prompt="今天天气", **{"position.view": "order", "position.pair": "prompt"})
    assert "at least 3 tokens" in told(few)
    assert not tables(few)


def test_a_long_prompt_leaves_out_the_model_whose_table_ends() -> None:
    app = run(prompt="我喜欢猫。" * 40, **{"position.view": "order", "position.pair": "prompt"})
    assert "learned" not in set(tables(app)[0]["encoding"])


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
    shifts, pairs = tables(app)
    np.testing.assert_allclose(shifts["score q·k / √d_head"], wanted, atol=2e-4 * max(1, abs(wanted)))
    assert pairs["share of the score"].sum() == pytest.approx(wanted, abs=1e-4)
    assert f"**{wanted:.5f}**" in told(app)


def test_alibi_has_the_slopes_for_six_heads() -> None:
    app = run(**{"position.view": "alibi", "position.n_heads": "6"})
    assert tables(app)[0]["slope"].tolist() == [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]


def test_the_learned_bias_is_the_models() -> None:
    table = tables(run(**{"position.view": "relative", "position.buckets": "16"}))[0]
    weights = lmcore.load("small-world-relative").model.position.weight.detach().numpy()
    np.testing.assert_allclose(table["head 2"][:16], weights[:16, 2], atol=1e-6)
    assert table["bucket"].max() <= 15


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("prompt", ["", "我", "\0\u202e<script>alert(1)</script> :red[x] $y$ 😊", "好" * 600])
def test_prompts_that_do_not_fit_are_met_with_numbers_or_a_sentence(view: str, prompt: str) -> None:
    app = run(prompt=prompt, **{"position.view": view})
    assert not app.error
    assert tables(app) or app.info
    if prompt == "" and view in ("sinusoidal", "alibi", "relative", "rope"):
        assert "prompt above" in told(app)


def test_values_out_of_range_are_replaced_and_said() -> None:
    app = run(**{"position.view": "sinusoidal", "position.length": "64", "position.place": "900"})
    assert "900 is not a number from 0 to 63; showing 63." in told(app)


def test_a_pair_of_other_tokens_is_said_to_be_one() -> None:
    assert "The same tokens in two orders" in told(run(**{"position.view": "order", "position.pair": "birthday"}))
    assert "Not quite the same tokens" in told(run(**{"position.view": "order", "position.pair": "tom"}))
