"""The teacher's tables: every choice of a question that was asked, a row for a student, before beside after."""

from pages.classes import tables
from pages.classes.records import Vote
from pages.lessons.lesson import Choice, Lesson, Question, Step
from pages.lessons.measures import Measure
from pages.lessons.texts import Text


def text(words: str) -> Text:
    return Text({"en": words, "zh": f"{words}？"})


CHOICES = (Choice(text("four"), 4), Choice(text("two"), 2, "token-is-word"), Choice(text("none"), 0))
STEPS = (
    Step("tokenization", text("see"), question=Question(text("how many?"), CHOICES, Measure("tokens", {}), None)),
    Step("tokenization", text("only look")),
    Step("tokenization", text("see"), question=Question(text("and now?"), CHOICES[:2], Measure("tokens", {}), None)),
)
LESSONS = {
    "after": Lesson("after", text("After"), text(""), STEPS, feedback=False, steps_of="before"),
    "before": Lesson("before", text("Before"), text(""), STEPS, feedback=False),
}
VOTES = [
    Vote("AAAA", "before", 0, 1, False),
    Vote("BBBB", "before", 0, 1, False),
    Vote("AAAA", "after", 0, 0, False),
    Vote("BBBB", "after", 0, 1, False),
    Vote("BBBB", "after", 2, 0, False),
    Vote("BBBB", "before", 1, 0, False),  # a step without a question
    Vote("BBBB", "before", 2, 7, False),  # a choice that the lesson no longer has
    Vote("CCCC", "gone", 0, 0, False),
]


def first(_step: Step, _question: Question) -> int:
    return 0


def test_answers_have_every_choice_and_its_misconception() -> None:
    frame = tables.answers(VOTES, LESSONS, "en", first)
    asked = frame[(frame["lesson"] == "before") & (frame["step"] == 1)]
    assert asked["choice"].tolist() == ["four", "two", "none"]
    assert asked["count"].tolist() == [0, 2, 0]
    assert asked["right"].tolist() == [True, False, False]
    assert asked["misconception"].tolist() == ["", "token-is-word", ""]
    assert frame["count"].sum() == 5
    assert tables.answers(VOTES, LESSONS, "zh", first)["question"][0] == "how many?？"


def test_each_student_has_a_row_under_a_random_name() -> None:
    frame = tables.students(VOTES, LESSONS, "en", first).set_index("student")
    assert frame.index.tolist() == ["AAAA", "BBBB"]
    assert frame["right"].tolist() == [1, 1]
    assert frame.loc["AAAA", ["before 1", "after 1"]].tolist() == ["B", "A"]
    assert frame.loc["BBBB", ["before 1", "after 1", "after 3"]].tolist() == ["B", "B", "A"]


def test_before_stands_beside_after() -> None:
    frame = tables.before_and_after(VOTES, LESSONS, "en", first)
    assert frame["step"].tolist() == [1, 1, 1, 3, 3]
    assert frame["before"].tolist() == [0, 2, 0, 0, 0]
    assert frame["after"].tolist() == [1, 1, 0, 1, 0]
    assert tables.before_and_after(VOTES, {"after": LESSONS["after"]}, "en", first).empty
    assert tables.answers([], LESSONS, "en", first).empty
