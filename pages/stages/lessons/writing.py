"""Writing a lesson in the browser: its steps, each page's state, a question, what measures the answer, and the file."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.common import page, stages
from pages.common.text import _, language, readable, visible
from pages.lessons import draft, panel, record, shelf
from pages.lessons.lesson import Lesson
from pages.lessons.reading import MAX_CHOICES, LessonError
from pages.lessons.toml import as_toml
from pages.stages.lessons import fields

_TRIED = "lessons.tried"  # (the draft as it was, what is wrong with it)
_STEP = "lessons.write.step"
_MOST_MINUTES = 600


def show() -> None:
    """Show the lesson that is being written."""
    _show_draft()
    draft.keep("lessons.keep.written")


def _show_draft() -> None:
    st.markdown(
        _(
            "On any page, *Share* in the sidebar has *Add this page as a step of a lesson*: it takes the page as it is "
            "set up. Here you write the texts and the question, try them, and save the lesson as a file."
        )
    )
    _show_opening()
    tables = draft.draft()
    key = f"lessons.write.{draft.version()}"
    title, about = st.columns(2)
    with title:
        _text(tables, "title", _("Title"), f"{key}.title")
    with about:
        _text(tables, "about", _("What it is about"), f"{key}.about")
    _text(tables, "aim", _("For the guide: what students can do afterwards"), f"{key}.aim")
    steps = tables["steps"]
    if not steps:
        st.info(_("The lesson has no step yet."))
        return
    index = st.selectbox(
        _("Step of the lesson"),
        range(len(steps)),
        min(st.session_state.get(_STEP, len(steps) - 1), len(steps) - 1),
        format_func=lambda index: f"{index + 1} · {_page_of(steps[index])}",
        key=f"{key}.index",
    )
    st.session_state[_STEP] = index
    with st.container(border=True):
        _show_step(steps, index, f"{key}.{index}")
    _show_trying(tables)


def _page_of(step: dict[str, Any]) -> str:
    name = str(step.get("page", ""))
    return stages.titles().get(name, visible(name))


def _show_opening() -> None:
    given = st.file_uploader(_("Open a lesson's file"), type="toml", key="lessons.open")
    if given is None or st.session_state.get("lessons.opened") == given.file_id:
        return
    st.session_state["lessons.opened"] = given.file_id
    try:
        draft.replace(draft.opened(given.getvalue()))
    except ValueError as error:
        st.error(_("The file was not opened."))
        st.text(readable(str(error)))


def _show_step(steps: list[dict[str, Any]], index: int, key: str) -> None:
    step = steps[index]
    _show_state(steps, index, key)
    _text(step, "say", _("What to say first"), f"{key}.say", long=True)
    _text(step, "question", _("Question (without one the step is only to look at)"), f"{key}.question")
    if step.get("question"):  # in whatever language
        given = step.get("measure")
        measure = fields.measure(given if isinstance(given, dict) else None, f"{key}.measure", _("What answers it"))
        given = step.get("beside")
        beside = fields.measure(given if isinstance(given, dict) else None, f"{key}.beside", _("Compared with"))
        _put(step, "measure", measure)
        _put(step, "beside", beside)
        _show_choices(step, key, measure.get("name"), compared=bool(beside))
        _text(step, "explain", _("Explanation, shown with the answer"), f"{key}.explain", long=True)
        _text(step, "purpose", _("For the guide: what the question is for"), f"{key}.purpose")
    else:
        for name in ("measure", "beside", "choices", "purpose"):
            step.pop(name, None)
    _text(step, "ask", _("For the guide: what to ask the class"), f"{key}.ask")
    given = step.get("minutes")
    known = given if isinstance(given, int) and given is not True and 0 < given <= _MOST_MINUTES else None
    minutes = st.number_input(
        _("For the guide: minutes"), 1, _MOST_MINUTES, known, step=1, key=f"{key}.minutes", width=200
    )
    if minutes is not None or known is not None:  # what a file had that is no number of minutes stays, to be told
        _put(step, "minutes", minutes)


def _show_state(steps: list[dict[str, Any]], index: int, key: str) -> None:
    step = steps[index]
    state = step.get("state", {})
    state = state if isinstance(state, dict) else {}
    told = " · ".join(f"{visible(str(name))} = {visible(str(value))[:40]}" for name, value in state.items())
    st.text(f"{_page_of(step)}  {told}")
    with st.container(horizontal=True):
        if step.get("page") in stages.names():
            page.follow(page.Suggestion(_("Open the page as the step sets it up"), str(step["page"]), state))
        for name, label, to in (("up", _("Move up"), index - 1), ("down", _("Move down"), index + 1)):
            if st.button(label, key=f"{key}.{name}", disabled=not 0 <= to < len(steps)):
                steps[index], steps[to] = steps[to], steps[index]
                _renew(to)
        if st.button(_("Delete the step"), key=f"{key}.delete"):
            del steps[index]
            _renew(max(index - 1, 0))


def _show_choices(step: dict[str, Any], key: str, measure: str | None, *, compared: bool) -> None:
    given = step.get("choices", [])
    choices = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    choices += [{"text": ""} for _n in range(2 - len(choices))]
    step["choices"] = [
        _with_text(
            each, fields.choice(each, f"{key}.choice.{n}", measure, compared=compared, text=_in_language(each, "text"))
        )
        for n, each in enumerate(choices[:MAX_CHOICES])
    ]
    with st.container(horizontal=True):
        if st.button(_("Add a choice"), key=f"{key}.more", disabled=len(choices) >= MAX_CHOICES):
            step["choices"].append({"text": ""})
            st.rerun()
        if st.button(_("Remove the last choice"), key=f"{key}.fewer", disabled=len(choices) <= 2):
            step["choices"].pop()
            st.rerun()


def _show_trying(tables: dict[str, Any]) -> None:
    written = as_toml(tables)
    with st.container(horizontal=True):
        tries = st.button(_("Try it"), type="primary", key="lessons.try")
        page.download(_("Save the lesson"), "my-lesson.toml", lambda: written)
    if tries:
        st.session_state[_TRIED] = (written, _problems())
    before, problems = st.session_state.get(_TRIED, ("", []))
    if before == written and problems:
        st.error(_("The lesson cannot be followed like this:"))
        st.text("\n".join(f"• {readable(problem)}" for problem in problems))
    elif before == written:
        st.success(_("Nothing is wrong.") + " " + _("To use the lesson, put its file into the folder of lessons."))
        lesson = draft.as_lesson()
        _show_answers(lesson)
        if st.button(_("Go through it as a student"), icon=":material/school:", key="lessons.follow_draft"):
            record.forget(lesson)
            panel.go(lesson, 0)
    with st.expander(_("The file")):
        st.code(written, language="toml", wrap_lines=True)


def _problems() -> list[str]:
    try:
        return shelf.problems(draft.as_lesson())
    except LessonError as error:
        return list(error.problems)


def _show_answers(lesson: Lesson) -> None:
    for index, question in lesson.questions.items():
        step = lesson.steps[index]
        right = panel.right_choice(step, question)
        if right is not None:
            st.markdown(
                _("**{n}** Measured: {answer}. Right: {choice}").format(
                    n=index + 1,
                    answer=panel.told(question, shelf.measured(step, question.measure)),
                    choice=question.choices[right].text.in_language(language()),
                )
            )


def _text(table: dict[str, Any], name: str, title: str, key: str, *, long: bool = False) -> str:
    """Show a text in the reader's language as a field; other languages keep theirs."""
    before = _in_language(table, name)
    after = (st.text_area if long else st.text_input)(title, before, key=f"{key}.{language()}", max_chars=2000)
    if after != before:
        _put_text(table, name, after)
    return after


def _in_language(table: dict[str, Any], name: str) -> str:
    value = table.get(name, "")
    return str(value.get(language(), "")) if isinstance(value, dict) else value if isinstance(value, str) else ""


def _put_text(table: dict[str, Any], name: str, text: str) -> None:
    others = table.get(name, {})
    others = dict(others) if isinstance(others, dict) else {"en": others} if others and language() != "en" else {}
    texts = {code: each for code, each in (others | {language(): text}).items() if each}
    _put(table, name, texts["en"] if list(texts) == ["en"] else texts)


def _with_text(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return a choice whose text in the reader's language is the new one."""
    table = {"text": before.get("text", "")}
    _put_text(table, "text", after["text"])
    return {**after, "text": table.get("text", "")}


def _put(table: dict[str, Any], name: str, value: Any) -> None:
    if value:
        table[name] = value
    else:
        table.pop(name, None)


def _renew(index: int) -> None:
    st.session_state[_STEP] = index
    draft.renew()
    st.rerun()
