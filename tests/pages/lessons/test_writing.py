"""Writing a lesson in the browser: the file is what was written, and the checks speak there."""

from __future__ import annotations

import inspect
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.util import calc_hash

from pages.lessons import draft
from pages.lessons.measures import MEASURES
from pages.lessons.panel import WRITING
from pages.lessons.reading import OWN, lesson_of
from pages.lessons.toml import as_toml
from pages.stages.lessons import fields
from tests.pages.harness import open_page, press, told, well

# TOML has the characters of Unicode, without halves of pairs; a line's end as two characters is read as one.
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=20)
VALUES = st.recursive(
    TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(TEXTS.filter(lambda name: name != "steps"), VALUES, max_size=3),
    st.lists(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=3), min_size=1, max_size=2),
)
def test_any_tables_are_read_as_they_were_written(head: dict[str, object], steps: list[dict[str, object]]) -> None:
    tables = {**head, "steps": steps}
    assert tomllib.loads(as_toml(tables)) == tables


def test_the_course_is_the_same_lesson_when_it_was_opened_and_saved() -> None:
    for path in OWN.glob("*.toml"):
        tables = tomllib.loads(path.read_text("utf-8"))
        if "steps_of" not in tables:
            again = tomllib.loads(as_toml(draft.opened(path.read_bytes())))
            assert again == tables and lesson_of("a", again) == lesson_of("a", tables), path


def test_what_is_no_lesson_is_refused_in_a_sentence() -> None:
    for content, words in (
        (b"\xff\xfe", "not TOML"),
        (b"a = ", "not TOML"),
        (b"a = 1", "no \\[\\[steps\\]\\]"),
        (b"steps = [1]", "no \\[\\[steps\\]\\]"),
        (b"[[steps]]\n" * (draft.MOST_STEPS + 1), "61 steps"),
        (b"#" * (draft.MOST_BYTES + 1), "200,001 bytes"),
    ):
        with pytest.raises(ValueError, match=words):
            draft.opened(content)


def test_every_measure_can_be_chosen() -> None:
    assert fields.told().keys() == MEASURES.keys()
    kinds = {
        str(parameter.annotation)
        for measure in MEASURES.values()
        for parameter in inspect.signature(measure).parameters.values()
    }
    assert all("Literal" not in kind or str(list(fields.SIDES)) in kind.replace('"', "'") for kind in kinds)


def test_a_lesson_is_written_tried_and_mended() -> None:
    app = open_page("lessons", **WRITING)
    assert "The lesson has no step yet." in told(app)
    tables = app.session_state["lessons.draft"]
    tables["steps"].append({"page": "sampling", "state": {"prompt": "今天天气", "model": "small-world"}, "say": ""})
    app = well(app.run())

    def field(label: str):  # noqa: ANN202 - a widget
        return next(each for each in (*app.text_input, *app.text_area, *app.selectbox) if each.label == label)

    field("Title").input("t"), field("What to say first").input("Look.")
    field("Question (without one the step is only to look at)").input("How many are kept?")
    app = well(app.run())
    field("What answers it").select("candidates")
    app = well(app.run())
    field("sampler settings").input("top_k = 7")
    texts = [each for each in app.text_input if each.label == "choice"]
    texts[0].input("seven"), texts[1].input("eight")
    answers = [each for each in app.text_input if each.label == "answer"]
    answers[0].input("6"), answers[1].input("8")
    app = well(app.run())
    app = well(next(each for each in app.button if each.key == "lessons.try").click().run())
    assert "no choice is right; measured was 7" in told(app)
    [each for each in app.text_input if each.label == "answer"][0].input("7")
    app = well(app.run())
    assert "no choice is right" not in told(app)  # that was of another draft
    app = well(next(each for each in app.button if each.key == "lessons.try").click().run())
    assert "Measured: 7. Right: seven" in told(app)
    step = app.session_state["lessons.draft"]["steps"][0]
    assert step["measure"] == {"name": "candidates", "top_k": 7}
    assert step["choices"] == [{"text": "seven", "when": 7}, {"text": "eight", "when": 8}]
    app = press(app, "lessons.follow_draft")  # as a student
    app._page_hash = calc_hash("sampling")
    assert app.session_state["prompt"] == "今天天气" and not app.title  # the page waits for the answer
    app.radio(key=f"lesson.choice.{draft.NAME}.0.0.en").set_value(0).run()
    app = press(app, "lesson.answer")
    assert app.success[0].value == "Measured just now: **7**." and app.title[0].value == "Sampling"
    app = press(app, "lesson.leave")
    app._page_hash = calc_hash("lessons")
    assert any(each.label == "Title" and each.value == "t" for each in app.text_input)  # back where it is written
    other = open_page("sampling", lesson=draft.NAME)
    assert f"There is no lesson named {draft.NAME}." in told(other)  # it is nobody else's
