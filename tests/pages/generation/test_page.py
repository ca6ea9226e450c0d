"""The generation page: tokens drawn one by one, held to `lmcore.generate`."""

import numpy as np
import pytest

import lmcore
from tests.pages.generation.page import PROMPT, current, press, run, text_part
from tests.pages.harness import clean, go_to, printed, told


def reference(n: int = 12, model: str = "small-world", **settings: float) -> list[lmcore.GenerationStep]:
    lm = lmcore.load(model)
    chosen = lmcore.SamplingSettings(**{"temperature": 0.8, "top_p": 0.9, "seed": 5, **settings})
    stop_ids = lm.end_tokens
    return list(lmcore.generate(lm, lm.tokenizer.encode(PROMPT).ids, chosen, max_new_tokens=n, stop_ids=stop_ids))


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
        assert frame["unmodified model"][row] == pytest.approx(100 * np.exp(log_probs[step.token_id]))
        assert frame["rank"][row] == 1 + (logits > logits[step.token_id]).sum()
        assert frame["candidates"][row] == np.count_nonzero(step.result.probs.numpy())
    assert "12 of at most 12 new tokens" in told(app)


def test_the_snippet_prints_what_the_page_shows() -> None:
    app = press(run(), "run")
    ids = [int(line.split()[1]) for line in printed(app).splitlines()]
    assert ids == app.dataframe[-1].value["id"].tolist()


@pytest.mark.slow
def test_steps_rewinds_and_looks_give_the_same_text_as_a_run() -> None:
    app = run()
    for _ in range(3):
        press(app, "step")
    app.session_state["generation.selected"] = current(app).tree.path(current(app).node)[0]
    clean(app.run())
    assert "Rewind to here" in [button.label for button in app.button]
    press(app, "go_to")
    assert current(app).node.depth == 1 and current(app).tip.depth == 3
    assert [token["kind"] for token in text_part(app)] == ["prompt"] * 2 + ["drawn"] + ["ahead"] * 2
    press(app, "run")
    assert app.dataframe[-1].value["id"].tolist() == [step.token_id for step in reference()]
    assert len(current(app).tree.leaves()) == 1
    press(app, "restart")
    assert current(app).node.depth == 0 and current(app).tip.depth == len(reference())


@pytest.mark.slow
def test_another_token_begins_a_branch_and_both_can_be_walked() -> None:
    app = press(run(), "run")
    first = current(app).tree.path(current(app).node)
    app.session_state["generation.selected"] = first[1]
    clean(app.run())
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
    assert "1 candidate: the seed has no effect" in told(app)
    app.session_state["generation.selected"] = current(app).tree.path(current(app).node)[0]
    assert "Drawn with `temperature 0.8, top_p 0.9, seed 5`" in told(clean(app.run()))


def test_knobs_of_the_sampling_page_hold_here_too() -> None:
    app = press(run(min_p="0.3", repetition_penalty="1.5"), "run")
    expected = [step.token_id for step in reference(min_p=0.3, repetition_penalty=1.5)]
    assert app.dataframe[-1].value["id"].tolist() == expected
    assert app.slider(key="min_p").value == 0.3
    assert app.number_input(key="generation.knob.repetition_penalty~1").value == 1.5
    assert "min_p=0.3" in app.code[-1].value


@pytest.mark.slow
def test_greedy_is_the_same_under_every_seed() -> None:
    texts = [press(run(temperature="0", seed=seed), "run").dataframe[-1].value["id"].tolist() for seed in ("1", "2")]
    assert texts[0] == texts[1] == [step.token_id for step in reference(temperature=0.0)]


def test_presets_set_the_knobs_and_show_which_is_on() -> None:
    app = run()
    usual, plain = (f"generation.preset.{name}" for name in ("usual", "plain"))
    assert app.button(key=usual).proto.type == "primary" and app.button(key=plain).proto.type == "secondary"
    app.number_input(key="top_k").set_value(3).run()
    assert app.button(key=usual).proto.type == "secondary"
    app.button(key=plain).click().run()
    assert app.button(key=plain).proto.type == "primary"
    values = {name: app.session_state[name] for name in ("temperature", "top_k", "top_p")}
    assert values == {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
    app.slider(key="temperature~1").set_value(0.5).run()
    assert app.session_state["temperature"] == 0.5 and current(app).settings.temperature == 0.5
    clean(app)


def test_top_k_moves_on_the_scale_of_the_lab_and_takes_any_number() -> None:
    app = run()
    assert app.select_slider(key="top_k.place~1").value == 0
    app.number_input(key="top_k").set_value(39).run()
    assert current(app).settings.top_k == 39
    assert app.select_slider(key="top_k.place~2").value == 38
    app.select_slider(key="top_k.place~2").set_value(5).run()
    assert current(clean(app)).settings.top_k == 5 and app.number_input(key="top_k~1").value == 5


def test_a_press_draws_with_what_was_set_before_it_although_the_page_has_not_run_since() -> None:
    app = run()
    app.slider(key="temperature").set_value(0.0)
    app.button(key="generation.step").click().run()  # both in one message
    node = current(clean(app)).node
    assert node.settings.temperature == 0 and node.token_id == reference(temperature=0.0)[0].token_id


@pytest.mark.slow
def test_the_snippet_draws_the_branch_in_view() -> None:
    app = press(run(), "run")
    generation = current(app)
    third = generation.tree.path(generation.node)[2]
    generation.take(third, third.token_id)  # the same token once more, by hand
    app.slider(key="temperature").set_value(0.5).run()
    press(app, "run")
    assert generation.node.depth > 5 and len(generation.tree.leaves()) == 2
    ids = app.dataframe[-1].value["id"].tolist()
    assert [int(line.split()[0]) for line in printed(app).splitlines()] == ids


@pytest.mark.slow
def test_generations_of_other_prompts_are_kept_and_come_back() -> None:
    app = press(run(), "run")
    ids = app.dataframe[-1].value["id"].tolist()
    app.session_state["prompt"] = "I like"
    app.run()
    assert current(clean(app)).node.depth == 0
    press(app, "step")
    go_to(app, "tokenization")
    go_to(app, "generation")
    assert current(app).node.depth == 1
    assert f"{len(ids)} tokens" in app.button(key="generation.earlier.0").label
    app.button(key="generation.earlier.0").click().run()
    assert app.session_state["prompt"] == PROMPT
    assert clean(app).dataframe[-1].value["id"].tolist() == ids


@pytest.mark.slow
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
    shown = clean(app.run())
    assert shown.code[0].value == "我"
    assert "Hidden until the character is complete: `⟨f0 9f⟩`" in told(shown)


def test_a_text_that_repeats_itself_is_said() -> None:
    app = run(temperature="0")
    run_ = current(app)
    for _ in range(6):
        run_.take(run_.node, 393)
    assert "The text repeats `猫` over and over." in told(clean(app.run()))


def test_the_end_token_ends_the_text() -> None:
    app = run()
    run_ = current(app)
    run_.take(run_.node, 0)
    shown = clean(app.run())
    assert "The text has ended: `<|endoftext|>` was drawn." in told(shown)
    assert shown.button(key="generation.run").disabled and shown.button(key="generation.step").disabled
    assert shown.code[0].value == PROMPT


def test_a_full_context_is_said() -> None:
    app = run(prompt="今天天气" * 64, model="small-world-learned")
    press(app, "step")
    assert "The context is full: the model cannot see more than 128 tokens." in told(app)
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


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("prompt", ["a", "\0\u202e<script>alert(1)</script> :red[x] $y$ ", "😊"])
def test_any_prompt_can_be_continued(prompt: str, lang: str) -> None:
    app = press(run(prompt=prompt, lang=lang, max_new_tokens="3"), "run")
    assert 1 <= len(app.dataframe[-1].value) <= 3
    assert not any(character in app.code[0].value for character in "\0\u202e")


def test_a_stop_string_ends_the_text_and_is_no_part_of_it() -> None:
    text = lmcore.load("small-world").tokenizer.decode([step.token_id for step in reference()])
    stop = text[3:5]
    app = press(run(stop_strings=stop), "run")
    assert f"ended at the stop string `{stop}`" in told(app)
    assert app.code[0].value == PROMPT + text[: text.index(stop)]
    assert current(app).end == "stop string"


def test_stop_tokens_can_be_chosen_and_nonsense_is_said() -> None:
    third = reference()[2].token_id
    app = press(run(stop_ids=str(third)), "run")
    assert current(app).node.token_id == third and current(app).end == "stop token"
    assert f"stop_ids = [{third}]" in app.code[-1].value
    wrong = run(stop_ids="7, x")
    assert any("x is not an id from 0 to 1599" in text.value for text in wrong.text)
