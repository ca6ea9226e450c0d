"""What a lesson file may say, and reading it: every mistake is a sentence that names the file and the step."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pages.common import stages
from pages.lessons.measures import MEASURES, Measure

FOLDER_VARIABLE = "GLASS_BOX_LM_LESSONS"
"""The environment variable that names the folder of a teacher's own lessons."""

OWN = Path(__file__).parent
_COMPARED = ("above", "below", "same")


class LessonError(ValueError):
    """A lesson file that cannot be used, in a sentence."""


@dataclass(frozen=True)
class Text:
    """A text in one language or several, by their codes; in another one the first is shown."""

    by_language: Mapping[str, str]

    def in_language(self, code: str) -> str:
        """Return the text in a language, or in the first that there is."""
        return self.by_language.get(code) or next(iter(self.by_language.values()))


@dataclass(frozen=True)
class Choice:
    """A possible answer: `when` says of what is measured that this is the right one."""

    text: Text
    when: Any

    def is_right(self, answer: float | str, beside: float | str | None) -> bool:
        """Return whether this choice is the right one for the measured answer.

        Args:
            answer: what was measured.
            beside: the step's second measure, which "above", "below" and "same" hold the answer to.

        >>> Choice(Text({"en": "It rises."}), "above").is_right(0.94, 0.69)
        True
        """
        if isinstance(self.when, Mapping) and not isinstance(answer, str):
            return self.when.get("at_least", float("-inf")) <= answer < self.when.get("less_than", float("inf"))
        if self.when in _COMPARED and not isinstance(answer, str) and not isinstance(beside, str | None):
            same = abs(answer - beside) <= 1e-6 * max(1.0, abs(beside))  # float32 differs by less
            return same if self.when == "same" else not same and (answer > beside) == (self.when == "above")
        return answer == self.when


@dataclass(frozen=True)
class Question:
    """What to predict, the choices, and what is measured to answer it."""

    text: Text
    choices: tuple[Choice, ...]
    measure: Measure
    beside: Measure | None


@dataclass(frozen=True)
class Step:
    """A page in a state, what is said about it, and a question.

    With `reveal`, values that change once the question is answered, the page can be seen before; without it the page
    waits for the answer.
    """

    page: str
    say: Text
    state: Mapping[str, Any] = field(default_factory=dict)
    question: Question | None = None
    reveal: Mapping[str, Any] = field(default_factory=dict)
    explain: Text | None = None


@dataclass(frozen=True)
class Lesson:
    """A lesson by its file's name."""

    name: str
    title: Text
    about: Text
    steps: tuple[Step, ...]


def read(path: Path) -> Lesson:
    """Read a lesson.

    Raises:
        LessonError: for a file that is no lesson.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LessonError(f"{path.name} could not be read: {error}") from error
    try:
        _only(given, "the lesson", {"title", "about", "steps"})
        steps = given.get("steps")
        if not isinstance(steps, list) or not steps:
            raise LessonError("it needs at least one [[steps]]")
        title = _text(given, "title", "the lesson")
        about = _text(given, "about", "the lesson") if "about" in given else Text({"en": ""})
        return Lesson(path.stem, title, about, tuple(_step(step, f"step {n}") for n, step in enumerate(steps, 1)))
    except LessonError as error:
        raise LessonError(f"{path.name}: {error}.") from error


def files() -> Iterator[Path]:
    """Give the lesson files: the project's own, then the teacher's; a teacher's replaces one of the same name."""
    folders = [OWN, Path(os.environ[FOLDER_VARIABLE])] if os.environ.get(FOLDER_VARIABLE) else [OWN]
    found = {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}
    yield from found.values()


def find(name: str) -> Lesson | None:
    """Return a lesson by name, None when there is no file of it.

    Raises:
        LessonError: for a file that is no lesson.
    """
    return next((read(path) for path in files() if path.stem == name), None)


def _step(given: Any, where: str) -> Step:
    _only(given, where, {"page", "say", "state", "question", "choices", "measure", "beside", "reveal", "explain"})
    page = given.get("page")
    if page not in stages.names():
        raise LessonError(f"{where} has the page {page!r}; the pages are {', '.join(stages.names())}")
    return Step(
        page,
        _text(given, "say", where),
        _values(given, "state", where),
        _question(given, where) if "question" in given else None,
        _values(given, "reveal", where),
        _text(given, "explain", where) if "explain" in given else None,
    )


def _question(given: Mapping[str, Any], where: str) -> Question:
    choices = given.get("choices")
    if not isinstance(choices, list) or len(choices) < 2:
        raise LessonError(f"{where} asks a question and needs at least two choices")
    if "measure" not in given:
        raise LessonError(f"{where} asks a question and needs a measure that answers it")
    measure = _measure(given, "measure", where)
    beside = _measure(given, "beside", where) if "beside" in given else None
    return Question(
        _text(given, "question", where),
        tuple(_choice(choice, f"choice {n} of {where}", beside) for n, choice in enumerate(choices, 1)),
        measure,
        beside,
    )


def _choice(given: Any, where: str, beside: Measure | None) -> Choice:
    _only(given, where, {"text", "when"})
    when = given.get("when")
    if isinstance(when, Mapping):
        _only(when, f"when, in {where},", {"at_least", "less_than"})
        known = bool(when) and all(isinstance(end, (int, float)) for end in when.values())
    else:
        known = isinstance(when, (str, int, float)) and (when not in _COMPARED or beside is not None)
    if not known:
        raise LessonError(
            f"when, in {where}, is {when!r}; it is the answer itself, {{at_least = , less_than = }}, or, where the "
            'step has a measure named beside, "above", "below" or "same"'
        )
    return Choice(_text(given, "text", where), when)


def _measure(given: Mapping[str, Any], key: str, where: str) -> Measure:
    table = given[key]
    name = table.get("name") if isinstance(table, Mapping) else None
    if name not in MEASURES:
        raise LessonError(f"{key} of {where} has the name {name!r}; what can be measured is {', '.join(MEASURES)}")
    arguments = {argument: value for argument, value in table.items() if argument != "name"}
    try:
        return Measure(name, arguments)
    except TypeError as error:
        raise LessonError(f"{key} of {where}: {error}") from error


def _text(given: Mapping[str, Any], key: str, where: str) -> Text:
    value = given.get(key)
    by_language = {"en": value} if isinstance(value, str) else value
    if not isinstance(by_language, Mapping) or not by_language:
        raise LessonError(f"{where} needs {key}: a text, or one for each language, such as {{en = '…', zh = '…'}}")
    if not all(isinstance(text, str) for text in by_language.values()):
        raise LessonError(f"{key} of {where} has a translation that is no text")
    return Text(by_language)


def _values(given: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    values = given.get(key, {})
    if not isinstance(values, Mapping):
        raise LessonError(f"{key} of {where} is a table of values as they stand in the address")
    return values


def _only(given: Any, where: str, allowed: set[str]) -> None:
    if not isinstance(given, Mapping):
        raise LessonError(f"{where} is not a table")
    unknown = sorted(given.keys() - allowed)
    if unknown:
        raise LessonError(f"{where} has {', '.join(unknown)}; it may have {', '.join(sorted(allowed))}")
