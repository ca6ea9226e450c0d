"""The sampler's stages on the generation page: those of the lab, with their state carried from token to token."""

import lmcore
from lmcore.sampling.registry import all_stages
from pages.stages.generation.stages import COMMON
from tests.pages.generation.page import PROMPT, current, press, run
from tests.pages.harness import clean, printed, told


def add(app, stage: str):
    """Choose a stage in the menu."""
    menu = next(box for box in app.selectbox if box.label == "Add a stage")
    menu.set_value(stage).run()
    return clean(app)


def test_every_stage_of_the_lab_stands_there_or_is_in_the_menu_and_is_switched_on_by_it() -> None:
    app = run(temperature="1", top_p="1")
    menu = next(box for box in app.selectbox if box.label == "Add a stage")
    apart = {stage.name for stage in all_stages()} - {"top_k", "top_p", "min_p"}
    assert len(menu.options) == len(apart)
    for name in ("mirostat", "xtc", "temperature"):  # of temperature the range that follows the entropy
        add(app, name)
    assert current(app).settings.active == ("temperature", "xtc", "mirostat")
    assert current(app).settings.dynatemp_range == 0.5 and not {*current(app).settings.active} & {*COMMON[1:]}
    app.button(key="generation.remove.xtc").click().run()
    assert current(clean(app)).settings.active == ("temperature", "mirostat")


def test_stages_with_state_and_chance_give_the_text_of_generate_and_of_the_snippet() -> None:
    address = {"mirostat": "2", "mirostat_tau": "3", "xtc_probability": "0.5", "adaptive_target": "0.4"}
    app = press(run(**address), "run")
    lm = lmcore.load("small-world")
    settings = lmcore.SamplingSettings(
        temperature=0.8, top_p=0.9, seed=5, mirostat=2, mirostat_tau=3, xtc_probability=0.5, adaptive_target=0.4
    )
    ids = lm.tokenizer.encode(PROMPT).ids
    steps = list(lmcore.generate(lm, ids, settings, max_new_tokens=12, stop_ids=lm.end_tokens))
    assert app.dataframe[-1].value["id"].tolist() == [step.token_id for step in steps]
    assert [int(line.split()[1]) for line in printed(app).splitlines()] == [step.token_id for step in steps]
    # The token in view tells the state it was drawn with, and what it made of it.
    last = steps[-1].result
    (shown,) = (frame.value for frame in app.dataframe if "state before" in frame.value)
    row = shown[shown["stage"] == "Mirostat"].iloc[0]
    assert row["state before"] == f"{last.state['mirostat']:.4f}"
    assert row["state after"] == f"{last.next_state(steps[-1].token_id)['mirostat']:.4f}"
    assert f"mu is {last.state['mirostat']:.4f} bits" in row["remark"]


def test_what_a_stage_does_not_take_is_said_and_not_lost() -> None:
    app = run(logit_bias="7:-2")
    field = next(each for each in app.text_input if each.label == "Logit bias")
    assert field.value == "7:-2"
    field.set_value("12, many").run()
    field = next(each for each in app.text_input if each.label == "Logit bias")
    assert field.value == "12, many" and "12,␣many does not fit" in " ".join(each.value for each in app.text)
    assert dict(current(clean(app)).settings.logit_bias) == {7: -2.0}
    field.set_value("12:1.5").run()
    assert dict(current(clean(app)).settings.logit_bias) == {12: 1.5} and not app.text


def test_the_rules_of_an_engine_are_said_and_kept() -> None:
    app = run(engine="vllm", xtc_probability="0.5")
    assert "By the rules of vLLM" in told(app) and "This engine has no such stage" in told(app)
    assert current(app).settings.engine == "vllm" and "xtc" not in current(app).settings.active
