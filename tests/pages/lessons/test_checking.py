"""A lesson is tried before anybody follows it, and what is wrong is said in both languages."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import lmcore
from pages.common.text import outside_a_session
from pages.lessons.__main__ import main
from pages.lessons.checking import problems_of_file
from pages.lessons.misconceptions import misconceptions
from pages.lessons.reading import OWN, read
from pages.lessons.texts import Text

GOOD = """
title = "t"
[[steps]]
page = "sampling"
say = "s"
state = { prompt = "今天天气", temperature = 1.0 }
question = "q"
choices = [ { text = "a", when = "above" }, { text = "b", when = "below" } ]
measure = { name = "probability", token = "不错", temperature = 0.5 }
beside = { name = "probability", token = "不错" }
"""
RISES = '"above" }, { text = "b", when = "below"'
FAULTS = [
    ("temperature = 0.5", "temperatur = 0.5", "'temperatur' is not a sampling setting"),
    ("temperature = 1.0", "temperatura = 1.0", "sampling has nothing named temperatura"),
    ("temperature = 1.0", '"logits.view" = "nxt"', "nothing named logits.view"),
    ('"sampling"', '"logits"', ""),
    ("temperature = 1.0", 'model = "small-word"', "small-word"),
    ('token = "不错", t', 'token = "狗狗狗", t', "'狗狗狗' is 3 tokens of small-world, not one"),
    (RISES, '"same" }, { text = "b", when = "below"', "no choice is right; measured was 0.93"),
    (RISES, '"above" }, { text = "b", when = {at_least = 0.5}', "choices 1, 2 are right"),
    (RISES, '"above" }, { text = "b", when = {at_least = 1.5}', "no answer can meet choice 2: the range"),
    (
        RISES,
        '"above" }, { text = "b", when = {at_least = 0.3, less_than = 0.2}',
        "no answer can meet choice 2: the range",
    ),
    (RISES, '"above" }, { text = "b", when = "不错"', "no answer can meet choice 2: the answer is a number"),
    (RISES, '"above" }, { text = "b", when = 0.93', "no answer can meet choice 2: a measured number"),
    (RISES, '"above" }, { text = "b", when = "below", misconception = "nope"', "the misconception 'nope'"),
    (RISES, RISES + ' }, { text = "c", when = 1' * 7, "9 choices; a question may have up to 8"),
]


def wrong_in(folder: Path, content: str) -> str:
    file = folder / "mine.toml"
    file.write_text(content, "utf-8")
    return "\n".join(problems_of_file(file, lmcore.load, "small-world"))


def test_each_fault_of_a_lesson_is_found_before_anybody_follows_it(tmp_path: Path) -> None:
    assert wrong_in(tmp_path, GOOD) == ""
    for good, bad, sentence in FAULTS:
        assert good in GOOD
        assert sentence in wrong_in(tmp_path, GOOD.replace(good, bad)), bad


def test_every_fault_is_told_at_once_and_in_chinese(tmp_path: Path) -> None:
    both = GOOD.replace("temperature = 1.0", "temperatura = 1.0") + GOOD.split('"t"')[1].replace(
        RISES, RISES + ", x = 1"
    )
    token = outside_a_session.set("zh")
    try:
        said = wrong_in(tmp_path, both.replace("x = 1", "when_ = 1"))
    finally:
        outside_a_session.reset(token)
    assert "第 2 步" in said and "when_" in said


def test_a_terminal_says_what_is_wrong(tmp_path: Path, capsys) -> None:
    (tmp_path / "a.toml").write_text(GOOD, "utf-8")
    (tmp_path / "b.toml").write_text(GOOD.replace("0.5", '"x"'), "utf-8")
    assert main(["check", str(tmp_path / "a.toml")]) == 0
    assert main(["check", str(tmp_path / "b.toml"), str(tmp_path / "c.toml")]) == 1
    told = capsys.readouterr().out
    assert "b.toml: step 1" in told and "c.toml could not be read" in told


@pytest.mark.slow
def test_every_lesson_of_the_project_is_right() -> None:
    for path in sorted(OWN.glob("*.toml")):
        assert problems_of_file(path, lmcore.load, "small-world") == []


def test_misconceptions_are_in_both_languages() -> None:
    for each in misconceptions().values():
        assert {"en", "zh"} <= each.belief.by_language.keys() & each.answer.by_language.keys(), each.name


def test_the_course_has_a_purpose_for_each_question_and_a_misconception_for_each_wrong_choice() -> None:
    where = defaultdict(set)
    for path in sorted(OWN.glob("[1-8]-*.toml")):
        lesson = read(path)
        assert lesson.aim is not None and all(step.minutes for step in lesson.steps), path.name
        for index, question in lesson.questions.items():
            said = f"{path.name}, step {index + 1}"
            assert question.purpose is not None, said
            assert sum(choice.misconception is None for choice in question.choices) == 1, said  # the right one
            for choice in question.choices:
                where[choice.misconception].add(path.name)
    assert len(list(OWN.glob("[1-8]-*.toml"))) == 8
    assert {name: sorted(files) for name, files in where.items() if name and len(files) < 2} == {}
    assert misconceptions().keys() <= where.keys()


def test_every_text_of_the_project_is_in_both_languages() -> None:
    def texts(value: object) -> Iterator[Text]:
        if isinstance(value, Text):
            yield value
        elif dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                yield from texts(getattr(value, field.name))
        elif isinstance(value, tuple):
            for each in value:
                yield from texts(each)

    for path in OWN.glob("*.toml"):
        for text in texts(read(path)):
            word = set(text.by_language) == {"en"} and not text.by_language["en"].isascii()  # a word of the small world
            assert word or {"en", "zh"} <= text.by_language.keys(), (path.name, text)
