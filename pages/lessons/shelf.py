"""The lessons of this server: read and checked, once for each state of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lmcore import LanguageModel
from lmcore.loading import model_name
from pages.common import session
from pages.common.shared import shared
from pages.common.text import _, language
from pages.lessons import checking, draft
from pages.lessons.lesson import Lesson, Step
from pages.lessons.measures import Answer, Measure, NotMeasurable
from pages.lessons.reading import LessonError, file_of, files, read


@dataclass(frozen=True)
class Shelved:
    """A lesson file: the lesson when it can be followed, else what is wrong with it."""

    name: str
    lesson: Lesson | None
    problems: tuple[str, ...] = ()


def shelf() -> Iterator[Shelved]:
    """Give every lesson of the server."""
    for path in files():
        try:
            yield _checked(read(path))
        except LessonError as error:
            yield Shelved(path.stem, None, error.problems)


def find(name: str) -> Shelved | None:
    """Return a lesson by name, None when there is no file of it. The reader's own draft is one too, for the reader."""
    if (read_it := _reader(name)) is None:
        return None
    try:
        return _checked(read_it())
    except LessonError as error:
        return Shelved(name, None, error.problems)


def unchecked(name: str) -> Lesson | None:
    """Return a lesson by name as it was read; None when there is none, or when it cannot be read."""
    if (read_it := _reader(name)) is None:
        return None
    try:
        return read_it()
    except LessonError:
        return None


def _reader(name: str) -> Callable[[], Lesson] | None:
    if name == draft.NAME and draft.draft()["steps"]:
        return draft.as_lesson
    path = file_of(name)
    return None if path is None else lambda: read(path)


def measured(step: Step, measure: Measure) -> Answer:
    """Return what is measured for a step; it is computed once for all readers.

    Raises:
        ValueError, TypeError, KeyError, IndexError: when it cannot be.
    """
    prompt = str(step.state["prompt"] if "prompt" in step.state else session.prompt())
    lm = _model(checking.model_of(step, measure, _default_model()))
    return _value(lm.name, prompt, f"{measure.name} {measure.arguments}", lm, measure)


@shared(entries=512)
def _value(model: str, prompt: str, what: str, _lm: LanguageModel, _measure: Measure) -> Answer:
    with session.forward_lock():
        return _measure.value(_lm, prompt, _model)


def _checked(lesson: Lesson) -> Shelved:
    _load_models(lesson)
    found = _problems(repr(lesson), language(), lesson)
    if found:
        _problems.clear(
            repr(lesson), language(), lesson
        )  # what was wrong may be mended elsewhere, such as a model that was missing
    return Shelved(lesson.name, None if found else lesson, tuple(found))


def problems(lesson: Lesson) -> list[str]:
    """Return what is wrong with a lesson that is being written; nothing of it is kept."""
    _load_models(lesson)
    return checking.problems(lesson, _model, _default_model(), session.forward_lock())


def _load_models(lesson: Lesson) -> None:
    """Load what is measured here, where the page can say how far that is."""
    for name in {name for step in lesson.steps for name in _models_of(step)}:
        if _is_here(name):
            session.language_model(name)


@shared(entries=256)
def _problems(content: str, language: str, _lesson: Lesson) -> list[str]:
    return checking.problems(_lesson, _model, _default_model(), session.forward_lock())


def _models_of(step: Step) -> Iterator[str]:
    for measure in (step.question.measure, step.question.beside) if step.question else ():
        if measure is not None:
            yield checking.model_of(step, measure, _default_model())
            yield from [measure.arguments["against"]] if "against" in measure.arguments else []


def _model(name: str) -> LanguageModel:
    if not _is_here(name):
        raise NotMeasurable(_("the model {name} is not on this server").format(name=name))
    return session.language_model(name)


def _is_here(name: str) -> bool:
    known = session.available_models().get(model_name(name).bare)
    return known is not None and known.installed


def _default_model() -> str:
    return next(iter(session.available_models()))
