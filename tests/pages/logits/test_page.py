"""The logits page: figures carry the numbers, the page shows what numpy and torch compute, its code runs."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import lmcore
from lmcore.corpus import Truth
from pages.figures.logits import attribution, lens
from pages.figures.logits import positions as figures
from pages.stages.logits.tokens import parse
from tests.pages.harness import opener, snippet, told
from tests.pages.hostile import TEXTS

run = opener("logits")

VIEWS = ("next", "text", "dot", "lens", "parts")
PROMPT = "The weather today is"


def passed(prompt: str = PROMPT, model: str = "small-world"):
    lm, trace = lmcore.load(model), lmcore.Trace()
    ids = lm.tokenizer.encode(prompt).ids
    return lm, ids, lm(ids, trace=trace).double().numpy(), trace


def softmax(logits: np.ndarray) -> np.ndarray:
    exp = np.exp(logits - logits.max(-1, keepdims=True))
    return exp / exp.sum(-1, keepdims=True)


def label_id(label: str) -> int:
    return int(label.rsplit("#", 1)[1])


# Choosing a token


@pytest.mark.parametrize(
    ("text", "token", "how"),
    [
        ("不错", "不错", "text"),
        ("nice", " nice", "space"),
        (" nice", " nice", "text"),
        ("␣nice", " nice", "text"),
        ("不错，适合", "不错", "first"),
    ],
)
def test_a_text_means_a_token(text: str, token: str, how: str) -> None:
    tokenizer = lmcore.builtin.tokenizer()
    (wanted,) = tokenizer.encode(token).ids
    assert parse(text, tokenizer) == (wanted, how)


def test_a_long_text_names_some_of_its_tokens_on_the_axis() -> None:
    for n, most in ((30, 30), (512, 20)):
        tokens, ones = [f"{i}:x" for i in range(n)], np.ones(n)
        bars = figures.surprisal(tokens, ones, None, ("Model", "True (grammar)"), ("Token", "bits"))
        line = figures.followed(tokens, ones, range(n), ("x", "y"), "Rank")
        for axis in (bars.layout.xaxis, line.layout.xaxis):
            assert len(axis.ticktext) <= most
            assert [tokens[place] for place in axis.tickvals] == axis.ticktext


def test_an_id_means_itself_and_what_is_no_token_is_none() -> None:
    tokenizer = lmcore.builtin.tokenizer()
    assert parse("#42", tokenizer) == (42, "id")
    assert parse(f" #{tokenizer.vocab_size - 1} ", tokenizer) == (tokenizer.vocab_size - 1, "id")
    assert parse(f"#{tokenizer.vocab_size}", tokenizer) is None
    assert parse("", tokenizer) is None
    for text in TEXTS:  # whatever is typed is a token's text, or nothing
        assert (parse(text, tokenizer) is None) == (text == "")


# Figures


def test_next_tokens_pairs_model_and_grammar() -> None:
    figure = figures.next_tokens(["a", "a", "<b>"], [0.6, 0.3, 0.1], [0.5, 0.5, 0.0], ("Model", "True (grammar)"), 1)
    model, grammar = figure.data[:2]
    assert list(model.x) == [0.6, 0.3, 0.1] and list(grammar.x) == [0.5, 0.5, 0.0]
    assert [width > 0 for width in model.marker.line.width] == [False, True, False]
    assert [trace.name for trace in figure.data[2:]] == ["Model", "True (grammar)"]
    assert len(figures.next_tokens(["a"], [1.0], None, ("Model", "True (grammar)"), 0).data) == 1


def test_surprisal_leaves_impossible_tokens_empty() -> None:
    figure = figures.surprisal(["a", "b"], [1.0, 2.0], [0.5, math.inf], ("Model", "True (grammar)"), ("Token", "bits"))
    assert list(figure.data[0].y) == [1.0, 2.0]
    assert figure.data[1].y[0] == 0.5 and math.isnan(figure.data[1].y[1])


def test_the_curve_of_equal_logit_passes_through_the_target() -> None:
    cosines, lengths, length = np.array([0.5, 0.2, -0.1]), np.array([1.0, 3.0, 2.0]), 4.0
    logits = cosines * lengths * length
    figure = attribution.length_and_angle(cosines, lengths, ["a", "b", "c"], logits, length, [0], 1, ("x", "y", "z"))
    points, curve = figure.data[:2]
    np.testing.assert_array_equal(points.marker.color, logits)
    np.testing.assert_allclose(np.asarray(curve.x) * np.asarray(curve.y) * length, logits[1])
    ring = figure.data[-1]
    assert (ring.x[0], ring.y[0]) == (0.2, 3.0)


def test_a_target_that_points_away_has_no_curve_but_is_marked() -> None:
    figure = attribution.length_and_angle(
        [0.5, -0.2], [1.0, 2.0], ["a", "b"], [1.0, -0.8], 2.0, [0], 1, ("x", "y", "z")
    )
    assert [trace.mode for trace in figure.data] == ["markers", "text", "markers"]


def test_labels_that_would_cover_one_another_give_way_to_the_first() -> None:
    x, y = [0.9, 0.89, 0.1, 0.9], [1.0, 1.01, 1.0, 3.0]
    figure = attribution.length_and_angle(x, y, list("abcd"), x, 1.0, [0, 1, 2, 3], 0, ("x", "y", "z"))
    (texts,) = [trace.text for trace in figure.data if trace.mode == "text"]
    assert list(texts) == ["a", "c", "d"]


def test_lens_figures_keep_values_and_texts() -> None:
    tokens = lens.lens_tokens([[0.2, 0.9]], [["<a>#3", "b#4"]], ["s"], ["x", "y"], ("Position", "P"))
    assert tokens.data[0].customdata[0][0] == "&lt;a&gt;#3" and list(tokens.data[0].z[0]) == [0.2, 0.9]
    assert list(tokens.data[1].text) == ["&lt;a&gt;", "b"]
    long = [["今天天气真好#5", "#1#7", "whatever#123456", "x#0"] * 2]
    brief = lens.lens_tokens([[0.5] * 8], long, ["s"], ["t"] * 8, ("Position", "P"))
    assert list(brief.data[1].text)[:4] == ["今天…", "#1", "what…", "x"]  # room for 5 Latin characters each
    assert len(lens.lens_tokens([[0.5] * 16], [long[0] * 2], ["s"], ["t"] * 16, ("Position", "P")).data) == 1
    ranks = lens.lens_ranks([[1, 1600]], 1600, ["s"], ["x", "y"], ("Position", "Rank"))
    np.testing.assert_allclose(ranks.data[0].z[0], [math.log(1600), 0.0])
    assert list(ranks.data[0].customdata[0]) == [1, 1600] and list(ranks.data[1].text) == ["1", "1,600"]


def test_contributions_beyond_the_limit_are_one_bar_that_keeps_the_sum() -> None:
    values = np.array([3.0, -0.1, 0.2, -4.0])
    figure = attribution.contributions(values, ["a", "b", "c", "d"], "title", 2, "others")
    assert list(figure.data[0].x) == pytest.approx([3.0, -4.0, 0.1])
    assert list(figure.layout.yaxis.ticktext) == ["a", "d", "others"]
    assert sum(figure.data[0].x) == pytest.approx(values.sum())
    assert len(attribution.contributions(values, ["a", "b", "c", "d"], "title", 4, "others").data[0].x) == 4


def test_the_grid_writes_rounded_values_and_is_centred_on_zero() -> None:
    figure = attribution.contribution_grid([[0.876, -0.117], [0.0, -0.001]], ["0", "1"], ["h", "mlp"], "title")
    assert list(figure.data[1].text) == ["0.88", "−0.12", "0.00", "0.00"]
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-0.876, 0.876)


def test_labels_are_literal() -> None:
    for figure in (
        figures.next_tokens(TEXTS, np.ones(len(TEXTS)), None, ("", ""), None),
        attribution.contributions(np.ones(len(TEXTS)), TEXTS, "", 99, ""),
    ):
        assert not any("<" in label for label in figure.data[0].customdata)
    followed = figures.followed(TEXTS, np.ones(len(TEXTS)), range(len(TEXTS)), ("x", "y"), "Rank")
    assert not any("<" in text for text in followed.layout.xaxis.ticktext)


# Page


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("model", lmcore.builtin.names())
def test_every_view_runs_with_every_model(view: str, model: str) -> None:
    app = run(lang="zh", prompt="今天天气不错😊", model=model, **{"logits.view": view})
    assert not app.exception and not app.error
    assert app.dataframe and app.get("plotly_chart")


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("prompt", ["好", "\0<b>$x$:red[y] ", "a" * 300])
def test_every_view_meets_any_prompt_and_target(view: str, prompt: str) -> None:
    app = run(
        prompt=prompt,
        target="<b>:red[x]",
        rival="#999999",
        **{"logits.view": view, "lens": "rank"},
    )
    assert not app.exception and not app.error
    if view == "text" and prompt == "好":
        assert "nothing predicts the first" in told(app)
    if view == "parts":
        assert "#999999 is not a token here" in told(app)


def test_next_tokens_are_numpys_softmax_by_id_beside_the_grammars_own() -> None:
    lm, ids, logits, _trace = passed()
    app = run(prompt=PROMPT, position="3")
    table, probs = app.dataframe[0].value, softmax(logits[3])
    assert list(table["id"]) == list(np.argsort(-probs, kind="stable")[: len(table)])
    np.testing.assert_allclose(table["P"] / 100, probs[table["id"]], rtol=1e-4)
    truth = Truth(lm.tokenizer).next_token_probs(ids)
    assert truth is not None
    np.testing.assert_allclose(table["P in the grammar"] / 100, truth[table["id"]], rtol=1e-9)
    said = float(re.search(r"here: \*\*([0-9.]+)\*\*", told(app))[1])
    assert said == pytest.approx(np.abs(probs - truth).sum() / 2, abs=6e-5)


def test_outside_the_grammar_the_page_says_so_and_shows_no_truth() -> None:
    app = run(prompt="zebra quux")
    assert any("cannot generate this text" in caption.value for caption in app.caption)
    assert "P in the grammar" not in app.dataframe[0].value


def test_a_target_far_down_the_ranking_is_in_the_table() -> None:
    app = run(prompt=PROMPT, target="#7")
    table = app.dataframe[0].value
    assert table["id"].iloc[-1] == 7
    probs = softmax(passed()[2][-1])
    assert table["Rank"].iloc[-1] == 1 + (probs > probs[7]).sum()


def test_loss_perplexity_and_ranks_are_torchs() -> None:
    _lm, ids, logits, _trace = passed()
    app = run(prompt=PROMPT, **{"logits.view": "text"})
    loss = F.cross_entropy(torch.tensor(logits[:-1]), torch.tensor(ids[1:])).item()
    said = [float(metric.value) for metric in app.metric[:2]]
    assert said == pytest.approx([loss, math.exp(loss)], abs=6e-4)
    table, probs = app.dataframe[0].value, softmax(logits)
    for position, came in enumerate(ids[1:]):
        assert table["Rank"][position] == 1 + (probs[position] > probs[position, came]).sum()
        assert table["nats"][position] == pytest.approx(-math.log(probs[position, came]), rel=1e-3, abs=1e-5)
        assert table["bits"][position] == pytest.approx(-math.log2(probs[position, came]), rel=1e-3, abs=1e-5)
        assert label_id(table["Top 1"][position]) == probs[position].argmax()
    assert label_id(table["Top 1"][len(ids) - 1]) == probs[-1].argmax()  # the last position foresees too


def test_a_text_the_grammar_never_says_has_an_infinite_perplexity_and_a_finite_model_loss() -> None:
    app = run(prompt="The weather today is cat", **{"logits.view": "text"})
    assert len(app.metric) == 2
    assert any("infinite" in caption.value for caption in app.caption)


def test_length_angle_and_both_rankings_are_numpys() -> None:
    lm, _ids, logits, trace = passed()
    app = run(prompt=PROMPT, **{"logits.view": "dot"})
    h, rows = trace["hidden_state"][-1].double().numpy(), lm.model.head.weight.detach().double().numpy()
    cosines = rows @ h / np.linalg.norm(h) / np.linalg.norm(rows, axis=1)
    rankings, dimensions = (frame.value for frame in app.dataframe[:2])
    assert [label_id(label) for label in rankings["By logit"]] == list(np.argsort(-logits[-1])[:10])
    assert [label_id(label) for label in rankings["By cosine"]] == list(np.argsort(-cosines)[:10])
    np.testing.assert_allclose(rankings["cosine"], np.sort(cosines)[::-1][:10], rtol=1e-4)
    target = logits[-1].argmax()
    products = h * rows[target]
    assert list(dimensions["Dimension"]) == list(np.argsort(-np.abs(products))[:10])
    np.testing.assert_allclose(dimensions["h × e"], products[dimensions["Dimension"]], rtol=1e-4)
    differ = np.argmax(cosines) != target
    assert ("Here they differ" in told(app)) == differ


def test_the_lens_ends_in_the_models_own_answer() -> None:
    _lm, _ids, logits, _trace = passed()
    table = run(prompt=PROMPT, position="1", target="#7", **{"logits.view": "lens"}).dataframe[0].value
    probs = softmax(logits[1])
    last = table.iloc[-1]
    assert label_id(last["Top token"]) == probs.argmax()
    assert last["P"] / 100 == pytest.approx(probs.max(), rel=1e-5)
    assert last["P of the followed token"] / 100 == pytest.approx(probs[7], rel=1e-4)
    assert last["Its rank"] == 1 + (probs > probs[7]).sum()


@pytest.mark.parametrize("model", ["small-world", "small-world-sinusoidal", "small-world-untied"])
def test_contributions_sum_to_the_logit_and_the_remainder_is_said(model: str) -> None:
    _lm, _ids, logits, _trace = passed(model=model)
    app = run(prompt=PROMPT, model=model, target="#7", rival="#9", **{"logits.view": "parts"})
    table = app.dataframe[0].value.set_index("Component")
    for column, token in zip(table.columns[:2], (7, 9), strict=True):
        parts = table[column].drop(["sum", "logit", "remainder"])
        assert table[column]["logit"] == pytest.approx(logits[-1, token], rel=1e-4)
        assert parts.sum() == pytest.approx(table[column]["sum"])
        assert abs(parts.sum() - logits[-1, token]) < 1e-4
        assert table[column]["remainder"] == pytest.approx(logits[-1, token] - parts.sum(), abs=1e-4)
    assert table["a − b"]["logit"] == pytest.approx(logits[-1, 7] - logits[-1, 9], abs=1e-3)
    assert any(r"\mathrm{remainder}" in latex.value for latex in app.latex)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("prompt", ["今天天气", "好", "it's \"\\"])
def test_the_snippet_runs_as_it_stands_and_gives_the_pages_numbers(view: str, prompt: str) -> None:
    app = run(prompt=prompt, **{"logits.view": view})
    names, printed = snippet(app)
    assert printed
    if view == "next":
        n = len(names["values"])
        np.testing.assert_allclose(names["values"] * 100, app.dataframe[0].value["P"][:n], rtol=1e-4)
    elif view == "text" and len(names["ids"]) > 1:
        assert float(app.metric[0].value) == pytest.approx(names["scores"].loss, abs=1e-4)
    elif view == "parts":
        found = names["found"]
        np.testing.assert_allclose(
            found.contributions[:, 0], app.dataframe[0].value.iloc[: len(found.components), 1].astype(float), atol=1e-4
        )


# Several texts

TEXTS_PASTED = "The weather today is nice\n\n好\nThe king <b>$x$ :red[y]\n"


def test_several_texts_are_scored_and_bad_lines_are_named() -> None:
    app = run(**{"logits.view": "several"})
    while app.get("progress"):
        app.run()
    assert not app.exception and len(app.dataframe[0].value) == 3  # the examples are scored without a press
    app.text_area(key="several.pasted").set_value(TEXTS_PASTED).run()
    assert "Then press the button" in told(app)
    app.button(key="several.start").click().run()
    while app.get("progress"):  # the texts are read in the background
        app.run()
    assert not app.exception and not app.error
    table = app.dataframe[0].value
    assert list(table["Line"]) == [1, 4]
    assert "Line 3: a single token" in told(app)
    lm = lmcore.load("small-world")
    texts = [line for line in TEXTS_PASTED.splitlines() if len(line) > 1]
    losses, nats = [], []
    for text in texts:
        ids = lm.tokenizer.encode(text).ids
        probs = softmax(lm(ids).double().numpy())
        nats.append(-np.log(probs[np.arange(len(ids) - 1), ids[1:]]))
        losses.append(nats[-1].mean())
    np.testing.assert_allclose(table["Loss (nats per token)"], losses, rtol=1e-5)
    np.testing.assert_allclose(table["Perplexity"], np.exp(losses), rtol=1e-5)
    assert float(app.metric[1].value) == pytest.approx(np.concatenate(nats).mean(), abs=1e-4)


def test_nothing_to_score_cannot_be_started() -> None:
    app = run(lang="zh", **{"logits.view": "several"})
    app.text_area(key="several.pasted").set_value(" \n \n").run()
    assert not app.exception and app.button(key="several.start").disabled


@pytest.mark.parametrize("colour", ["surprisal", "probability", "rank"])
def test_the_text_is_coloured_by_any_measure(colour: str) -> None:
    app = run(prompt=PROMPT, **{"logits.view": "text", "logits.colour": colour})
    assert not app.exception and app.session_state["logits.colour"] == colour
