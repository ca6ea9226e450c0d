"""The generation page: its figures, and its numbers against `lmcore.generate` and numpy."""

import contextlib
import io
import json
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

import lmcore
from lmcore.analysis.diversity import distinct, self_bleu
from lmcore.generation import tree_file
from lmcore.generation.repetition import watch_circling
from lmcore.generation.run import GenerationRun
from pages.common.escape import visible
from pages.figures import theme
from pages.figures.generation import curves, distribution
from pages.figures.generation.tree import Path as Way
from pages.figures.generation.tree import tree

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
    figure = distribution.distribution(initial, final, final == 0, [1, 2, 3], ["b", '<c> "', "d"], chosen=2)
    before, after = figure.data
    np.testing.assert_allclose(before.x, [0.4, 0.3, 0.2, 0.1])
    np.testing.assert_allclose(after.x, [0.57, 0.43, 0.0, 0.0])
    assert sum(before.x) == pytest.approx(1) and sum(after.x) == pytest.approx(1)
    assert [shape != "" for shape in before.marker.pattern.shape] == [False, False, True, False]
    assert [width > 0 for width in after.marker.line.width] == [False, True, False, False]
    assert before.text[2] == "removed" and list(after.text)[:3] == ["57.00 %", "43.00 %", ""]
    assert max(distribution.distribution([1.0, 0], [1.0, 0], [False] * 2, [0], ["a"]).layout.xaxis.tickvals) == 1
    assert list(figure.layout.yaxis.ticktext) == ["b", '&lt;c&gt; "', "d", "the other 1 tokens"]
    assert figure.layout.xaxis.range[0] == 0


def test_a_distribution_shown_whole_has_no_rest() -> None:
    figure = distribution.distribution([0.5, 0.5], [0.5, 0.5], [False, False], [0, 1], ["a", "a"])
    assert len(figure.data[0].x) == 2


def test_what_is_written_at_the_last_tokens_reaches_to_the_left() -> None:
    figure = tree([-1, 0, 1, 0], list("abcd"), [0.0] * 4, list("abcd"), paths=[Way([0, 1])])
    written = next(trace for trace in figure.data if trace.text)
    assert list(written.textposition) == ["top center", "top center", "top left", "top center"]
    deep = tree([*range(-1, 9)], list("abcdefghij"), [0.0] * 10, list("abcdefghij"), paths=[Way([0, 1])])
    assert set(next(trace for trace in deep.data if trace.text).textposition) == {"top center"}  # there it is scrolled


def test_branches_keep_to_lanes_of_their_own() -> None:
    figure = tree(
        [-1, 0, 1, 0, 3],
        ["prompt", "a", "b", "<c>", "d"],
        [0, 0.5, 1, 0.2, 0.1],
        ["", "a 50 %", "", "", ""],
        paths=[Way([0, 3, 4], "<in view>"), Way([0, 1, 2], "compared", theme.CATEGORICAL[1])],
        present=4,
        by_hand=[3],
        ends={2: "<end>"},
    )
    other, in_view, compared, nodes, ends = figure.data
    assert list(nodes.x) == [0, 1, 2, 1, 2] and list(nodes.y) == [0, 0, 0, 1, 1]
    assert other.x == [] and in_view.x.count(None) == compared.x.count(None) == 2  # an edge to each node but the root
    assert in_view.line.width > compared.line.width and in_view.name == "&lt;in view&gt;"
    assert nodes.text[3] == "&lt;c&gt;" and nodes.customdata[1] == "a 50 %"
    assert nodes.marker.symbol[3] == "diamond" and nodes.marker.symbol[1] == "circle"
    assert nodes.marker.line.color[4] == theme.OUTLINE != nodes.marker.line.color[3]
    assert (nodes.marker.cmin, nodes.marker.cmax) == (0, 1)
    assert ends.x == [2] and 0 < ends.y[0] < 0.5 and ends.text[0].strip() == "&lt;end&gt;"


def test_curves_carry_their_numbers() -> None:
    figure = curves.against_length([1, 8], {"w": [1, 2], "<o>": [3, 4]}, x_title="x", y_title="y", unit="ms")
    assert [list(line.y) for line in figure.data] == [[1.0, 2.0], [3.0, 4.0]]
    assert list(figure.data[0].x) == [1, 8] and figure.data[1].name == "&lt;o&gt;"
    assert figure.layout.yaxis.rangemode == "tozero"
    text = curves.along_text([0.2, 0.9, 1.0], ["a", "b", "<c>"], [(1, 2), (2, 3)], x_title="x", y_title="y")
    assert list(text.data[0].y) == [0.2, 0.9, 1.0] and text.data[0].customdata[2] == "&lt;c&gt;"
    assert [(shape.x0, shape.x1) for shape in text.layout.shapes] == [(0.5, 1.5), (1.5, 2.5)]
    bars = curves.measures({"distinct-1": [0.5, 1.0], "self-BLEU": [None, 0.25]}, ["<a>", "b"], y_title="y")
    assert [list(bar.y) for bar in bars.data] == [[0.5, None], [1.0, 0.25]] and bars.data[0].name == "&lt;a&gt;"
    assert bars.data[0].text == ["0.500", "–"] and bars.layout.yaxis.range[0] == 0


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
    plain = press(run(kv_cache="0"), "run")
    assert plain.dataframe[-1].value["id"].tolist() == app.dataframe[-1].value["id"].tolist()
    for one, other in zip(*(current(each).tree.path(current(each).node) for each in (app, plain)), strict=True):
        assert one.used_cache and not other.used_cache and one.log_prob == pytest.approx(other.log_prob, abs=1e-4)


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


def view(name: str, **parameters: str) -> AppTest:
    """Open a view of the page and wait for what begins by itself."""
    app = run(**{"generation.view": name, **parameters})
    for _ in range(200):
        jobs = app.session_state["generation.jobs"].values()
        if not any(job.running for job in jobs):
            break
        time.sleep(0.05)
    return checked(app.run())


def executed(app: AppTest) -> list[str]:
    """Run the page's snippet and return the lines it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(app.code[-1].value, "snippet", "exec"), {})
    return printed.getvalue().splitlines()


def test_the_more_probable_sentence_that_greedy_misses_is_shown() -> None:
    app = view("search", prompt="I like", **{"search.tokens": "2", "search.width": "3"})
    assert "Greedy misses the more probable sentence" in sentences(app)
    assert "1,600² sentences" in sentences(app)
    frame = app.dataframe[-1].value
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode("I like").ids
    first = torch.log_softmax(lm(ids)[-1].double(), 0)
    pairs = torch.stack([first[i] + torch.log_softmax(lm([*ids, i])[-1].double(), 0) for i in range(200)])
    best = frame.iloc[0]
    spelled = lm.tokenizer.encode(best["sentence"].replace("␣", " ")).ids
    assert best["ln P"] == pytest.approx(
        float(first[spelled[0]] + torch.log_softmax(lm([*ids, spelled[0]])[-1].double(), 0)[spelled[1]]), abs=1e-4
    )
    assert best["ln P"] >= float(pairs.max()) - 1e-4  # none of these 320,000 is more probable
    greedy = frame[frame["found by"].str.contains("greedy")].iloc[0]
    assert greedy["ln P"] < best["ln P"] and f"{greedy['probability']:.2f} %" in sentences(app)
    printed = executed(app)
    assert float(printed[2].split()[0]) == pytest.approx(best["probability"] / 100, rel=1e-4)


def test_where_greedy_is_right_it_is_said() -> None:
    assert "Greedy finds the most probable sentence here" in sentences(view("search", prompt="The king"))


@pytest.mark.parametrize("prompt", ["小明", "我喜欢"])
def test_the_search_tree_shows_every_sentence_of_the_table(prompt: str) -> None:
    app = view("search", prompt=prompt, lang="zh", **{"search.tokens": "4", "search.width": "5"})
    assert "贪心错过了更可能的句子" in sentences(app)
    assert len(app.dataframe[-1].value) >= 5


def test_the_circle_of_greedy_is_measured() -> None:
    app = view("trap", prompt="I like", **{"trap.tokens": "80"})
    lm = lmcore.load("small-world")
    greedy = lmcore.generate(
        lm, lm.tokenizer.encode("I like").ids, lmcore.SamplingSettings(temperature=0), max_new_tokens=80
    )
    *_, last = watch_circling(greedy)
    assert f"From token {last.loop.start} on the text goes round" in sentences(app)
    frame = app.dataframe[-1].value
    np.testing.assert_allclose(frame["probability of the round"], [100 * p for p in last.round_probs()], rtol=1e-6)
    assert executed(app)[0] == str(last.loop)
    penalised = view("trap", prompt="I like", **{"trap.tokens": "80", "trap.penalty": "1.5"})
    assert "No circle in 80 tokens" in sentences(penalised)


def test_texts_under_two_settings_are_those_of_generate() -> None:
    app = view("many", prompt="I like", temperature="1.2", top_p="1", **{"many.texts": "4", "many.temperature": "0.5"})
    frame = app.dataframe[-1].value
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode("I like").ids
    texts = []
    for row, (temperature, number) in enumerate([(t, n) for t in (1.2, 0.5) for n in range(4)]):
        settings = lmcore.SamplingSettings(temperature=temperature, seed=5 + number)
        steps = list(lmcore.generate(lm, ids, settings, max_new_tokens=20, stop_ids=[0]))
        texts.append([step.token_id for step in steps])
        assert frame["text"][row] == visible(b"".join(step.token for step in steps))
        mean = np.mean([np.log(float(step.result.initial_probs[step.token_id])) for step in steps])
        assert frame["mean of ln P"][row] == pytest.approx(mean, abs=1e-4)
    chart = next(json.loads(e.proto.spec) for e in app.main if e.type == "plotly_chart")
    first, second = chart["data"]
    for bar, side in ((first, texts[:4]), (second, texts[4:])):
        expected = [distinct(side, n) for n in (1, 2, 3)] + [self_bleu(side)]
        assert [float(text) for text in bar["text"]] == pytest.approx(expected, abs=1e-3)
    assert executed(app)[0].startswith("[" + repr(distinct(texts[:4], 1)))


def test_time_and_memory_of_the_cache_are_measured() -> None:
    app = view("cache", **{"cache.tokens": "32"})
    frame = app.dataframe[-1].value
    assert frame["tokens"].tolist() == list(range(2, 33, 2))
    assert frame["largest difference of a logit"].max() < 1e-3
    assert frame["bytes in the cache"].tolist() == [4096 * n for n in frame["tokens"]]
    assert (frame["with cache (ms)"] > 0).all() and (frame["without (ms)"] > 0).all()
    assert "4,096 bytes" in sentences(app)
    assert len(executed(app)) == len(frame)


def test_a_branch_is_named_pruned_and_put_back() -> None:
    app = press(run(), "run")
    run_ = current(app)
    end = run_.node
    other = next(i for i in range(300, 400) if i != run_.tree.path(end)[3].token_id)
    run_.take(run_.tree.path(end)[2], other)
    checked(app.run())
    frame = app.dataframe[0].value
    assert frame["tokens"].tolist() == [4, 12] and frame["tokens of its own"].tolist() == [1, 9]
    own = [sum(node.log_prob for node in run_.tree.path(leaf)) for leaf in (run_.node, end)]
    assert frame["ln P"].tolist() == pytest.approx(own)
    field = next(each for each in app.text_input if each.label == "Name of the branch in view")
    field.set_value(":red[x] <b>").run()
    assert run_.node.name == ":red[x] <b>"
    assert ":red[x] <b>" in app.button(key="generation.branch.1").label
    press(app, "prune")
    assert run_.tree.leaves() == [end] and run_.node is run_.tree.path(end)[2]
    press(app, "undo")
    assert len(run_.tree.leaves()) == 2 and run_.node.token_id == other and run_.node.name == ":red[x] <b>"


def saved(app: AppTest) -> str:
    run_ = current(app)
    return tree_file.to_json(run_.tree, PROMPT, run_.node, run_.tip)


def opened(app: AppTest, text: str) -> AppTest:
    """Paste a file's text, open it, and wait."""
    next(area for area in app.text_area if area.key == "generation.pasted").set_value(text).run()
    app.button(key="generation.open").click().run()
    if "generation.opening" in app.session_state and app.session_state["generation.opening"] is not None:
        app.session_state["generation.opening"][1].join(60)
        app.run()
    return app


def test_a_saved_tree_is_opened_by_another_session() -> None:
    app = press(run(), "run")
    run_ = current(app)
    run_.take(run_.tree.path(run_.node)[1], 393)
    text = saved(app)
    other = run(prompt="I like")
    opened(other, text)
    checked(other)
    again = current(other)
    assert other.text_input(key="prompt").value == PROMPT
    assert [again.tree.ids(node) for node in again.tree.nodes()] == [run_.tree.ids(n) for n in run_.tree.nodes()]
    assert again.tree.ids(again.node) == run_.tree.ids(run_.node)
    assert other.dataframe[-1].value["probability"].tolist() == pytest.approx(
        [100 * node.prob for node in run_.tree.path(run_.node)], rel=1e-4
    )


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_file_that_does_not_fit_is_refused_and_nothing_changes(lang: str) -> None:
    app = press(run(lang=lang), "run")
    before = saved(app)
    text = json.dumps({**json.loads(before), "model": "<img src=x onerror=alert(1)>"})
    opened(app, text)
    assert not app.exception and saved(app) == before
    refused = next(code.value for code in app.code if code.value.startswith("This file cannot be opened"))
    assert "<img src=x onerror=alert(1)>" in refused and "small-world" in refused
    assert app.text_input(key="prompt").value == PROMPT


def test_a_file_made_with_other_weights_is_said_to_be() -> None:
    app = press(run(), "step")
    whole = json.loads(saved(app))
    whole["nodes"][0]["prob"] = 0.5 if abs(whole["nodes"][0]["prob"] - 0.5) > 0.1 else 0.9
    other = opened(run(prompt="I like"), json.dumps(whole))
    assert "made with other weights" in "".join(each.value for each in other.warning)


def test_a_stop_string_ends_the_text_and_is_no_part_of_it() -> None:
    text = lmcore.load("small-world").tokenizer.decode([step.token_id for step in reference()])
    stop = text[3:5]
    app = press(run(stop_strings=stop), "run")
    assert f"ended at the stop string `{stop}`" in sentences(app)
    assert app.code[0].value == PROMPT + text[: text.index(stop)]
    assert current(app).end == "stop string"


def test_stop_tokens_can_be_chosen_and_nonsense_is_said() -> None:
    third = reference()[2].token_id
    app = press(run(stop_ids=str(third)), "run")
    assert current(app).node.token_id == third and current(app).end == "stop token"
    assert f"stop_ids = [{third}]" in app.code[-1].value
    wrong = run(stop_ids="7, x")
    assert any("x is no id from 0 to 1599" in text.value for text in wrong.text)


@pytest.mark.parametrize("name", ["write", "search", "trap", "many", "cache"])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("prompt", ["a", "\0\u202e<script>alert(1)</script> :red[x] $y$ ", "今天天气" * 64])
def test_every_view_stands_any_prompt(name: str, lang: str, prompt: str) -> None:
    model = "small-world-learned" if len(prompt) > 100 else "small-world"
    app = run(prompt=prompt, lang=lang, model=model, **{"generation.view": name, "many.texts": "2", "many.tokens": "3"})
    assert app.title[0].value
    if "generation.jobs" in app.session_state:
        for job in app.session_state["generation.jobs"].values():
            job.join(60)
            assert job.error == ""
    checked(app.run())
