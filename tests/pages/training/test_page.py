"""The training page: its figures, its numbers against autograd and the record, and a training in the background."""

from __future__ import annotations

import copy
import json
import time
import types

import numpy as np
import psutil
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch.nn import functional as F

import lmcore
from lmcore.corpus import windows
from lmcore.training import sides_history
from pages.common import session
from pages.figures.training import gradients, live, records
from tests.pages.harness import go_to, open_page, printed, tables, told, well

pytestmark = pytest.mark.slow

SENTENCE = "The weather today is nice"
QUICK = {
    "training.view": "live",
    "training.d_model": "16",
    "training.batch": "4",
    "training.steps": "50",
}


def run(**parameters: str) -> AppTest:
    return read_to_the_end(open_page("training", **{"prompt": "今天天气不错", **parameters}))


def read_to_the_end(app: AppTest) -> AppTest:
    """Look again until what is read in the background is there."""
    deadline = time.monotonic() + 240
    while any(
        button.key in ("training.line.stop", "training.others.stop", "training.sides.stop") for button in app.button
    ):
        assert time.monotonic() < deadline
        app.run()
    return well(app)


# Figures


def test_curves_show_losses_or_perplexities_over_the_grammars() -> None:
    arguments = {"floor_name": "grammar", "x_title": "", "y_title": ""}
    figure = records.curves({"a": ([1, 2], [2.0, 1.0])}, 0.5, **arguments)
    assert list(figure.data[0].y) == [2.0, 1.0] and list(figure.data[1].y) == [0.5, 0.5]
    figure = records.curves({"a": ([1, 2], [2.0, 1.0])}, 0.5, perplexity=True, **arguments)
    np.testing.assert_allclose(figure.data[0].y, np.exp([2.0, 1.0]))
    np.testing.assert_allclose(figure.data[1].y, np.exp(0.5))


def test_the_first_order_line_falls_by_eta_times_the_squared_gradient() -> None:
    figure = gradients.loss_along([0, 1, 2], [5.0, 3.5, 3.0], 2.0, (1, 3.5), names=("a", "b"), titles=("", ""))
    assert list(figure.data[0].y) == [5.0, 3.5, 3.0]
    assert list(figure.data[1].y) == [5.0, 3.0, 1.0]


def test_all_rows_are_sorted_by_the_output_side_and_zeros_have_no_point() -> None:
    figure = gradients.all_rows([0, 0, 5.0], [1.0, 3.0, 2.0], "abc".__getitem__, ("in", "out"), x_title="", y_title="")
    output, put_in = figure.data
    assert list(output.y) == [3.0, 2.0, 1.0] and list(output.customdata) == ["b", "c", "a"]
    assert list(put_in.x) == [1] and list(put_in.y) == [5.0]


def test_live_charts_keep_their_axis_while_lines_grow() -> None:
    short, long = (
        live.lines(["a"], ["model", "grammar"], last_step=400, x_title="step", y_title="p", percent=True)
        for _again in range(2)
    )
    assert short == long and short["encoding"]["x"]["scale"]["domain"] == [0, 400]
    data = live.long_table({("a", "model"): ([0, 20], [0.1, 0.2]), ("b", "model"): ([0], [0.3])})
    assert data[live.VALUE].tolist() == [0.1, 0.2, 0.3] and data[live.SERIES].tolist() == ["a", "a", "b"]


# The page


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("view", ["records", "live", "step", "sides", "over"])
def test_every_view_runs(view: str, lang: str) -> None:
    app = run(**{"training.view": view, "lang": lang})
    assert not app.error
    assert app.title[0].value.isascii() == (lang == "en")
    assert app.code


def test_records_are_those_on_file() -> None:
    app = run(**{"training.view": "records"})
    table = tables(app)[0].set_index("model")
    for name in table.index:
        held_out = lmcore.builtin.record(name)["held_out"]
        assert table.loc[name, "held-out loss (nats)"] == held_out["loss"]
        assert table.loc[name, "grammar itself (nats)"] == held_out["grammar_loss"]
    assert lmcore.builtin.DEFAULT in table.index
    assert str(lmcore.builtin.record()["held_out"]["loss"]) in printed(app)


@pytest.mark.parametrize("model", ["small-world", "small-world-untied", "small-world-learned"])
def test_one_step_is_what_autograd_and_sgd_do(model: str) -> None:
    app = run(**{"training.view": "step", "training.eta": "-2.0", "model": model})
    lm = lmcore.load(model)
    ids = torch.tensor(lm.tokenizer.encode(SENTENCE).ids)

    def loss(model: lmcore.Model) -> torch.Tensor:
        return F.cross_entropy(model(ids[:-1])[-1:], ids[-1:])

    moved = copy.deepcopy(lm.model)
    before = loss(moved)
    before.backward()
    squared = sum(float(p.grad.double().square().sum()) for p in moved.parameters() if p.grad is not None)
    torch.optim.SGD(moved.parameters(), lr=0.01).step()
    groups, others = tables(app)
    assert (groups["|g|"] ** 2).sum() == pytest.approx(squared, rel=1e-4)
    assert groups["parameters"].sum() == sum(p.numel() for p in lm.model.parameters())
    own = others.iloc[0]
    assert own["loss before"] == pytest.approx(before.item(), abs=1e-5)
    assert own["loss after"] == pytest.approx(loss(moved).item(), abs=1e-4)
    metrics = {metric.label: metric.value for metric in app.metric}
    assert float(metrics["Loss −ln P (nats)"]) == pytest.approx(loss(moved).item(), abs=1e-4)
    assert f"{before.item():.5f}" in told(app)
    numbers = printed(app).split()
    assert float(numbers[0]) == pytest.approx(before.item(), abs=1e-5)
    assert float(numbers[1]) == pytest.approx(before.item() - 0.01 * squared, abs=1e-4)
    assert float(numbers[-1]) == pytest.approx(loss(moved).item(), abs=1e-4)


@pytest.mark.parametrize("view", ["step", "sides"])
def test_looking_changes_nothing_in_the_shared_model(view: str) -> None:
    shared = session._models().get("small-world").model
    before = copy.deepcopy(shared.state_dict())
    run(**{"training.view": view, "training.eta": "1.0"})
    assert session._models().get("small-world").model is shared
    assert all(torch.equal(before[name], value) for name, value in shared.state_dict().items())
    assert all(parameter.grad is None for parameter in shared.parameters())
    assert shared.head.weight is shared.token_embedding.weight


def test_every_token_can_be_scored_and_the_step_that_stops_helping_is_told() -> None:
    address = {
        "training.view": "step",
        "training.sentence": "example",
        "training.eta": "1.0",
        "training.last_only": "0",
    }
    app = run(**address)
    lm = lmcore.load("small-world")
    ids = torch.tensor(lm.tokenizer.encode("患者服用华法林后出现黑便").ids)
    moved = copy.deepcopy(lm.model)
    loss = F.cross_entropy(moved(ids[:-1]), ids[1:])
    loss.backward()
    torch.optim.SGD(moved.parameters(), lr=10.0).step()
    with torch.no_grad():
        after = F.cross_entropy(moved(ids[:-1]), ids[1:]).item()
    metrics = {metric.label: metric.value for metric in app.metric}
    assert float(metrics["Loss −ln P (nats)"]) == pytest.approx(after, rel=1e-3)
    assert after > loss.item() and "no lower than before" in told(app)


@pytest.mark.parametrize("last_only", ["0", "1"])
def test_two_sides_are_those_of_the_formulas(last_only: str) -> None:
    app = run(**{"training.view": "sides", "training.last_only": last_only})
    lm, trace = lmcore.load("small-world"), lmcore.Trace()
    ids = torch.tensor(lm.tokenizer.encode(SENTENCE).ids)
    logits = lm(ids[:-1], trace=trace)
    rows = slice(-1, None) if last_only == "1" else slice(None)
    error = logits.softmax(-1)[rows] - F.one_hot(ids[1:], lm.config.vocab_size)[rows]
    output_side = (error.T @ trace["hidden_state"][rows] / len(error)).numpy()
    model = copy.deepcopy(lm.model)
    F.cross_entropy(model(ids[:-1])[rows], ids[1:][rows]).backward()
    input_side = model.token_embedding.weight.grad.numpy() - output_side
    table = tables(app)[0]
    table.index = table["token"].str.rsplit(" · ", n=1).str[1].astype(int)
    table = table.sort_index()
    np.testing.assert_allclose(table["output side (head)"], np.linalg.norm(output_side, axis=1), atol=1e-5)
    np.testing.assert_allclose(table["input side (lookup)"], np.linalg.norm(input_side, axis=1), atol=1e-5)
    touched = set(ids[:-1].tolist())
    assert set(table.index[table["input side (lookup)"] > 0]) == touched
    assert table["cosine"].notna().sum() == len(touched)
    metrics = {metric.label: metric.value for metric in app.metric}
    assert metrics["Rows with an input-side gradient"].startswith(f"{len(touched)} / ")
    assert printed(app).split()[0] == str(len(touched))


def test_untied_parts_are_said_to_be_apart() -> None:
    assert "never added" in told(run(**{"training.view": "sides", "model": "small-world-untied"}))
    assert "autograd" in told(run(**{"training.view": "sides"}))


@pytest.mark.parametrize("view", ["step", "sides"])
@pytest.mark.parametrize("prompt", ["", "我", "\0\u202e<script>alert(1)</script> :red[x] $y$ 😊"])
def test_the_readers_prompt_is_used_or_said_to_be_too_short(view: str, prompt: str) -> None:
    app = run(prompt=prompt, **{"training.view": view, "training.sentence": "prompt"})
    assert not app.error
    if len(prompt) < 2:
        assert "at least 2 tokens" in told(app) and not tables(app)
    else:
        assert tables(app)
        assert printed(app)


@pytest.mark.parametrize("row", ["-1", str(lmcore.builtin.tokenizer().encode("苹果").ids[0])])
def test_both_parts_over_a_training_are_those_on_record(row: str) -> None:
    app = run(**{"training.view": "over", "training.row": row})
    table = tables(app)[0]
    for tied, history in sides_history.recorded().items():
        values = history.whole if row == "-1" else history.rows[int(row)]
        shown = table[table["training"] == ("tied" if tied else "untied")]
        np.testing.assert_array_equal(shown["step"], history.steps)
        np.testing.assert_allclose(shown[["norm, input side", "norm, output side", "cosine"]].to_numpy().T, values)
    assert len(printed(app).splitlines()) == len(table)


def test_rows_that_a_batch_looks_up_are_counted() -> None:
    app = run(**{"training.view": "over", "training.windows": "3"})
    ids = next(windows(1, 3, 64, lmcore.builtin.tokenizer()))[:, :64]
    assert f"**{len(set(ids.flatten().tolist()))} of 1,600 rows**" in told(app)


def test_over_training_keeps_names_steps_and_gaps() -> None:
    series = {"a": ([0, 20], [0.1, float("nan")]), "b": ([0], [-0.2])}
    figure = gradients.over_training(series, [("red", "solid"), ("blue", "dash")], x_title="", y_title="", signed=True)
    assert [trace.name for trace in figure.data] == ["a", "b"] and list(figure.data[0].x) == [0, 20]
    low, high = figure.layout.yaxis.range
    assert low == -high and high >= 0.2


def test_a_large_vocabulary_is_thinned_but_keeps_what_the_lookup_reached() -> None:
    second = np.linspace(1.0, 0.5, 100_000)
    first = np.zeros(100_000)
    first[77_777] = 3.0
    figure = gradients.all_rows(first, second, str, ("in", "out"), x_title="", y_title="")
    output, put_in = figure.data
    assert len(output.x) <= gradients.MAX_POINTS + 1 and output.x[0] == 0
    assert list(put_in.x) == [77_777] and list(put_in.customdata) == ["77777"]


# A training in the background


def button(app: AppTest, name: str):  # noqa: ANN201
    return app.button(key=f"training.{name}")


def until(app: AppTest, state: str) -> None:
    deadline = time.monotonic() + 240
    while app.session_state["training.run"].training.progress.state != state:
        assert time.monotonic() < deadline, f"never {state}"
        time.sleep(0.05)
    app.run()


def test_a_training_runs_to_its_end_and_its_numbers_are_the_snippets() -> None:
    app = run(**QUICK)
    assert "Press Start" in told(app)
    button(app, "start").click().run()
    until(app, "finished")
    assert not app.exception
    table = tables(app)[-1]
    assert table["step"].tolist() == [0, 20, 40, 50]
    assert table["held-out loss (nats)"].iloc[-1] < table["held-out loss (nats)"].iloc[0]
    np.testing.assert_allclose(table["held-out perplexity"], np.exp(table["held-out loss (nats)"]))
    assert table["distance to the grammar"].between(0, 1).all()
    last = printed(app).strip().splitlines()[-1].split()
    assert last[0] == "50"
    assert float(last[2]) == pytest.approx(table["held-out loss (nats)"].iloc[-1], rel=1e-3)
    assert button(app, "start")
    neighbours = tables(app)[0]
    assert neighbours["step"].tolist() == [50, 40, 20, 0]
    charts = [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]
    assert len(charts) == 4  # of SVG, whose text has the page's ink by its style: Vega's own grey is too faint
    assert all(spec["usermeta"]["embedOptions"] == {"renderer": "svg"} for spec in charts)


def test_pause_resume_and_stop_and_a_visit_elsewhere() -> None:
    app = run(**{**QUICK, "training.steps": "1000"})
    button(app, "start").click().run()
    until(app, "running")
    button(app, "pause").click().run()
    until(app, "paused")
    reached = len(app.session_state["training.run"].training.progress.steps)
    go_to(go_to(app, "position"), "training")
    assert len(app.session_state["training.run"].training.progress.steps) == reached
    button(app, "resume").click().run()
    until(app, "running")
    button(app, "stop").click().run()
    until(app, "stopped")
    assert not app.exception
    assert button(app, "start") and tables(app)


def test_the_shared_random_state_is_left_alone() -> None:
    state = torch.random.get_rng_state()
    app = run(**QUICK)
    button(app, "start").click().run()
    until(app, "finished")
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_training_is_drawn_beside_the_record() -> None:
    app = run(**QUICK)
    button(app, "start").click().run()
    until(app, "finished")
    app.button(key="training.view.more.over").click().run()
    assert set(tables(app)[0]["training"]) == {"tied", "untied", "my training, tied"}


@pytest.mark.parametrize("units", ["characters", "bpe"])
def test_a_text_of_ones_own_is_learned(units: str) -> None:
    app = run(**QUICK, **{"training.text": "own", "training.units": units})
    button(app, "start").click().run()
    until(app, "finished")
    assert not app.exception
    table = tables(app)[-1]
    assert "distance to the grammar" not in table
    steps = app.session_state["training.run"].training.progress.steps
    assert steps[-1].loss < steps[0].loss - 1  # of the text it reads; what is held out may get worse
    last = printed(app).strip().splitlines()[-1].split()
    assert float(last[2]) == pytest.approx(table["held-out loss (nats)"].iloc[-1], rel=1e-3)
    assert "Alice was" in app.code[0].value.replace("␣", " ")


@pytest.mark.parametrize(("text", "said"), [("", "0 tokens"), ("今天", "2 tokens")])
def test_a_text_that_is_too_short_is_said(text: str, said: str) -> None:
    app = run(**QUICK, **{"training.text": "own", "training.own_text": text})
    button(app, "start").click().run()
    assert "cannot be trained on" in told(app) and said in app.code[0].value
    assert "training.run" not in app.session_state


def test_hostile_text_is_learned_and_shown_as_it_is() -> None:
    hostile = "\0\u202e<script>alert(1)</script> :red[x] $y$ 😊 " * 8
    app = run(**QUICK, **{"training.text": "own", "training.own_text": hostile, "training.probe": "<script>"})
    button(app, "start").click().run()
    until(app, "finished")
    assert not app.exception and app.code[0].value.startswith("<script>")


@pytest.mark.parametrize("view", ["step", "sides"])
def test_a_gradient_that_does_not_fit_the_memory_is_refused_before_it_is_computed(view, monkeypatch) -> None:
    free = types.SimpleNamespace(available=14_000 * 1024)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    (refusal,) = run(**{"training.view": view}).info
    assert "0.0 GB are free" in refusal.value and "small-world" in refusal.value
    free.available = 16_000 * 1024
    assert not run(**{"training.view": view}).info


def test_lengths_of_moves_are_told_however_small() -> None:
    figure = gradients.moves([2.5e-7, 0.0312], ["norm", "mlp"], "length")
    assert list(figure.data[0].text) == ["2.5e-07", "0.0312"] and list(figure.data[0].x) == [2.5e-7, 0.0312]
