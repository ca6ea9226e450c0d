"""The page Compare: the verdict, the numbers of every place against NumPy, strange links, and its snippet."""

import base64
import math
import time
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

import lmcore
from lmcore.compare import swaps
from lmcore.distribution import kl_bits, softmax
from pages.figures.compare import apart as pictures
from tests.pages.harness import clean, figures, open_page, printed, table_with, told, well

PROMPT = "The weather today is"


def numbers(values: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(values["bdata"]), "f8")


def page(**address: str):
    return clean(open_page("compare", **{"model": "small-world", "prompt": PROMPT, **address}))


def test_the_line_names_the_stage() -> None:
    for address, sentence in (
        ({}, "First difference: logits."),
        ({"compare.model": "small-world"}, "the same in everything"),
        ({"compare.model": "small-world", "compare.sampler": "llama.cpp"}, "First difference: sampler."),
        ({"compare.model": "small-world", "compare.seed": "5"}, "First difference: draw."),
        (
            {"compare.model": "small-world", "compare.reads": "other", "compare.text": "The king"},
            "First difference: text.",
        ),
        (
            {"compare.model": "small-world", "compare.reads": "control", "prompt": "a<|endoftext|>b"},
            "First difference: ids.",
        ),
        (
            {"compare.model": "small-world", "compare.seed": "5", "temperature": "0", "compare.sampler": "same"},
            "the same in",
        ),
    ):
        assert sentence in told(page(**address)), address


def test_the_numbers_are_those_of_the_logits() -> None:
    app = page()
    a, b = (lmcore.load(name) for name in ("small-world", "small-world:bfloat16"))
    ids = a.tokenizer.encode(PROMPT).ids
    p, q = softmax(a(ids)), softmax(b(ids))
    table = table_with(app, "KL(A‖B), bits")
    np.testing.assert_allclose(table["KL(A‖B), bits"], kl_bits(p, q)[table["Place"].tolist()], atol=1e-12)
    assert table["KL(A‖B), bits"].is_monotonic_decreasing
    line, bars = figures(app)
    np.testing.assert_allclose(numbers(line.data[0].y), kl_bits(p, q), atol=1e-12)
    place = int(kl_bits(p, q).argmax())
    first = int(p[place].argmax())
    assert numbers(bars.data[0].x)[0] == pytest.approx(float(p[place, first]))
    assert numbers(bars.data[1].x)[0] == pytest.approx(float(q[place, first]))
    verdict, means = printed(app).strip().split("\n")
    assert verdict.startswith("logits") and float(means.split()[0]) == pytest.approx(float(kl_bits(p, q).mean()))


def test_a_has_a_model_of_its_own_and_both_sides_are_shown() -> None:
    app = page(**{"compare.a": "small-world-untied", "compare.model": "small-world-untied:q4_0", "temperature": "0.7"})
    a, b = (lmcore.load(name) for name in ("small-world-untied", "small-world-untied:q4_0"))
    ids = a.tokenizer.encode(PROMPT).ids
    wanted = np.asarray(kl_bits(softmax(a(ids)), softmax(b(ids))))
    np.testing.assert_allclose(numbers(figures(app)[0].data[0].y), wanted, atol=1e-12)
    links = {each.proto.label: parse_qs(urlsplit(each.proto.url).query) for each in app.get("link_button")}
    place = str(int(np.argmax(wanted > 0)))
    for label, lm in (("Show A", a), ("Show B", b)):
        state = {"lang": "en", "model": lm.name, "prompt": PROMPT, "temperature": "0.7", "position": place, "seed": "0"}
        assert {name: values[-1] for name, values in links[label].items()} == {**state, "engine": "lmcore"}
    (shown,) = page().get("link_button")  # A is what the explorer shows: its page opens in place
    assert shown.proto.label == "Show B" and "model=small-world:bfloat16" in shown.proto.url


def test_the_place_is_the_worst_until_it_is_moved() -> None:
    app = page(**{"compare.model": "small-world"})
    assert app.session_state["compare.place"] == 0  # nothing differs
    for name in ("small-world:q4_0", "small-world-untied"):
        app = well(
            next(box for box in app.selectbox if box.label == "Model of B").set_value(name.partition(":")[0]).run()
        )
        if ":" in name:
            app = well(next(box for box in app.selectbox if box.label == "Weights of B as").set_value("q4_0").run())
        worst = numbers(figures(app)[0].data[0].y).argmax()
        assert app.session_state["compare.place"] == worst, name
    moved = well(next(each for each in app.slider if each.label == "Place in the text").set_value(1).run())
    app = well(next(box for box in moved.selectbox if box.label == "Model of B").set_value("usual").run())
    assert app.slider(key=next(each.key for each in app.slider if each.label == "Place in the text")).value == 1


def test_the_model_that_goes_with_a_stays_chosen_and_has_a_label_of_its_own() -> None:
    app = page(model="small-world:q4_0", **{"compare.weights": "q8_0"})
    box = next(box for box in app.selectbox if box.label == "Model of B")
    assert box.value == "usual" and len(set(box.options)) == len(box.options)
    app = well(app.run())
    assert next(box for box in app.selectbox if box.label == "Model of B").value == "usual"
    assert next(box for box in app.selectbox if box.label == "Weights of B as").value == "q8_0"
    assert "small-world:q8_0" in told(app) + app.code[-1].value


def test_another_vocabulary_and_strange_links() -> None:
    app = page(**{"compare.place": "99", "compare.seed": "-3", "compare.model": "no-such", "compare.reads": "?"})
    assert "99 is not a number from 0 to" in told(app) and "no-such is not a choice here" in told(app)
    app = clean(open_page("compare", model="small-world", prompt=""))
    assert "at least 1 token" in told(app)
    assert "Paste a request" in told(page(**{"compare.reads": "pasted"}))


def test_the_curve_marks_flips_and_leaves_out_what_is_infinite() -> None:
    drawn = pictures.along_the_text(["a", "<b>"], [0.5, math.inf], [False, True], 1, ("Token", "KL"), "flip")
    assert drawn.data[0].y[0] == 0.5 and math.isnan(drawn.data[0].y[1])
    assert drawn.data[1].x.tolist() == [1] and "&lt;b&gt;" in drawn.data[0].customdata[1]
    assert pictures.parts(["q"], [-0.25], "gone").data[0].text == ["−25 %"]


def when_done(app, sentence: str):
    """Return the app once its work in the background has come to a sentence."""
    for _try in range(200):
        if sentence in told(app):
            return app
        time.sleep(0.05)
        app = well(app.run())
    raise AssertionError(told(app))


def test_both_texts_are_written_and_part_where_the_tokens_do() -> None:
    address = {"compare.view": "texts", "compare.model": "small-world", "compare.seed": "5", "compare.new": "6"}
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode(PROMPT).ids
    a, b = (
        [step.token_id for step in lmcore.generate(lm, ids, lmcore.SamplingSettings(seed=seed), max_new_tokens=6)]
        for seed in (0, 5)
    )
    place = next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    app = when_done(page(**address), f"The texts part at new token {place}.")
    (bars,) = figures(app)
    assert bars.data[0].customdata[0] == lm.tokenizer.decode([a[place]]).replace(" ", "␣")


@pytest.mark.slow
def test_the_swaps_are_those_of_lmcore() -> None:
    a, b = (lmcore.load(name) for name in ("small-world", "small-world:bfloat16"))
    expected = {(s.kind, s.block): s for s in swaps(a, b, a.tokenizer.encode(PROMPT).ids)}
    app = when_done(page(**{"compare.view": "parts"}), "bits from A as it runs")
    assert f"**{expected['weights', None].kl:.4g}**" in told(app)
    for _try in range(200):
        if app.dataframe:
            break
        time.sleep(0.05)
        app = well(app.run())
    table = table_with(app, "Share that goes").set_index("Swapped")
    assert table.loc["mlp.down", "KL(A‖B) left, bits"] == expected["mlp.down", None].kl
    assert table.loc["block 1", "Share that goes"] == pytest.approx(100 * expected["", 1].gone)
    app = clean(
        open_page("compare", model="small-world", **{"compare.view": "parts", "compare.model": "small-world-untied"})
    )
    assert "one shape" in told(app)
