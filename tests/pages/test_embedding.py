"""The embedding page: its figures, and its numbers against the weight file read with numpy."""

import contextlib
import io
import re

import numpy as np
import pytest
import safetensors.numpy
import scipy.stats

import lmcore
from pages.figures import embedding as figures
from pages.figures import theme
from tests.pages.hostile import TEXTS
from tests.pages.test_app import MODELS, run, shown

VIEWS = ["lookup", "neighbours", "map", "arithmetic", "sentences"]
TITLES = ("rows", "columns", "values")


def table_of(name: str = "small-world") -> np.ndarray:
    path = lmcore.builtin.BuiltinModel(name).weights_path
    return safetensors.numpy.load_file(path)["token_embedding.weight"].astype(np.float64)


def token_id(text: str) -> int:
    (token,) = lmcore.builtin.tokenizer().encode(text).ids
    return token


def view(name: str, **parameters: str):
    app = run("embedding", **{"lang": "en", "prompt": "今天天气", "table.view": name, **parameters})
    assert not app.exception and not app.error
    return app


def printed(app) -> list[str]:
    """Run the page's snippet as it stands and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(app.code[-1].value, "snippet", "exec"), {})
    return out.getvalue().split("\n")


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


@pytest.mark.parametrize("n_axes", [2, 3])
def test_points_keep_their_places_names_and_the_colours_of_groups(n_axes: int) -> None:
    places = np.arange(4.0 * n_axes).reshape(4, n_axes)
    given = {
        "labels": ["<i>", "b", "c", "d"], "axes": ["first", "second", "third"][:n_axes], "group_order": ["x", "y"],
        "amounts": np.ones(4), "amount_title": "length", "chosen": 0, "near": [3, 1], "near_name": "near",
    }  # fmt: skip
    figure = figures.points(places, groups=["y", "y", "x", "y"], **given)
    x, y, near, chosen = figure.data
    assert (x.marker.color, y.marker.color) == theme.CATEGORICAL[:2]
    assert (list(y.x), list(y.y)) == (list(places[[0, 1, 3], 0]), list(places[[0, 1, 3], 1]))
    assert list(near.text) == ["d", "b"] and list(near.x) == list(places[[3, 1], 0])
    assert list(chosen.text) == ["<b>&lt;i&gt;</b>"]
    by_length = figures.points(places, groups=None, **given).data[0]
    assert list(by_length.x) == list(places[:, 0]) and list(by_length.marker.color) == [1.0] * 4
    if n_axes == 3:
        assert list(y.z) == list(places[[0, 1, 3], 2])


def test_no_label_is_taken_for_markup() -> None:
    n = len(TEXTS)
    given = {
        "axes": "ab",
        "groups": None,
        "group_order": [],
        "amounts": np.ones(n),
        "amount_title": "",
        "near_name": "",
    }
    map_ = figures.points(np.zeros((n, 2)), TEXTS, chosen=0, near=range(1, n), **given)
    ticks = figures.one_hot(range(n), TEXTS, vocab_size=n, chosen=0, titles=TITLES[:2]).layout.yaxis.ticktext
    for text in [*map_.data[0].customdata, *map_.data[1].text, *ticks]:
        assert "<" not in text


def test_forming_marks_now_by_place_and_not_by_value() -> None:
    figure = figures.forming([0, 10, 400], {"a": [0.0, 0.5, 0.9]}, now=400, titles=TITLES[:2])
    assert list(figure.data[0].y) == [0.0, 0.5, 0.9]
    assert figure.layout.shapes[0].x0 == 2


@pytest.mark.parametrize(("name", "lang"), list(zip(MODELS, ["en", "zh"] * len(MODELS), strict=False)))
def test_every_view_runs_with_every_model(name: str, lang: str) -> None:
    for each in VIEWS:
        app = view(each, lang=lang, model=name)
        assert len(app.dataframe) >= 1 and len(app.get("plotly_chart")) >= 1


def test_lookup_is_the_row_of_the_weight_file() -> None:
    app = view("lookup", position="0")
    frame = app.dataframe[0].value
    row = table_of()[token_id("今天")]
    np.testing.assert_array_equal(frame["row pick"].to_numpy(), row)
    np.testing.assert_array_equal(frame["one-hot × table"].to_numpy(), row)
    assert app.metric[0].value == "0"
    assert [code.value for code in app.code[:2]] == ["[2] → [2, 128]", "[2, 2] → [2, 2, 128]"]
    lines = printed(app)
    assert lines[:2] == ["0.0", "torch.Size([2, 2, 128])"]


def test_lookup_needs_a_prompt_and_the_other_views_do_not() -> None:
    app = view("lookup", prompt="")
    assert "at least 1 token" in shown(app) and not app.dataframe
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
    assert [int(line.split()[1]) for line in printed(app)[:10]] == [*by_cosine, *by_dot]


def test_steps_that_have_no_table_are_replaced_by_the_nearest_and_said() -> None:
    steps = sorted(lmcore.builtin.embedding_snapshots())
    app = view("neighbours", steps=str(steps[1] + 1))
    assert app.session_state["steps"] == steps[1]
    assert f"no table after {steps[1] + 1} steps" in shown(app)
    assert view("neighbours", steps="many").session_state["steps"] == steps[-1]


def test_another_model_has_its_start_and_its_end() -> None:
    app = view("neighbours", model="small-world-alibi", steps="0")
    assert app.metric[0].value == "0.0200"
    assert list(app.select_slider(key="steps").options) == [
        "0",
        str(lmcore.builtin.record("small-world-alibi")["training"]["steps"]),
    ]


@pytest.mark.parametrize("tokens", ["occurring", "all"])
def test_map_is_numpys_projection(tokens: str) -> None:
    app = view("map", **{"table.shown": tokens, "table.axes": "3", "token": str(token_id("猫"))})
    frame = app.dataframe[0].value
    ids = [int(label.rsplit("#", 1)[1]) for label in frame["token#id"]]
    assert len(ids) == (1600 if tokens == "all" else 650)
    rows = table_of()[ids]
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    placed = (rows - rows.mean(0)) @ vectors[:, ::-1][:, :3]
    for axis in range(3):
        np.testing.assert_allclose(np.abs(frame[f"component {axis + 1}"]), np.abs(placed[:, axis]), atol=1e-6)
    share = values[::-1][:3].sum() / values.sum()
    assert app.metric[0].value == f"{100 * share:.2f} %"
    explained = [float(number) for number in re.findall(r"0\.\d+", printed(app)[0])]
    np.testing.assert_allclose(explained, (values / values.sum())[::-1][:3], atol=1e-4)


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
    assert f"number {rank} of all tokens" in shown(app)
    best = [row for row in np.argsort(-cosines) if row not in (a, b, c)]
    assert [int(line.split()[0]) for line in printed(app)[:10]] == best[:10]


def test_arithmetic_with_free_tokens_and_the_inputs_left_in() -> None:
    state = {"table.analogy": "free", "table.a": "5", "table.b": "5", "table.c": "7"}
    app = view("arithmetic", **state, **{"table.exclude": "0"})
    frame = app.dataframe[0].value
    assert frame["token#id"][0].endswith("#7") and frame["cosine"][0] == pytest.approx(1.0)  # 5 - 5 + 7 is row 7
    assert "exclude=()" in app.code[-1].value


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
    lines = [line.split() for line in printed(app) if line]
    assert [name for name, _ in lines] == list(frame["name in the trace"])
    np.testing.assert_allclose([float(value) for _, value in lines], frame["cosine"], rtol=1e-9)


def test_a_token_without_anything_before_it_is_said_to_be_the_same() -> None:
    app = view("sentences", **{"table.pair": "apple"})
    assert "looks back only" in shown(app)
    np.testing.assert_allclose(app.dataframe[0].value["cosine"], 1.0, atol=1e-6)
    assert "looks back only" not in shown(view("sentences", **{"table.pair": "shop"}))


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [("猫", "狗", "share no token"), ("", "狗", "from 1 to 512 tokens"), ("猫" * 199, "猫" * 3, "")],
)
def test_sentences_that_do_not_fit_are_said(first: str, second: str, said: str) -> None:
    app = view("sentences", **{"table.pair": "free", "table.first": first, "table.second": second})
    assert said in shown(app) and bool(app.dataframe) == (not said)


@pytest.mark.parametrize("bad", ["abc", "-1", "99999", "<b>"])
def test_a_token_that_is_none_is_replaced_and_said(bad: str) -> None:
    app = view("neighbours", token=bad)
    assert app.session_state["token"] == token_id(" cat")
    assert "is not a choice here" in shown(app)
