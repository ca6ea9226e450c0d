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
import lmcore.corpus
from lmcore import Trace
from lmcore.analysis.length import HELD_OUT_SEED, Bins
from pages.figures.position import comparison, encodings, rope, scaling, sinusoidal

ROOT = Path(__file__).parents[2]
VIEWS = (
    "order", "length", "distance", "compare", "sinusoidal", "learned", "rope", "scaling", "alibi", "relative",
)  # fmt: skip
PAIR = ("小明喜欢小红，所以", "小红喜欢小明，所以")
ENCODINGS = {
    config.position_encoding: name for name, config in lmcore.builtin.configs().items() if config.tie_embeddings
}


FEW = {"position.windows": "16"}  # of held-out text, so that a run is short


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


def bins(means: list[float], width: int) -> Bins:
    starts = np.arange(len(means)) * width
    return Bins(starts, starts + width - 1, np.array(means), np.full(len(means), 0.1))


@pytest.mark.parametrize("logarithmic", [False, True])
def test_curves_end_where_there_are_no_positions(logarithmic: bool) -> None:
    curves = {"grammar": bins([1.0, 1.0, 1.0, 1.0], 4), "learned": bins([2.0, 3.0], 4)}
    figure = encodings.by_position(
        curves, {"learned": "red"}, length=16, trained=8, ends={"learned": 8}, baseline="grammar", note="beyond",
        end_note="ends", x_title="", y_title="", logarithmic=logarithmic,
    )  # fmt: skip
    grammar, learned, cross = figure.data
    assert grammar.line.dash == "dash" and learned.line.color == "red"
    assert list(learned.x) == [1.5, 5.5] and list(learned.y) == [2.0, 3.0]
    assert list(learned.customdata[1]) == [4, 7, 0.1]
    assert (cross.x[0], cross.y[0]) == (7.5, 3.0)
    assert figure.layout.shapes[0].x0 == 7.5 and figure.layout.shapes[0].x1 == 15.5
    assert figure.layout.annotations[0].y == pytest.approx(math.log10(3) if logarithmic else 3)


def test_weights_that_vanish_have_no_point_on_a_logarithmic_axis() -> None:
    figure = encodings.by_distance(
        {"a": [0.5, 0.0], "b": [0.25]}, ["red", "blue"], baseline=("even", [0.75, 0.5]), x_title="", y_title="",
        logarithmic=True,
    )  # fmt: skip
    assert figure.data[0].y[0] == 0.5 and np.isnan(figure.data[0].y[1])
    assert [trace.line.dash for trace in figure.data] == ["solid", "solid", "dash"]
    low, high = figure.layout.yaxis.range
    assert low < math.log10(0.25) and high > math.log10(0.75)


def test_a_dot_for_every_head_of_every_block() -> None:
    figure = encodings.mean_distances([[1.0, 2.0], [3.0, 4.0]], head_name="head", x_title="", y_title="block")
    dots = figure.data[0]
    assert list(zip(dots.x, dots.y, dots.customdata, strict=True)) == [(1, 0, 0), (2, 0, 1), (3, 1, 0), (4, 1, 1)]


def test_what_an_encoding_does_leaves_the_future_empty() -> None:
    cells = encodings.effect([[1.0, 5.0], [-2.0, 1.0]], row_title="", column_title="").data[0]
    assert np.isnan(cells.z[0][1]) and cells.zmax == 2.0 and cells.zmin == -2.0


def test_angles_are_lines_and_the_shade_ends_with_training() -> None:
    figure = scaling.angles(
        {"plain": 0.5, "scaled": 0.25}, {"plain": "red", "scaled": "blue"}, trained=9, length=33, note="",
        x_title="", y_title="",
    )  # fmt: skip
    assert figure.layout.shapes[0].y1 == 4.0 and figure.layout.shapes[0].x1 == 8
    np.testing.assert_allclose(figure.data[1].y, 0.25 * np.arange(33))


def test_slopes_of_the_second_rule_have_another_colour() -> None:
    figure = comparison.slopes([0.25, 0.06, 0.5], 2, names=("first", "then"), x_title="", y_title="")
    assert [list(trace.x) for trace in figure.data] == [[0, 1], [2]]
    assert figure.data[0].line.color != figure.data[1].line.color
    assert len(comparison.slopes([0.5, 0.25], 2, names=("first", "then"), x_title="", y_title="").data) == 1


def test_differences_of_probabilities_show_their_sign() -> None:
    cells, *written = comparison.differences([[0.5, -0.25], [0.0001, 1.0]], ["a", "b"], ["x", "y"], "d").data
    assert cells.zmin == -1 and cells.zmax == 1
    assert list(written[0].text) == ["+0.500", "−0.250", "0", "+1.000"]


# The page


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_runs_and_its_snippet_too(view: str, lang: str) -> None:
    app = run(**{"position.view": view, "lang": lang}, **FEW)
    assert not app.error and len(app.title) == 1
    assert app.title[0].value.isascii() == (lang == "en")
    assert len(printed(app)) > 20


def measured(**parameters: str) -> AppTest:
    """Open the view of long texts and wait until its run has ended."""
    app = run(**{"position.view": "length"}, **FEW, **parameters)
    app.session_state["position.length_run"]._thread.join(120)
    app.run()
    assert not app.exception
    return app


def test_losses_beyond_the_trained_length_are_the_models_and_learned_ends() -> None:
    app = measured()
    assert "Learned positions end at position 127" in told(app)
    spans, bins = tables(app)
    spans = spans.set_index("encoding")
    assert set(spans.index) == set(ENCODINGS)
    assert list(spans.loc["learned"][["128–255", "256–383", "384–511"]]) == ["no such position"] * 3
    text = next(lmcore.corpus.windows(HELD_OUT_SEED, 16, 512, lmcore.builtin.tokenizer()))
    truth = lmcore.corpus.Truth(lmcore.builtin.tokenizer())
    for encoding, length in (("learned", 128), ("alibi", 512)):
        lm = lmcore.load(ENCODINGS[encoding])
        losses = np.zeros((16, length))
        for row, ids in zip(losses, text, strict=True):
            logits = lm(ids[:length].tolist()).double().numpy()
            logits -= logits.max(-1, keepdims=True)
            row[:] = np.log(np.exp(logits).sum(-1)) - logits[np.arange(length), ids[1 : length + 1]]
        grammar = np.array([-truth.log_prob(ids.tolist())[:length] for ids in text])
        excess = losses - grammar
        for start in range(0, length, 128):
            means = excess[:, start : start + 128].mean(1)
            wanted = f"{means.mean():.3f} ± {means.std(ddof=1) / 4:.3f}"
            assert spans.loc[encoding, f"{start}–{start + 127}"] == wanted
        np.testing.assert_allclose(
            bins[f"{encoding} (nats)"][: length // 16], losses.reshape(16, -1, 16).mean((0, 2)), atol=1e-5
        )
    assert np.isnan(bins["learned (nats)"][8:]).all()


def test_a_run_can_be_stopped_and_goes_on() -> None:
    app = run(**{"position.view": "length", "position.windows": "64"})
    [stop] = [button for button in app.button if button.key == "position.stop"]
    stop.click().run()
    first = app.session_state["position.length_run"]
    assert not first.running
    if first.done < 1:
        [go_on] = [button for button in app.button if button.key == "position.go_on"]
        go_on.click().run()
        assert app.session_state["position.length_run"] is not first
        app.session_state["position.length_run"].stop()


def test_attention_by_distance_is_the_mean_along_the_diagonals() -> None:
    table = tables(run(**{"position.view": "distance", "layer": "1"}))[0]
    text = next(lmcore.corpus.windows(HELD_OUT_SEED, 4, 128, lmcore.builtin.tokenizer()))[:, :-1]
    for encoding in ("none", "learned"):
        lm, weights = lmcore.load(ENCODINGS[encoding]), np.zeros((4, 128))
        for row, ids in zip(weights, text, strict=True):
            lm(ids.tolist(), trace=(trace := Trace()))
            pattern = trace["blocks.1.attn.pattern"].double().numpy().mean(0)
            row[:] = [np.diag(pattern, -distance).mean() for distance in range(128)]
        np.testing.assert_allclose(table[encoding], weights.mean(0), atol=1e-6)
    assert table["all keys alike"][127] == pytest.approx(1 / 128)


def test_attention_by_distance_on_the_readers_prompt() -> None:
    app = run(**{"position.view": "distance", "position.text": "prompt"})
    table = tables(app)[0]
    assert len(table) == len(lmcore.builtin.tokenizer().encode("小明喜欢小红").ids)
    one = run(prompt="我", **{"position.view": "distance", "position.text": "prompt"})
    assert (tables(one)[0].drop(columns="distance") == 1).all(axis=None)


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
    assert table.loc["Learned", "learned numbers"] == 128 * 128
    assert table.loc["Relative bias", "learned numbers"] == 32 * 4


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
    shifts, vectors, pairs = tables(app)
    np.testing.assert_allclose(shifts["score"], wanted, atol=2e-4 * max(1, abs(wanted)))
    assert pairs["share of the score"].sum() == pytest.approx(wanted, abs=1e-4)
    assert f"**{wanted:.5f}**" in told(app)
    vectors = vectors.set_index("vector")
    np.testing.assert_allclose(vectors["length before"], vectors["length after"], rtol=1e-5)
    assert vectors.loc["v", "largest change of a component"] == 0
    assert vectors.loc["q", "largest change of a component"] > 0.01


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
    app = run(prompt=prompt, **{"position.view": view}, **FEW)
    assert not app.error
    assert tables(app) or app.info or view == "length"  # that one asks for no prompt, and may still be measuring
    if prompt == "" and view in ("sinusoidal", "alibi", "relative", "rope"):
        assert "prompt above" in told(app)


def test_values_out_of_range_are_replaced_and_said() -> None:
    app = run(**{"position.view": "sinusoidal", "position.length": "64", "position.place": "900"})
    assert "900 is not a number from 0 to 63; showing 63." in told(app)


def test_a_pair_of_other_tokens_is_said_to_be_one() -> None:
    assert "The same tokens in two orders" in told(run(**{"position.view": "order", "position.pair": "birthday"}))
    assert "Not quite the same tokens" in told(run(**{"position.view": "order", "position.pair": "tom"}))
