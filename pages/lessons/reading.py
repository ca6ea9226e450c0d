"""Reading a lesson file: every mistake is a sentence that names the file and the step."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pages.common import stages
from pages.common.text import _
from pages.lessons.lesson import COMPARED, Choice, Lesson, Question, Step
from pages.lessons.measures import MEASURES, Measure
from pages.lessons.misconceptions import misconceptions
from pages.lessons.texts import Text

FOLDER_VARIABLE = "GLASS_BOX_LM_LESSONS"
"""The environment variable that names the folder of a teacher's own lessons."""

OWN = Path(__file__).parent / "course"
MAX_CHOICES = 8  # of a question: a printed sheet calls them A to H


class LessonError(ValueError):
    """A lesson file that cannot be used: what is wrong with it, each in a sentence of the reader's language."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def read(path: Path) -> Lesson:
    """Read a lesson; what is measured in it, and the addresses of its pages, are checked by `checking.problems`.

    Raises:
        LessonError: for a file that is no lesson, with a sentence for each step that cannot be used.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        if isinstance(other := given.get("steps_of"), str):
            given["steps"] = tomllib.loads(path.with_name(f"{other}.toml").read_text(encoding="utf-8")).get("steps")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise LessonError(_("{file} could not be read: {reason}").format(file=path.name, reason=error)) from error
    try:
        return lesson_of(path.stem, given)
    except LessonError as error:
        raise LessonError(*(f"{path.name}: {problem}" for problem in error.problems)) from error


def files() -> Iterator[Path]:
    """Give the lesson files: the project's own, then the teacher's; a teacher's replaces one of the same name."""
    folders = [OWN, Path(os.environ[FOLDER_VARIABLE])] if os.environ.get(FOLDER_VARIABLE) else [OWN]
    found = {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}
    yield from found.values()


def file_of(name: str) -> Path | None:
    """Return the file of a lesson by name, None when there is none."""
    return next((path for path in files() if path.stem == name), None)


def step_name(index: int) -> str:
    """Return how a problem names a step, by its index from 0."""
    return _("step {n}").format(n=index + 1)


def lesson_of(name: str, given: Mapping[str, Any]) -> Lesson:
    """Return the lesson that a file's tables say.

    Args:
        name: of the lesson.
        given: the tables, as `tomllib` reads them.

    Raises:
        LessonError: with a sentence for each step that cannot be used.
    """
    where = _("the lesson")
    problems: list[str] = []
    steps: list[Step] = []
    tables = given.get("steps")
    try:
        _only(given, where, {"title", "about", "aim", "feedback", "steps", "steps_of"})
        feedback, other = given.get("feedback", True), given.get("steps_of")
        if not isinstance(feedback, bool) or not isinstance(other, str | None):
            raise LessonError(_("feedback is true or false, and steps_of the name of a lesson"))
        if not isinstance(tables, list) or not tables:
            raise LessonError(_("it needs at least one [[steps]]"))
        title = _text(given, "title", where)
        about = _text(given, "about", where) if "about" in given else Text({"en": ""})
        aim = _text(given, "aim", where) if "aim" in given else None
    except LessonError as error:
        problems += error.problems
    for index, table in enumerate(tables if isinstance(tables, list) else ()):
        try:
            steps.append(_step(table, step_name(index)))
        except LessonError as error:
            problems += error.problems
    if problems:
        raise LessonError(*problems)
    return Lesson(name, title, about, tuple(steps), aim, feedback, other)


def _step(given: Any, where: str) -> Step:
    asked = {"question", "choices", "measure", "beside", "purpose"}
    _only(given, where, {"page", "say", "state", "reveal", "explain", "minutes", "ask", *asked})
    page = given.get("page")
    if page not in stages.names():
        raise LessonError(
            _("{step} has the page {given}; the pages are {pages}").format(
                step=where, given=repr(page), pages=", ".join(stages.names())
            )
        )
    orphans = sorted(asked & given.keys())
    if orphans and "question" not in given:
        raise LessonError(_("{step} has {names}, but no question").format(step=where, names=", ".join(orphans)))
    minutes = given.get("minutes")
    if minutes is not None and (isinstance(minutes, bool) or not isinstance(minutes, int) or minutes < 1):
        raise LessonError(_("minutes of {step} is a whole number of at least 1").format(step=where))
    return Step(
        page,
        _text(given, "say", where),
        _values(given, "state", where),
        _question(given, where) if "question" in given else None,
        _values(given, "reveal", where),
        _text(given, "explain", where) if "explain" in given else None,
        minutes,
        _text(given, "ask", where) if "ask" in given else None,
    )


def _question(given: Mapping[str, Any], where: str) -> Question:
    choices = given.get("choices")
    if not isinstance(choices, list) or len(choices) < 2:
        raise LessonError(_("{step} asks a question and needs at least two choices").format(step=where))
    if len(choices) > MAX_CHOICES:
        raise LessonError(
            _("{step} has {n} choices; a question may have up to {most}").format(
                step=where, n=len(choices), most=MAX_CHOICES
            )
        )
    if "measure" not in given:
        raise LessonError(_("{step} asks a question and needs a measure that answers it").format(step=where))
    measure = _measure(given, "measure", where)
    beside = _measure(given, "beside", where) if "beside" in given else None
    return Question(
        _text(given, "question", where),
        tuple(
            _choice(choice, _("choice {n} of {step}").format(n=n, step=where), beside)
            for n, choice in enumerate(choices, 1)
        ),
        measure,
        beside,
        _text(given, "purpose", where) if "purpose" in given else None,
    )


def _choice(given: Any, where: str, beside: Measure | None) -> Choice:
    _only(given, where, {"text", "when", "misconception"})
    when = given.get("when")
    if isinstance(when, Mapping):
        _only(when, _("when, in {choice},").format(choice=where), {"at_least", "less_than"})
        known = bool(when) and all(_is_number(end) for end in when.values())
    else:
        known = (isinstance(when, str) or _is_number(when)) and (when not in COMPARED or beside is not None)
    if not known:
        raise LessonError(
            _(
                "when, in {choice}, is {given}; it is the answer itself, {range}, or, where the step has a measure "
                'named beside, "above", "below", "same" or "different"'
            ).format(choice=where, given=repr(when), range="{at_least = , less_than = }")
        )
    believed = given.get("misconception")
    if believed is not None and (not isinstance(believed, str) or believed not in misconceptions()):
        raise LessonError(
            _("{choice} names the misconception {given}; the list has {names}").format(
                choice=where, given=repr(believed), names=", ".join(misconceptions())
            )
        )
    return Choice(_text(given, "text", where), when, believed)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _measure(given: Mapping[str, Any], key: str, where: str) -> Measure:
    table = given[key]
    name = table.get("name") if isinstance(table, Mapping) else None
    if not isinstance(name, str) or name not in MEASURES:
        raise LessonError(
            _("{key} of {step} has the name {given}; what can be measured is {names}").format(
                key=key, step=where, given=repr(name), names=", ".join(MEASURES)
            )
        )
    arguments = {argument: value for argument, value in table.items() if argument != "name"}
    try:
        return Measure(name, arguments)
    except TypeError as error:
        raise LessonError(
            _("{key} of {step} does not fit {name}: {reason}").format(key=key, step=where, name=name, reason=error)
        ) from error


def _text(given: Mapping[str, Any], key: str, where: str) -> Text:
    value = given.get(key)
    by_language = {"en": value} if isinstance(value, str) else value
    if not isinstance(by_language, Mapping) or not by_language:
        example = "{en = '…', zh = '…'}"
        raise LessonError(
            _("{step} needs {key}: a text, or one for each language, such as {example}").format(
                step=where, key=key, example=example
            )
        )
    if not all(isinstance(text, str) for text in by_language.values()):
        raise LessonError(_("{key} of {step} has a translation that is no text").format(key=key, step=where))
    return Text(by_language)


def _values(given: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    values = given.get(key, {})
    if not isinstance(values, Mapping):
        raise LessonError(
            _("{key} of {step} is a table of values as they stand in the address").format(key=key, step=where)
        )
    return values


def _only(given: Any, where: str, allowed: set[str]) -> None:
    if not isinstance(given, Mapping):
        raise LessonError(_("{place} is not a table").format(place=where))
    unknown = sorted(given.keys() - allowed)
    if unknown:
        raise LessonError(
            _("{place} has {names}; it may have {allowed}").format(
                place=where, names=", ".join(unknown), allowed=", ".join(sorted(allowed))
            )
        )
