"""The view of constraints: the run under one, what is said of a token, and the lines of Python."""

import pytest

import lmcore
from lmcore.constraints import Constraint, Masks, compare
from pages.figures.theme import fmt_probability
from tests.pages.generation.page import current, press, run
from tests.pages.harness import clean, figures, printed, tables, told

pytestmark = pytest.mark.slow
WORDS = {"constraint": "regex", "constraint.text": r"( [a-z]+){3}\."}
VIEW = {"generation.view": "constraints", "prompt": "The king", "top_k": "20", "max_new_tokens": "60"}


def test_the_text_fits_and_the_numbers_are_those_of_the_model() -> None:
    app = press(run(**VIEW, **WORDS), "run")
    run_ = current(app)
    path = run_.tree.path(run_.node)
    assert run_.end == "stop token" and run_.constraint == Constraint("regex", r"( [a-z]+){3}\.")
    lm = lmcore.load("small-world")
    masks = Masks(run_.constraint, lm.tokenizer, lm.end_tokens)
    before = [step.token_id for step in path[:-1]]
    logits = lm([*run_.tree.prompt_ids, *before])[-1]
    history = lmcore.History(run_.tree.prompt_ids, before)
    expected = compare(logits, masks.allowed(before), path[-1].settings, history)
    model, masked, retried = figures(app)[0].data
    at = next(place for place, width in enumerate(masked.marker.line.width) if width)
    token = path[-1].token_id
    for bar, probs in ((model, expected.model), (masked, expected.masked.probs), (retried, expected.retried)):
        assert bar.x[at] == pytest.approx(float(probs[token]), abs=1e-5) and sum(bar.x) == pytest.approx(1)
    assert f"removed {fmt_probability(expected.removed_mass)}" in told(app)
    assert f"{fmt_probability(round(expected.total_variation, 12))} apart" in told(app)
    assert tables(app)[-1]["not allowed"].tolist() == pytest.approx([100 * step.forbidden for step in path])
    lines = printed(app).splitlines()
    assert len(lines) == len(path)
    assert float(lines[-1].split()[-2]) == pytest.approx(expected.removed_mass, abs=1e-6)
    assert float(lines[-1].split()[-1]) == pytest.approx(expected.total_variation, abs=1e-6)


def test_the_constraint_holds_token_by_token_and_can_be_taken_away_there() -> None:
    app = press(run(**{**VIEW, "generation.view": "write"}, **WORDS), "run")
    run_ = current(app)
    assert run_.end == "stop token" and "The text is constrained: regular expression" in told(app)
    shown = [line.split()[1] for line in printed(app).splitlines()]
    assert shown == [str(step.token_id) for step in run_.tree.path(run_.node)]
    clean(app.button(key="constraint.off").click().run())
    assert current(app).constraint is None and current(app).node is run_.node
    assert (
        printed(app).splitlines() and "lmcore.Constraint(kind='regex'" in app.code[-1].value
    )  # the branch was drawn under it


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_one_an_example_is_a_press_away_and_begins_at_the_prompt(lang: str) -> None:
    app = press(run(**VIEW, lang=lang), "step")
    assert current(app).node.depth == 1
    clean(app.button(key="constraint.example.0").click().run())
    assert current(app).constraint == Constraint("regex", r"( [a-z]+){4}\.") and current(app).node.depth == 0
    assert current(app).tip.depth == 1  # nothing is lost
    press(app, "step")
    assert current(app).node.constraint is not None


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        ("regex", "(<b>:red[x]", "cannot be used: unclosed group"),
        ("json_schema", '{"type": "objekt"}', "cannot be used: Invalid type: objekt"),
        ("choices", "", "cannot be used: it has no choice"),
        ("json_schema", "", "cannot be used: line 1"),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_is_drawn(kind: str, text: str, says: str) -> None:
    app = clean(run(**VIEW, **{"constraint": kind, "constraint.text": text}))
    assert says in told(app).replace("`", "")
    assert app.button(key="generation.run").disabled and app.button(key="generation.step").disabled


def test_a_kind_that_is_none_is_replaced_and_said() -> None:
    app = clean(run(**VIEW, **{"constraint": "lark"}))
    assert current(app).constraint is None and "lark is not a choice here" in told(app)
