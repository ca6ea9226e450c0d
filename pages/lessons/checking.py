"""Trying a lesson before anybody follows it: addresses, measures, and that exactly one choice is right.

What a lesson's answers are is not known until they are measured. So a misspelt token, or choices that none or two of
are right, is found here and not by a student.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pages.common.bar import DEFAULT_PROMPTS
from pages.common.text import _
from pages.lessons.lesson import COMPARED, ORDERED, Choice, Lesson, Question, Step
from pages.lessons.link_keys import unknown
from pages.lessons.measures import HIGHEST, LOWEST, Answer, Load, Measure, token_id
from pages.lessons.reading import LessonError, read, step_name


def problems_of_file(path: Path, load: Load, default_model: str) -> list[str]:
    """Return what is wrong with a lesson file, each in a sentence; nothing when it can be followed.

    Args:
        path: the file.
        load: gives a model by name; a ValueError says in a sentence why there is none.
        default_model: the model of steps that name none.
    """
    try:
        return problems(read(path), load, default_model)
    except LessonError as error:
        return list(error.problems)


def problems(
    lesson: Lesson, load: Load, default_model: str, lock: contextlib.AbstractContextManager[Any] | None = None
) -> list[str]:
    """Return what is wrong with a lesson that was read; arguments as in `problems_of_file`.

    A lock is held for one step at a time, so that others who compute have their turns.
    """
    found: list[str] = []
    for index, step in enumerate(lesson.steps):
        with lock or contextlib.nullcontext():
            found += [f"{lesson.name}.toml: {step_name(index)}: {each}" for each in _of_step(step, load, default_model)]
    return found


def model_of(step: Step, measure: Measure, default_model: str) -> str:
    """Return the name of the model that a measure is taken of."""
    return str(measure.arguments.get("model") or step.state.get("model") or default_model)


def prompts_of(step: Step) -> list[str]:
    """Return the prompts a step can have: its own, or what the page has on a first visit in each language."""
    return [str(step.state["prompt"])] if "prompt" in step.state else list(DEFAULT_PROMPTS.values())


def _of_step(step: Step, load: Load, default_model: str) -> Iterator[str]:
    for table in (step.state, step.reveal):
        for name, value in table.items():
            if unknown(step.page, name, value):
                yield _("the page {page} has nothing named {name} with the value {value}").format(
                    page=step.page, name=name, value=repr(value)
                )
    if step.question is None:
        return
    yield from _of_choices(step.question)
    for prompt in prompts_of(step):
        found = list(_of_answer(step, step.question, prompt, load, default_model))
        yield from found
        if found:
            break


def _of_choices(question: Question) -> Iterator[str]:
    for n, choice in enumerate(question.choices, 1):
        if (reason := _never(choice, question)) is not None:
            yield _("no answer can meet choice {n}: {reason}").format(n=n, reason=reason)


def _never(choice: Choice, question: Question) -> str | None:
    """Return why no answer to a question can meet a choice, None when one may."""
    kind, beside = question.measure.kind, question.beside
    is_text = kind in ("text", "token")
    if isinstance(choice.when, str) and choice.when in COMPARED:
        if beside is not None and is_text != (beside.kind in ("text", "token")):
            return _("a text is compared with a number")
        return _("texts are the same or different") if is_text and choice.when in ORDERED else None
    if is_text:
        among = question.measure.arguments.get("among")
        if not isinstance(choice.when, str):
            return _("the answer is a text")
        return (
            _("{given} is not among {among}").format(given=repr(choice.when), among=among)
            if (isinstance(among, list) and choice.when not in among)
            else None
        )
    if isinstance(choice.when, str):
        return _("the answer is a number")
    lowest, highest = LOWEST[kind], HIGHEST.get(kind, float("inf"))
    if isinstance(choice.when, (int, float)):
        if kind != "count":
            return _("a measured number is never exactly this; give a range")
        return None if choice.when >= lowest and choice.when == int(choice.when) else _("the answer is a count")
    if choice.low >= choice.high or choice.high <= lowest or choice.low > highest:
        return _("the range is empty, or outside what {measure} can be").format(measure=question.measure.name)
    return None


def _of_answer(step: Step, question: Question, prompt: str, load: Load, default_model: str) -> Iterator[str]:
    answers: list[Answer] = []
    for key, measure in (("measure", question.measure), ("beside", question.beside)):
        if measure is None:
            continue
        try:
            lm = load(model_of(step, measure, default_model))
            answers.append(measure.value(lm, prompt, load))
            if key == "measure" and measure.kind == "token":
                for choice in question.choices:
                    if choice.when not in COMPARED:
                        token_id(lm, choice.when)
        except Exception as error:  # a teacher's file may hold anything
            yield _("{key} ({name}) cannot be taken: {reason}").format(key=key, name=measure.name, reason=error)
            return
    answer, beside = answers[0], answers[1] if len(answers) > 1 else None
    right = [n for n, choice in enumerate(question.choices, 1) if choice.is_right(answer, beside)]
    if len(right) != 1:
        measured = f"{answer!r}" if beside is None else f"{answer!r}, {beside!r}"
        none = _("no choice is right; measured was {answer}")
        several = _("the choices {right} are right, not one; measured was {answer}")
        yield (several if right else none).format(right=", ".join(map(str, right)), answer=measured)
