"""Lessons: broken files are refused in a sentence; every answer is measured, and one choice is right."""

import math
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import lmcore
from pages.common import stages
from pages.lessons import measures
from pages.lessons.checking import problems_of_file
from pages.lessons.lesson import Choice
from pages.lessons.reading import FOLDER_VARIABLE, OWN, LessonError, file_of, files, read
from pages.lessons.texts import Text
from tests.pages.harness import open_page, press, told

TOUR = read(OWN / "tour.toml")


def test_the_tour_is_in_both_languages_and_visits_every_stage() -> None:
    texts = [TOUR.title, TOUR.about]
    for step in TOUR.steps:
        texts += [step.say, *([step.explain] if step.explain else [])]
        texts += [step.question.text] if step.question else []
    assert all({"en", "zh"} <= text.by_language.keys() for text in texts)
    assert {step.page for step in TOUR.steps} == stages.titles().keys() - {"overview"}


def test_measures_against_the_model_itself() -> None:
    lm = lmcore.load("small-world")
    prompt = "今天天气"
    ids = lm.tokenizer.encode(prompt).ids
    (token,) = lm.tokenizer.encode("很").ids
    logits = lm(ids)[-1].double()
    probs = torch.softmax(logits, -1)
    assert measures.tokens(lm, prompt) == len(ids)
    assert measures.probability(lm, prompt, "很") == pytest.approx(probs[token].item(), abs=1e-6)
    cold = torch.softmax(logits / 0.5, -1)[token].item()
    assert measures.probability(lm, prompt, "很", temperature=0.5) == pytest.approx(cold, abs=1e-6)
    assert measures.rank(lm, prompt, "很") == 2 == 1 + int((probs > probs[token]).sum())
    assert measures.candidates(lm, prompt, top_k=7) == 7
    bits = -(probs * probs.log2()).sum().item()
    assert measures.entropy(lm, prompt) == pytest.approx(bits, abs=1e-5)
    rows = lm.model.token_embedding.weight.detach().double()
    a, b = (rows[lm.tokenizer.encode(text).ids[0]] for text in ("猫", "狗"))
    assert measures.cosine(lm, prompt, "猫", "狗") == pytest.approx((a @ b / a.norm() / b.norm()).item(), abs=1e-9)
    assert measures.distance(lm, prompt, prompt) == 0
    assert measures.attention(lm, prompt, layer=1, head=2, query=0, key=1) == 0
    sentence = "The weather today is nice"
    all_ids = lm.tokenizer.encode(sentence).ids
    log_probs = torch.log_softmax(lm(all_ids).double(), -1)
    expected = -sum(log_probs[i, all_ids[i + 1]].item() for i in range(len(all_ids) - 1)) / (len(all_ids) - 1)
    assert measures.loss(lm, sentence) == pytest.approx(expected, abs=1e-6)
    assert measures.parameters(lm, prompt, of="gpt2") == 124_439_808
    assert measures.parameters(lm, prompt, of="gpt2", tied=False) == 163_037_184
    with pytest.raises(ValueError, match="'今天天气' is 2 tokens of small-world, not one"):
        measures.probability(lm, prompt, "今天天气")


def test_above_below_and_same_exclude_each_other() -> None:
    for answer, beside in ((0.9, 0.7), (0.7, 0.9), (0.7, 0.7 + 1e-9), (math.inf, 1.0)):
        right = [when for when in ("above", "below", "same") if Choice(Text({"en": ""}), when).is_right(answer, beside)]
        assert len(right) == 1, (answer, beside)
    ends = Choice(Text({"en": ""}), {"at_least": 10, "less_than": 20})
    assert [ends.is_right(n, None) for n in (9, 10, 19, 20)] == [False, True, True, False]


def turned(app: AppTest, page: str) -> AppTest:
    """Let the app be on the page that it turned to by itself, as a browser is."""
    app._page_hash = calc_hash(page)
    return app


STEP = """
title = "t"
[[steps]]
page = "sampling"
say = "s"
"""
ASK = STEP + 'question = "q"\nchoices = [{text = "a", when = 1}, {text = "b", when = 2}]\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("title = ", "could not be read"),
        ('title = "t"', "at least one"),
        (STEP.replace("sampling", "sampler"), "step 1 has the page 'sampler'; the pages are .*tokenization"),
        (STEP + "pages = 1", "step 1 has pages; it may have .*explain"),
        (STEP.replace('say = "s"', "say = 3"), "step 1 needs say"),
        (STEP + 'question = "q"', "at least two choices"),
        (ASK, "needs a measure"),
        (ASK + 'measure = {name = "vibes"}', "what can be measured is tokens, likeliest"),
        (ASK + 'measure = {name = "rank"}', "missing a required argument: 'token'"),
        (ASK + 'measure = {name = "rank", token = "a", layer = 1}', "unexpected keyword argument 'layer'"),
        (ASK.replace("when = 2", 'when = "above"') + 'measure = {name = "tokens"}', "measure named beside"),
        (ASK.replace("when = 2", "when = {under = 2}") + 'measure = {name = "tokens"}', "under; it may have"),
        (STEP + "state = 3", "state of step 1 is a table"),
    ],
)
def test_a_file_that_is_no_lesson_is_refused_by_name(tmp_path: Path, text: str, sentence: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(LessonError, match=rf"mine\.toml.*{sentence}"):
        read(file)


@pytest.mark.slow
def test_a_teachers_folder_is_read_and_broken_files_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    asked = ASK.replace("when = 2", "when = 4") + 'measure = {name = "tokens", prompt = "今天天气真不错"}'
    (tmp_path / "mine.toml").write_text(asked)
    (tmp_path / "broken.toml").write_text(asked.replace("when = 4", "when = 5"))
    assert [path.stem for path in files()][-2:] == ["broken", "mine"]
    assert file_of("mine") == tmp_path / "mine.toml" and file_of("none") is None
    app = open_page("lessons")
    (said,) = app.error
    assert "broken" in said.value and "step 1" not in told(app)  # a student is not told the answer
    app = open_page("lessons", **{"lessons.teacher": "1"})
    assert "no choice is right; measured was 4" in told(app)
    assert "步" in told(open_page("lessons", lang="zh", **{"lessons.teacher": "1"}))
    app = open_page("sampling", lesson="broken")
    assert "has a mistake" in app.error[0].value and app.title[0].value == "Sampling"
    app = turned(press(open_page("lessons"), "lessons.start.mine"), "sampling")
    assert not app.title  # the page waits for the answer
    app.radio(key="lesson.choice.mine.0.0.en").set_value(1).run()
    assert press(app, "lesson.answer").title[0].value == "Sampling"


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_tour_is_walked_to_its_end(lang: str) -> None:
    app = open_page("lessons", lang=lang, temperature="1.7", prompt="The king")
    app.button(key="lessons.start.tour").click().run()
    for index, step in enumerate(TOUR.steps):
        turned(app, step.page)
        assert not app.exception and app.session_state["lesson.step"] == index + 1
        if "prompt" in step.state:
            assert app.session_state["prompt"] == step.state["prompt"]
        if step.question is not None:
            assert bool(app.title) == bool(step.reveal)
            app.radio(key=f"lesson.choice.tour.{index}.0.{lang}").set_value(0).run()
            app.button(key="lesson.answer").click().run()
            assert app.title and not app.exception and not app.error
            for name, value in step.reveal.items():
                assert app.session_state[name] == value
        if index + 1 < len(TOUR.steps):
            app.button(key="lesson.next").click().run()
    app.button(key="lesson.finish").click().run()
    assert not app.exception and not any(button.key == "lesson.finish" for button in app.button)
    assert "lesson" not in app.session_state or app.session_state["lesson"] is None


def test_a_step_out_of_range_and_an_unknown_lesson_are_said() -> None:
    app = open_page("sampling", lesson="tour", **{"lesson.step": "99"})
    assert not app.exception and app.session_state["lesson.step"] == len(TOUR.steps)  # and turns to its page
    app = open_page("sampling", lesson="<b>nope</b>")
    assert not app.exception and any("There is no lesson named <b>nope</b>." in text.value for text in app.text)
    assert app.title[0].value == "Sampling"


def test_the_lesson_in_the_teaching_guide_can_be_followed(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[3] / ".github" / "TEACHING.md").read_text("utf-8")
    (lesson,) = (block for part in guide.split("```toml\n")[1:] if "[[steps]]" in (block := part.split("```")[0]))
    (tmp_path / "mine.toml").write_text(lesson, "utf-8")
    assert problems_of_file(tmp_path / "mine.toml", lmcore.load, "small-world") == []


@pytest.mark.slow
def test_sheets_to_print_are_computed_when_they_are_shown() -> None:
    worksheet, key, guide = (
        told(open_page("lessons", **{"lessons.sheet": sheet, "lessons.of": "6-choosing"}))
        for sheet in ("worksheet", "key", "guide")
    )
    lm = lmcore.load("small-world")
    drawn = f"Measured just now: **{measures.drawn(lm, '今天天气', '不错', 100)}**; for comparison: 68.82 %."
    assert drawn in key and "**1.** **B** About 70 times" in key and drawn in guide
    assert "Measured" not in worksheet and "A. 100 times" in worksheet
    assert "gives 不错 about 69 %" in worksheet  # what the question is about
    assert "**Purpose.** The model gives probabilities" in guide and "always picks the most probable" in guide


def test_a_test_tells_nothing_until_it_is_answered_again() -> None:
    app = turned(press(open_page("lessons"), "lessons.start.0-before"), "tokenization")
    app.radio(key="lesson.choice.0-before.0.0.en").set_value(0).run()
    app = press(app, "lesson.answer")
    assert app.session_state["lesson.step"] == 2 and not app.title  # the next question, without its page
    app = press(turned(app, "embedding"), "lesson.back")
    assert "Your answer: Two" in told(app) and "Measured" not in told(app)
