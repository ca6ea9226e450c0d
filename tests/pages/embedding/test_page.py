"""The embedding page: its figures, and its numbers against the weight file read with numpy."""

import re

import numpy as np
import pytest
import safetensors.numpy
import scipy.stats

import lmcore
import lmcore.corpus.occurring
from pages.figures.embedding import table as figures
from tests.pages.harness import MODELS, clean, open_page, printed, told
from tests.pages.hostile import TEXTS

VIEWS = ["lookup", "neighbours", "map", "film", "random", "arithmetic", "sentences"]
TITLES = ("rows", "columns", "values")


def table_of(name: str = "small-world") -> np.ndarray:
    path = lmcore.builtin.BuiltinModel(name).weights_path
    return safetensors.numpy.load_file(path)["token_embedding.weight"].astype(np.float64)


def token_id(text: str) -> int:
    (token,) = lmcore.builtin.tokenizer().encode(text).ids
    return token


def view(name: str, **parameters: str):
    return clean(open_page("embedding", **{"prompt": "今天天气", "table.view": name, **parameters}))


def test_rows_outline_the_chosen_one_on_a_scale_that_is_given() -> None:
    values = np.arange(6.0).reshape(2, 3)
    figure = figures.rows(values, ["a", "<b>"], chosen=1, limit=9.0, titles=TITLES)
    (cells,) = figure.data
    np.testing.assert_array_equal(cells.z, values)
    assert (cells.zmin, cells.zmax) == (-9.0, 9.0)
    (box,) = figure.layout.shapes
    assert (box.x0, box.x1, box.y0, box.y1) == (-0.5, 2.5, 0.5, 1.5)


def test_one_hot_has_one_mark_a_position_at_the_id() -> None:
    figure = figures.one_hot([7, 99, 7], ["0:a", "1:b", "2:a"], vocab_size=100, chosen=2, titles=TITLES[:2])
    (marks,) = figure.data
    assert (list(marks.x), list(marks.y)) == ([7, 99, 7], [0, 1, 2])
    assert [width > 0 for width in marks.marker.line.width] == [False, False, True]
    assert figure.layout.xaxis.range[1] >= 99


def test_entries_are_shares_beside_the_normal_distribution() -> None:
    values = np.random.default_rng(0).normal(0, 0.02, 100_000)
    figure = figures.entries(
        {"random": values, "wide": values * 3}, init_std=0.02, init_name="normal", titles=TITLES[:2]
    )
    random, wide, normal = (np.array(trace.y) for trace in figure.data)
    assert random.sum() == pytest.approx(1.0) and wide.sum() == pytest.approx(1.0)
    centres = np.array(figure.data[0].x)
    half = (centres[1] - centres[0]) / 2
    expected = scipy.stats.norm.cdf(centres + half, scale=0.02) - scipy.stats.norm.cdf(centres - half, scale=0.02)
    np.testing.assert_allclose(normal, expected, atol=1e-12)
    assert np.abs(random - normal).max() < 0.01 < np.abs(wide - normal).max()


def test_a_small_map_keeps_its_points_and_names_the_chosen() -> None:
    figure = figures.small_map(np.arange(6.0).reshape(3, 2), ["<i>", "b", "c"], marked=[0, 2], titles=TITLES[:2])
    points, named = figure.data
    assert (list(points.x), list(points.y)) == ([0, 2, 4], [1, 3, 5])
    assert list(named.text) == ["<b>&lt;i&gt;</b>", ""] and list(named.x) == [0, 4]


def test_cosines_share_their_bins_and_sum_to_one() -> None:
    figure = figures.cosines({"a": np.array([-1.0, 0.0, 1.0]), "b": np.zeros(4)}, titles=TITLES[:2])
    a, b = (np.array(line.y) for line in figure.data)
    assert a.sum() == pytest.approx(1.0) and b.max() == pytest.approx(1.0)
    assert list(figure.data[0].x) == list(figure.data[1].x)


def test_no_label_is_taken_for_markup() -> None:
    n = len(TEXTS)
    ticks = figures.one_hot(range(n), TEXTS, vocab_size=n, chosen=0, titles=TITLES[:2]).layout.yaxis.ticktext
    map_ = figures.small_map(np.zeros((n, 2)), TEXTS, marked=range(n), titles=TITLES[:2])
    for text in [*map_.data[0].customdata, *ticks]:
        assert "<" not in text


def test_forming_marks_now_by_place_and_not_by_value() -> None:
    figure = figures.forming([0, 10, 400], {"a": [0.0, 0.5, 0.9]}, now=400, titles=TITLES[:2])
    assert list(figure.data[0].y) == [0.0, 0.5, 0.9]
    assert figure.layout.shapes[0].x0 == 2


@pytest.mark.slow
@pytest.mark.parametrize(("name", "lang"), list(zip(MODELS, ["en", "zh"] * len(MODELS), strict=False)))
def test_every_view_runs_with_every_model(name: str, lang: str) -> None:
    for each in VIEWS:
        app = view(each, lang=lang, model=name)
        assert len(app.dataframe) >= 1 and len(app.get("plotly_chart")) >= 1 and len(app.code) >= 1


def test_lookup_is_the_row_of_the_weight_file() -> None:
    app = view("lookup", position="0")
    frame = app.dataframe[0].value
    row = table_of()[token_id("今天")]
    np.testing.assert_array_equal(frame["selected rows"].to_numpy(), row)
    np.testing.assert_array_equal(frame["one-hot × table"].to_numpy(), row)
    assert app.metric[0].value == "0"
    assert [code.value for code in app.code[:2]] == ["[2] → [2, 128]", "[2, 2] → [2, 2, 128]"]
    lines = printed(app).splitlines()
    assert lines[:2] == ["0.0", "torch.Size([2, 2, 128])"]


def test_a_long_prompt_is_looked_up_around_the_chosen_position() -> None:
    app = view("lookup", prompt="猫" * 100, position="50")
    assert any("positions 38 to 61 of 100" in caption.value for caption in app.caption)
    np.testing.assert_array_equal(app.dataframe[0].value["selected rows"].to_numpy(), table_of()[token_id("猫")])
    assert app.code[0].value == "[100] → [100, 128]"


@pytest.mark.slow
def test_lookup_needs_a_prompt_and_the_other_views_do_not() -> None:
    app = view("lookup", prompt="")
    assert "at least 1 token" in told(app) and not app.dataframe
    for each in VIEWS[1:]:
        assert view(each, prompt="").dataframe


@pytest.mark.parametrize("place", [0, 4, -1])
def test_neighbours_are_numpys_in_the_table_of_that_step(place: int) -> None:
    tables = safetensors.numpy.load_file(lmcore.builtin.BuiltinModel("small-world").snapshots_path)
    steps = sorted(tables, key=int)[place]
    rows = tables[steps].astype(np.float64)
    cat = token_id("猫")
    app = view("neighbours", steps=steps, token=str(cat), neighbours="5")
    dots = rows @ rows[cat]
    cosines = dots / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[cat])
    others = np.array([row for row in range(len(rows)) if row != cat])
    by_cosine, by_dot = (others[np.argsort(-scores[others])[:5]] for scores in (cosines, dots))
    frame = app.dataframe[0].value
    expected = list(dict.fromkeys([*by_cosine, *by_dot]))
    assert [int(label.rsplit("#", 1)[1]) for label in frame["token#id"]] == expected
    np.testing.assert_allclose(frame["cosine"], cosines[expected], rtol=1e-9)
    np.testing.assert_allclose(frame["dot product"], dots[expected], rtol=1e-9)
    assert app.metric[0].value == f"{rows.std(ddof=1):.4f}"
    assert [int(line.split()[1]) for line in printed(app).splitlines()[:10]] == [*by_cosine, *by_dot]


def test_steps_that_have_no_table_are_replaced_by_the_nearest_and_said() -> None:
    steps = sorted(lmcore.builtin.embedding_snapshots())
    app = view("neighbours", steps=str(steps[1] + 1))
    assert app.session_state["steps"] == steps[1]
    assert f"no table after {steps[1] + 1} steps" in told(app)
    assert view("neighbours", steps="many").session_state["steps"] == steps[-1]


def test_another_model_has_its_start_and_its_end() -> None:
    app = view("neighbours", model="small-world-alibi", steps="0")
    assert app.metric[0].value == "0.0200"
    assert list(app.select_slider(key="steps").options) == [
        "0",
        str(lmcore.builtin.record("small-world-alibi")["training"]["steps"]),
    ]


def ids_of(app) -> list[int]:
    return [int(label.rsplit("#", 1)[1]) for label in app.dataframe[0].value["token#id"]]


@pytest.mark.parametrize("tokens", ["occurring", "all", "words"])
def test_map_is_numpys_projection(tokens: str) -> None:
    cat = token_id("猫")
    app = view("map", **{"table.shown": tokens, "table.axes": "3", "token": str(cat), "table.words": "国王 女王 king"})
    frame, ids = app.dataframe[0].value, ids_of(app)
    assert len(ids) == {"all": 1600, "occurring": 650, "words": 3}[tokens]
    rows = table_of()[ids]
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    placed = (rows - rows.mean(0)) @ vectors[:, ::-1][:, :3]
    for axis in range(3):
        np.testing.assert_allclose(np.abs(frame[f"component {axis + 1}"]), np.abs(placed[:, axis]), atol=1e-6)
    assert app.metric[0].value == f"{100 * values[::-1][:3].sum() / values.sum():.2f} %"
    explained = [float(number) for number in re.findall(r"[01]\.\d+(?:e-\d+)?", printed(app).splitlines()[0])]
    np.testing.assert_allclose(explained, (values / values.sum())[::-1][:3], atol=1e-4)
    cosines = rows @ table_of()[cat] / np.linalg.norm(rows, axis=1) / np.linalg.norm(table_of()[cat])
    np.testing.assert_allclose(frame["cosine to the chosen"], cosines, atol=1e-9)


@pytest.mark.parametrize("words", ["国王", "国王 女王", "国王 女王 王子", "   "])
@pytest.mark.parametrize("method", ["pca", "tsne"])
@pytest.mark.parametrize("axes", ["2", "3"])
def test_few_points_have_a_map(words: str, method: str, axes: str) -> None:
    state = {"table.shown": "words", "table.words": words, "table.method": method, "table.axes": axes}
    app = view("map", **state)
    assert len(ids_of(app)) >= 1
    if method == "tsne" and words.strip():
        assert any("at least 4 points" in caption.value for caption in app.caption)


@pytest.mark.slow
@pytest.mark.parametrize("axes", ["2", "3"])
def test_tsne_is_made_in_the_background_and_kept(axes: str) -> None:
    state = {"table.method": "tsne", "table.axes": axes, "table.shown": "words", "table.start": "random"}
    app = view("map", **state)
    assert "where t-SNE starts" in told(app)
    app.button(key="table.tsne.start").click().run()
    _wanted, run = app.session_state["table.tsne.run"]
    run.join()
    app.run()
    assert not app.exception and [button.key for button in app.button if "tsne" in str(button.key)] == []
    frame, places = app.dataframe[0].value, run.progress.places
    names = [f"axis {axis + 1}" for axis in range(int(axes))]
    np.testing.assert_allclose(frame[names].to_numpy(), places, rtol=1e-12)
    other = view("map", **state)  # another visitor finds the same map
    np.testing.assert_allclose(other.dataframe[0].value[names].to_numpy(), places, rtol=1e-12)
    first = [float(number) for number in re.findall(r"-?\d+\.\d+(?:e[+-]\d+)?", printed(other).splitlines()[0])]
    np.testing.assert_allclose(first, places[0], rtol=1e-6)


def test_tsne_stops_when_told() -> None:
    app = view("map", **{"table.method": "tsne", "table.shown": "all"})
    app.button(key="table.tsne.start").click().run()
    app.button(key="table.tsne.stop").click().run()
    _wanted, run = app.session_state["table.tsne.run"]
    run.join()
    app.run()
    assert run.progress.state == "stopped"
    assert app.button(key="table.tsne.start")
    assert not app.exception


def test_selected_tokens_are_listed_alone() -> None:
    app = view("map")
    some = [token_id("猫"), token_id("狗")]
    app.session_state["table.picked"] = some
    app.run()
    assert sorted(ids_of(app)) == sorted(some)
    assert "**Tokens selected: 2.**" in told(app)


@pytest.mark.parametrize("colour", ["writing", "language", "part", "norm"])
@pytest.mark.parametrize("name", ["map", "film"])
def test_points_can_be_coloured(name: str, colour: str) -> None:
    app = view(name, **{"table.colour": colour, "lang": "en"})
    assert not app.exception
    if name == "map":
        groups = dict(zip(ids_of(app), app.dataframe[0].value["group"], strict=True))
        said = {"writing": "Chinese", "language": "in Chinese scenes", "part": "royalty", "norm": ""}[colour]
        assert groups[token_id("国王")] == said


def test_film_is_the_snapshots_on_the_axes_of_the_last() -> None:
    tables = safetensors.numpy.load_file(lmcore.builtin.BuiltinModel("small-world").snapshots_path)
    cat = token_id("猫")
    app = view("film", token=str(cat))
    frame = app.dataframe[0].value
    steps = sorted(map(int, tables))
    assert list(frame["steps"]) == steps
    occurring = list(lmcore.corpus.occurring.occurring_tokens(lmcore.builtin.tokenizer()))
    last = tables[str(steps[-1])][occurring].astype(np.float64)
    axes = np.linalg.svd(last - last.mean(0), full_matrices=False)[2][:2]
    for row, step in enumerate(steps):
        rows = tables[str(step)].astype(np.float64)
        centred = rows[occurring] - rows[occurring].mean(0)
        share = ((centred @ axes.T) ** 2).sum() / (centred**2).sum()
        assert frame["variance on these axes"][row] == pytest.approx(100 * share, rel=1e-5)
        cosines = rows @ rows[cat] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[cat])
        cosines[cat] = -2
        near = np.argsort(-cosines)[:6]
        assert [int(label.rsplit("#", 1)[1]) for label in frame["nearest by cosine"][row].split(" ")] == list(near)
        assert frame["its cosine"][row] == pytest.approx(cosines[near[0]], rel=1e-9)
    assert len(printed(app).splitlines()) == len(steps)


def test_random_rows_are_at_right_angles_and_trained_ones_are_not() -> None:
    app = view("random", token=str(token_id("猫")))
    frame = app.dataframe[-1].value
    assert list(frame["table"]) == ["normal, σ = 0.02", "uniform, ±√(3/D)", "trained"]
    rows = table_of()[list(lmcore.corpus.occurring.occurring_tokens(lmcore.builtin.tokenizer()))]
    assert frame["σ"].tolist() == pytest.approx([0.02, 128**-0.5, rows.std(ddof=1)], rel=0.01)
    assert frame["mean length of a row"][2] == pytest.approx(np.linalg.norm(rows, axis=1).mean(), rel=1e-5)
    normal, uniform, trained = frame["highest cosine to the token"]
    assert max(normal, uniform) < 0.45 < trained
    lines = printed(app).splitlines()
    assert [float(line.split()[0]) for line in lines[:3]] == pytest.approx(frame["σ"].tolist(), rel=1e-6)


@pytest.mark.parametrize(
    ("example", "words", "expected"),
    [("en", (" king", " man", " woman"), " queen"), ("zh", ("国王", "男人", "女人"), "女王")],
)
def test_arithmetic_over_the_whole_vocabulary(example: str, words: tuple[str, ...], expected: str) -> None:
    a, b, c = map(token_id, words)
    rows = table_of()
    result = rows[a] - rows[b] + rows[c]
    cosines = rows @ result / np.linalg.norm(rows, axis=1) / np.linalg.norm(result)
    app = view("arithmetic", **{"table.analogy": example, "table.exclude": "1"})
    frame = app.dataframe[0].value
    ids = [int(label.rsplit("#", 1)[1]) for label in frame["token#id"]]
    assert ids == list(np.argsort(-cosines)[:13])
    np.testing.assert_allclose(frame["cosine"], cosines[ids], rtol=1e-9)
    np.testing.assert_allclose(frame["distance"], np.linalg.norm(rows[ids] - result, axis=1), rtol=1e-9)
    assert [mark == "yes" for mark in frame["input"]] == [token in (a, b, c) for token in ids]
    rank = 1 + int((cosines > cosines[token_id(expected)]).sum())
    assert f"rank {rank} among all tokens" in told(app)
    best = [row for row in np.argsort(-cosines) if row not in (a, b, c)]
    assert [int(line.split()[0]) for line in printed(app).splitlines()[:10]] == best[:10]


def test_arithmetic_with_free_tokens_and_the_inputs_left_in() -> None:
    state = {"table.analogy": "free", "table.a": "5", "table.b": "5", "table.c": "7"}
    app = view("arithmetic", **state, **{"table.exclude": "0"})
    frame = app.dataframe[0].value
    assert frame["token#id"][0].endswith("#7") and frame["cosine"][0] == pytest.approx(1.0)  # 5 - 5 + 7 is row 7
    assert "exclude=()" in app.code[-1].value


def test_a_result_of_zero_is_near_to_nothing() -> None:
    app = view("neighbours")
    assert not app.exception
    state = {"table.analogy": "free", "table.a": "5", "table.b": "5", "table.c": "5"}
    assert view("arithmetic", **state).dataframe[0].value["token#id"][0].endswith("#5")


def test_sentences_have_one_row_and_hidden_states_that_part() -> None:
    app = view("sentences", **{"table.pair": "shop"})
    frame = app.dataframe[0].value
    assert app.metric[0].value == "1.000000"
    assert frame["cosine"].iloc[0] == 1.0 and frame["distance"].iloc[0] == 0.0
    assert frame["cosine"].iloc[-1] < 0.99
    lm, hidden = lmcore.load(), []
    for text in ("水果店里，苹果很好吃", "手机店里，苹果发布了新手机"):
        ids, trace = lm.tokenizer.encode(text).ids, lmcore.Trace()
        lm(ids, trace=trace)
        hidden.append(trace["hidden_state"][ids.index(token_id("苹果"))].double().numpy())
    expected = hidden[0] @ hidden[1] / np.linalg.norm(hidden[0]) / np.linalg.norm(hidden[1])
    assert frame["cosine"].iloc[-1] == pytest.approx(expected, abs=1e-9)
    assert app.metric[1].value == f"{expected:.6f}"
    lines = [line.split() for line in printed(app).splitlines()]
    assert [name for name, _ in lines] == list(frame["name in the trace"])
    np.testing.assert_allclose([float(value) for _, value in lines], frame["cosine"], rtol=1e-9)


def test_a_token_without_anything_before_it_is_said_to_be_the_same() -> None:
    app = view("sentences", **{"table.pair": "apple"})
    assert "sees only earlier tokens" in told(app)
    np.testing.assert_allclose(app.dataframe[0].value["cosine"], 1.0, atol=1e-6)
    assert "sees only earlier tokens" not in told(view("sentences", **{"table.pair": "shop"}))


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [("猫", "狗", "share no token"), ("", "狗", "1 to 512 tokens"), ("猫" * 199, "猫" * 3, "")],
)
def test_sentences_that_do_not_fit_are_said(first: str, second: str, said: str) -> None:
    app = view("sentences", **{"table.pair": "free", "table.first": first, "table.second": second})
    assert said in told(app) and bool(app.dataframe) == (not said)


@pytest.mark.parametrize("bad", ["abc", "-1", "99999", "<b>"])
def test_a_token_that_is_none_is_replaced_and_said(bad: str) -> None:
    app = view("neighbours", token=bad)
    assert app.session_state["token"] == token_id(" cat")
    assert "is not a choice here" in told(app)
