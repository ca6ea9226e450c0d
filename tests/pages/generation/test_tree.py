"""Branches of a generation: named, pruned, saved and opened."""

import json

import pytest
from streamlit.testing.v1 import AppTest

from lmcore.generation import tree_file
from tests.pages.generation.page import PROMPT, current, press, run
from tests.pages.harness import clean


@pytest.mark.slow
def test_a_branch_is_named_pruned_and_put_back() -> None:
    app = press(run(), "run")
    run_ = current(app)
    end = run_.node
    other = next(i for i in range(300, 400) if i != run_.tree.path(end)[3].token_id)
    run_.take(run_.tree.path(end)[2], other)
    clean(app.run())
    frame = next(each.value for each in app.dataframe if "tokens of its own" in each.value)
    assert frame["tokens"].tolist() == [4, 12] and frame["tokens of its own"].tolist() == [1, 9]
    own = [sum(node.log_prob for node in run_.tree.path(leaf)) for leaf in (run_.node, end)]
    assert frame["ln P"].tolist() == pytest.approx(own)
    field = next(each for each in app.text_input if each.label == "Name of the current branch")
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


@pytest.mark.slow
def test_a_saved_tree_is_opened_by_another_session() -> None:
    app = press(run(), "run")
    run_ = current(app)
    run_.take(run_.tree.path(run_.node)[1], 393)
    text = saved(app)
    other = run(prompt="I like")
    opened(other, text)
    clean(other)
    again = current(other)
    assert other.session_state["prompt"] == PROMPT
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
    assert app.session_state["prompt"] == PROMPT


def test_a_file_made_with_other_weights_is_said_to_be() -> None:
    app = press(run(), "step")
    whole = json.loads(saved(app))
    whole["nodes"][0]["prob"] = 0.5 if abs(whole["nodes"][0]["prob"] - 0.5) > 0.1 else 0.9
    other = opened(run(prompt="I like"), json.dumps(whole))
    assert "made with other weights" in "".join(each.value for each in other.warning)


CHAT = {
    "form": "chat",
    "chat": json.dumps({"messages": [{"role": "user", "content": PROMPT}]}),
    "chat.template": "{{ messages[0].content }}<|endoftext|>",
}
RENDERED = PROMPT + "<|endoftext|>"


def test_a_tree_saved_from_a_conversation_is_opened_by_another_session() -> None:
    run_ = current(press(run(**CHAT), "run"))
    other = clean(opened(run(prompt="I like"), tree_file.to_json(run_.tree, RENDERED, run_.node, run_.tip)))
    again = current(other)
    assert list(again.tree.prompt_ids) == list(run_.tree.prompt_ids)
    assert again.tree.ids(again.node) == run_.tree.ids(run_.node)
    assert other.session_state["form"] == "chat"


@pytest.mark.slow
def test_a_saved_tree_brings_its_conversation_back_where_the_template_still_writes_it() -> None:
    app = press(run(**CHAT), "step")
    run_ = current(app)
    origin = app.session_state["chat.earlier"][RENDERED]  # as the page gives it
    whole = tree_file.to_json(run_.tree, RENDERED, run_.node, run_.tip, *origin)
    other = clean(opened(run(prompt="I like"), whole))
    assert json.loads(other.session_state["chat"]) == json.loads(CHAT["chat"])
    assert other.session_state["chat.template"] == CHAT["chat.template"] and not other.warning
    for changed in (
        {"template": "{{ messages[0].content }}"},
        {"conversation": "{"},
        {"conversation": '{"messages":0}'},
    ):
        other = clean(opened(run(prompt="I like"), json.dumps(json.loads(whole) | changed)))
        assert "gives another text today" in "".join(each.value for each in other.warning)
        assert current(other).tree.prompt_ids == tuple(json.loads(whole)["prompt_ids"])
        assert json.loads(other.session_state["chat"])["messages"][0]["content"] == RENDERED


def test_the_same_text_typed_and_rendered_are_two_generations() -> None:
    app = press(run(**CHAT), "step")
    rendered = current(app)
    app.session_state["form"], app.session_state["prompt"] = None, RENDERED
    typed = current(press(clean(app.run()), "step"))
    kept = list(app.session_state["generation.runs"].values())
    assert kept == [rendered, typed] and rendered.tree.prompt_ids != typed.tree.prompt_ids
    app.button(key="generation.earlier.0").click().run()
    assert current(app) is rendered and app.session_state["form"] == "chat"
