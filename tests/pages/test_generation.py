"""The generation page: its figures, and its numbers against `lmcore.generate` and numpy."""

import contextlib
import io
import json
import time
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import lmcore
from lmcore.generation.run import GenerationRun
from pages.figures import generation as figures
from pages.figures import theme

ROOT = Path(__file__).parents[2]
PROMPT = "今天天气"
SETTINGS = {"temperature": "0.8", "top_p": "0.9", "seed": "5", "max_new_tokens": "12", "pace": "0"}


def run(**parameters: str) -> AppTest:
    """Open the page as a fresh visitor with this address."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for name, value in {"lang": "en", "prompt": PROMPT, **SETTINGS, **parameters}.items():
        app.query_params[name] = value
    app.switch_page("pages/stages/generation.py")
    return checked(app.run())


def checked(app: AppTest) -> AppTest:
    assert not app.exception and not app.error, [e.value for e in [*app.exception, *app.error]]
    return app


def press(app: AppTest, action: str) -> AppTest:
    """Press a button, wait for what it began, and look at the page again."""
    app.button(key=f"generation.{action}").click().run()
    while current(app).running:
        time.sleep(0.02)
    return checked(app.run())


def current(app: AppTest) -> GenerationRun:
    return list(app.session_state["generation.runs"].values())[-1]


def sentences(app: AppTest) -> str:
    return "\n".join(element.value for element in [*app.markdown, *app.info, *app.caption])


def text_part(app: AppTest) -> list[dict]:
    """Return the tokens the live text was given."""
    for element in app.main:
        if element.type == "bidi_component" and "generated_text" in element.proto.component_name:
            proto = element.proto
            return json.loads(proto.json or proto.mixed.json)["tokens"]
    raise AssertionError("no text on the page")


def reference(n: int = 12, model: str = "small-world", **settings: float) -> list[lmcore.GenerationStep]:
    lm = lmcore.load(model)
    chosen = lmcore.SamplingSettings(**{"temperature": 0.8, "top_p": 0.9, "seed": 5, **settings})
    stop_ids = lm.tokenizer.special_tokens.values()
    return list(lmcore.generate(lm, lm.tokenizer.encode(PROMPT).ids, chosen, max_new_tokens=n, stop_ids=stop_ids))


def test_a_distribution_shows_the_whole_vocabulary() -> None:
    initial, final = np.array([0.1, 0.4, 0.3, 0.2]), np.array([0.0, 0.57, 0.43, 0.0])
    figure = figures.distribution(initial, final, final == 0, [1, 2, 3], ["b", "<c>", "d"], chosen=2)
    before, after = figure.data
    np.testing.assert_allclose(before.x, [0.4, 0.3, 0.2, 0.1])
    np.testing.assert_allclose(after.x, [0.57, 0.43, 0.0, 0.0])
    assert sum(before.x) == pytest.approx(1) and sum(after.x) == pytest.approx(1)
    assert [shape != "" for shape in before.marker.pattern.shape] == [False, False, True, False]
    assert [width > 0 for width in after.marker.line.width] == [False, True, False, False]
    assert before.text[2] == "removed" and list(after.text)[:3] == ["57.00 %", "43.00 %", ""]
    assert max(figures.distribution([1.0, 0], [1.0, 0], [False] * 2, [0], ["a"]).layout.xaxis.tickvals) == 1
    assert list(figure.layout.yaxis.ticktext) == ["b", "&lt;c&gt;", "d", "the other 1 tokens"]
    assert figure.layout.xaxis.range[0] == 0


def test_a_distribution_shown_whole_has_no_rest() -> None:
    figure = figures.distribution([0.5, 0.5], [0.5, 0.5], [False, False], [0, 1], ["a", "a"])
    assert len(figure.data[0].x) == 2


def test_branches_keep_to_lanes_of_their_own() -> None:
    figure = figures.branches(
        [-1, 0, 1, 0, 3],
        ["prompt", "a", "b", "<c>", "d"],
        [0, 0.5, 1, 0.2, 0.1],
        ["", "a 50 %", "", "", ""],
        in_view=[True, False, False, True, True],
        present=4,
        by_hand=[False, False, False, True, False],
    )
    other, in_view, nodes = figure.data
    assert list(nodes.x) == [0, 1, 2, 1, 2] and list(nodes.y) == [0, 0, 0, 1, 1]
    assert other.x.count(None) == 2 and in_view.x.count(None) == 2  # an edge to each node but the root
    assert nodes.text[3] == "&lt;c&gt;" and nodes.customdata[1] == "a 50 %"
    assert nodes.marker.symbol[3] == "diamond" and nodes.marker.symbol[1] == "circle"
    assert nodes.marker.line.color[4] == theme.OUTLINE != nodes.marker.line.color[3]
    assert (nodes.marker.cmin, nodes.marker.cmax) == (0, 1)


def test_cache_times_are_in_milliseconds() -> None:
    figure = figures.cache_times([0.001, 0.002], [0.003, 0.004], names=("w", "o"), x_title="x", y_title="y")
    assert [list(line.y) for line in figure.data] == [[1.0, 2.0], [3.0, 4.0]]
    assert list(figure.data[0].x) == [1, 2] and figure.layout.yaxis.rangemode == "tozero"


def test_a_run_gives_the_text_of_generate_with_its_numbers() -> None:
    app = press(run(), "run")
    expected = reference()
    frame = app.dataframe[-1].value
    assert frame["id"].tolist() == [step.token_id for step in expected]
    assert frame["position"].tolist() == [step.position for step in expected]
    np.testing.assert_allclose(frame["probability"], [100 * step.prob for step in expected], rtol=1e-9)
    for row, step in enumerate(expected):
        logits = step.logits.numpy().astype(np.float64)
        log_probs = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        assert frame["surprisal (bits)"][row] == pytest.approx(-log_probs[step.token_id] / np.log(2), abs=1e-9)
        assert frame["the model's own"][row] == pytest.approx(100 * np.exp(log_probs[step.token_id]))
        assert frame["rank"][row] == 1 + (logits > logits[step.token_id]).sum()
        assert frame["candidates"][row] == np.count_nonzero(step.result.probs.numpy())
    assert "12 of at most 12 new tokens" in sentences(app)


def test_the_snippet_prints_what_the_page_shows() -> None:
    app = press(run(), "run")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(app.code[-1].value, "snippet", "exec"), {})
    ids = [int(line.split()[1]) for line in printed.getvalue().splitlines()]
    assert ids == app.dataframe[-1].value["id"].tolist()


def test_steps_rewinds_and_looks_give_the_same_text_as_a_run() -> None:
    app = run()
    for _ in range(3):
        press(app, "step")
    app.session_state["generation.selected"] = current(app).tree.path(current(app).node)[0]
    checked(app.run())
    assert "Rewind to here" in [button.label for button in app.button]
    press(app, "go_to")
    assert current(app).node.depth == 1 and current(app).tip.depth == 3
    assert [token["kind"] for token in text_part(app)] == ["prompt"] * 2 + ["drawn"] + ["ahead"] * 2
    press(app, "run")
    assert app.dataframe[-1].value["id"].tolist() == [step.token_id for step in reference()]
    assert len(current(app).tree.leaves()) == 1
    press(app, "restart")
    assert current(app).node.depth == 0 and current(app).tip.depth == len(reference())


def test_another_token_begins_a_branch_and_both_can_be_walked() -> None:
    app = press(run(), "run")
    first = current(app).tree.path(current(app).node)
    app.session_state["generation.selected"] = first[1]
    checked(app.run())
    pick = next(box for box in app.selectbox if (box.key or "").startswith("generation.candidate"))
    other = int(pick.options[2].split(" · ")[1])
    pick.select_index(2).run()
    press(app, "take")
    branch = current(app)
    assert branch.node.token_id == other and branch.node.by_hand and branch.node.depth == 2
    assert [token["kind"] for token in text_part(app)][2:4] == ["drawn", "taken"]
    press(app, "run")
    assert len(branch.tree.leaves()) == 2
    press(app, "branch.0")
    assert app.dataframe[-1].value["id"].tolist() == [node.token_id for node in first]
    assert any("mean ln P" in button.label for button in app.button)


def test_each_token_keeps_the_settings_it_was_drawn_with() -> None:
    app = press(run(), "step")
    app.slider(key="temperature").set_value(0.0).run()
    press(app, "step")
    frame = app.dataframe[-1].value
    assert frame["temperature"].tolist() == [0.8, 0.0] and frame["candidates"][1] == 1
    assert "1 candidate: the seed has no effect" in sentences(app)
    app.session_state["generation.selected"] = current(app).tree.path(current(app).node)[0]
    assert "Drawn with `temperature 0.8, top_p 0.9, seed 5`" in sentences(checked(app.run()))


def test_knobs_of_the_sampling_page_hold_here_too() -> None:
    app = press(run(min_p="0.3", repetition_penalty="1.5"), "run")
    expected = [step.token_id for step in reference(min_p=0.3, repetition_penalty=1.5)]
    assert app.dataframe[-1].value["id"].tolist() == expected
    assert "From the sampling page: `repetition_penalty 1.5, min_p 0.3`" in sentences(app)
    assert "min_p=0.3" in app.code[-1].value


def test_greedy_is_the_same_under_every_seed() -> None:
    texts = [press(run(temperature="0", seed=seed), "run").dataframe[-1].value["id"].tolist() for seed in ("1", "2")]
    assert texts[0] == texts[1] == [step.token_id for step in reference(temperature=0.0)]


def test_presets_set_the_knobs_and_show_which_is_on() -> None:
    app = run()
    assert app.session_state["generation.preset"] == "usual"
    app.slider(key="top_k").set_value(3).run()
    assert app.session_state["generation.preset"] is None
    checked(app)


def test_generations_of_other_prompts_are_kept_and_come_back() -> None:
    app = press(run(), "run")
    ids = app.dataframe[-1].value["id"].tolist()
    app.text_input(key="prompt").set_value("I like").run()
    assert current(checked(app)).node.depth == 0
    press(app, "step")
    app.switch_page("pages/stages/tokenization.py")
    app.run()
    app.switch_page("pages/stages/generation.py")
    app.run()
    assert current(app).node.depth == 1
    assert f"{len(ids)} tokens" in app.button(key="generation.earlier.0").label
    app.button(key="generation.earlier.0").click().run()
    assert app.text_input(key="prompt").value == PROMPT
    assert checked(app).dataframe[-1].value["id"].tolist() == ids


def test_cached_and_plain_generation_agree() -> None:
    app = press(run(), "run")
    difference = next(m.value for m in app.metric if m.label == "Largest difference of a logit")
    assert float(difference) < 1e-3
    plain = press(run(kv_cache="0"), "run")
    assert plain.dataframe[-1].value["id"].tolist() == app.dataframe[-1].value["id"].tolist()
    shown = {metric.label: metric.value for metric in plain.metric}
    assert shown["A token took, with cache"] == "–" and shown["A token took, without"].endswith(" ms")
    plain.button(key="generation.measure").click().run()
    assert "Over all lengths" in sentences(checked(plain))


def test_text_shows_whole_characters_only() -> None:
    app = run(prompt="我")
    run_ = current(app)
    for token_id in run_.tree.lm.tokenizer.encode("😊").ids[:2]:
        run_.take(run_.node, token_id)
    shown = checked(app.run())
    assert shown.code[0].value == "我"
    assert "Held back until the character is whole: `⟨f0 9f⟩`" in sentences(shown)


def test_a_text_that_repeats_itself_is_said() -> None:
    app = run(temperature="0")
    run_ = current(app)
    for _ in range(6):
        run_.take(run_.node, 393)
    assert "The text repeats `猫` over and over." in sentences(checked(app.run()))


def test_the_end_token_ends_the_text() -> None:
    app = run()
    run_ = current(app)
    run_.take(run_.node, 0)
    shown = checked(app.run())
    assert "The text has ended: `<|endoftext|>` was drawn." in sentences(shown)
    assert shown.button(key="generation.run").disabled and shown.button(key="generation.step").disabled
    assert shown.code[0].value == PROMPT


def test_a_full_context_is_said() -> None:
    app = run(prompt="今天天气" * 64, model="small-world-learned")
    press(app, "step")
    assert "The context is full: the model sees no more than 128 tokens." in sentences(app)
    assert app.button(key="generation.run").disabled


@pytest.mark.parametrize("colour", ["probability", "rank", "surprisal"])
def test_colours_are_the_numbers_they_name(colour: str) -> None:
    app = press(run(colour_by=colour), "run")
    drawn = [token for token in text_part(app) if token["kind"] == "drawn"]
    for token, step in zip(drawn, reference(), strict=True):
        bits = -np.log2(float(step.result.initial_probs[step.token_id]))
        rank = 1 + int((step.logits > step.logits[step.token_id]).sum())
        strength = {"probability": step.prob, "rank": 1 / rank, "surprisal": min(bits / 10, 1)}[colour]
        assert token["strength"] == pytest.approx(strength, abs=1e-6)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("prompt", ["a", "\0\u202e<script>alert(1)</script> :red[x] $y$ ", "😊"])
def test_any_prompt_can_be_continued(prompt: str, lang: str) -> None:
    app = press(run(prompt=prompt, lang=lang, max_new_tokens="3"), "run")
    assert 1 <= len(app.dataframe[-1].value) <= 3
    assert not any(character in app.code[0].value for character in "\0\u202e")
