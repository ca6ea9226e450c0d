"""A class above the page: the teacher's screen and a student's, from the lobby to the end, and what each may do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from pages.classes import operator
from pages.classes.codes import new_secret
from pages.classes.guesses import FROM_ALL, Guesses
from pages.classes.store import Store
from pages.lessons.reading import OWN, read
from tests.pages.harness import ROOT, open_page, part, told, well

LESSON = read(OWN / "1-tokens.toml")


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    store = Store(None, room=2)
    monkeypatch.setattr(operator, "store", lambda: store)
    monkeypatch.setattr(operator, "guesses", Guesses())
    yield store
    store.close()


def visit(code: str, page: str, at: str, student: str = "", teacher: str = "") -> AppTest:
    """Open the class where it is, in a new session of a browser that has one of the secrets."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    app.session_state["class.secret"] = student
    app.session_state["class.secrets"] = {code: teacher} if teacher else {}
    for name, value in {"lang": "en", "class": code, "class.at": at}.items():
        app.query_params[name] = value
    app._page_hash = calc_hash(page)
    return well(app.run())


def seat(app: AppTest) -> dict[str, Any]:
    """Return what the browser's part is told."""
    return part(app, "classroom")


def keys(app: AppTest) -> set[str]:
    return {str(button.key) for button in app.button if str(button.key).startswith("class.")}


def press(app: AppTest, key: str) -> None:
    """Press a button that changes the class; AppTest does not follow to where it goes then."""
    app.button(key=key).click().run()


@pytest.mark.slow
def test_a_class_from_the_lobby_to_the_end(store: Store) -> None:
    app = open_page("lessons", **{"lessons.teacher": "1"})
    press(app, "lessons.class.1-tokens")
    code, secret = list(app.session_state["class.secrets"].items())[-1]  # AppTest has strange cookies
    student = new_secret()

    def both(at: str, page: str = "tokenization") -> tuple[AppTest, AppTest]:
        return visit(code, page, at, teacher=secret), visit(code, page, at, student=student)

    teacher, theirs = both("lobby", "lessons")
    name = store.join(code, student)
    assert "It begins soon" in told(theirs) and name in told(theirs)
    assert seat(teacher)["teaches"] and not seat(theirs)["teaches"]
    assert seat(theirs)["hello"] == {"student": student} and secret not in json.dumps(seat(theirs))
    assert keys(teacher) == {"class.begin"} and keys(theirs) == set()
    press(teacher, "class.begin")
    teacher, theirs = both("1-tokens.1")
    assert keys(teacher) == {"class.back", "class.reveal", "class.next", "class.join", "class.menu"}
    assert keys(theirs) == set()
    for app in (teacher, theirs):
        assert seat(app)["question"] == LESSON.questions[0].text.in_language("en")
        assert seat(app)["right"] is None and seat(app)["beliefs"] == []
        assert "Measured just now" not in told(app)
        assert not app.title  # the page waits for the answer
    assert store.vote(code, name, "1-tokens", 0, 1)
    press(teacher, "class.reveal")
    teacher, theirs = both("1-tokens.1.shown")
    for app in (teacher, theirs):
        assert seat(app)["right"] == 1 and seat(app)["shown"]
        assert any("Measured just now: **10**" in each.value for each in (*app.success, *app.info))
        assert app.title[0].value == "Tokenization"
    assert seat(theirs)["vote"] == 1 and seat(teacher)["vote"] is None
    assert any(seat(teacher)["beliefs"]) and not any(seat(theirs)["beliefs"])
    assert "class.reveal" not in keys(teacher)
    press(teacher, "class.next")
    assert seat(both("1-tokens.2")[1])["vote"] is None
    store.end(code, secret)
    teacher, theirs = both("end", "lessons")
    for app in (teacher, theirs):
        assert "has ended" in told(app)
    assert [each.key for each in teacher.get("download_button")] and not theirs.get("download_button")


def test_at_their_own_pace_students_go_on_alone(store: Store) -> None:
    code, secret = store.start("1-tokens")
    store.go(code, secret, step=0, pace="own")
    student = new_secret()
    third = visit(code, "tokenization", "1-tokens.3", student)
    assert seat(third)["own"] and seat(third)["step"] == 2 and not seat(third)["shown"]
    assert keys(third) == {"class.back", "class.next"}
    name = store.join(code, student)
    assert store.vote(code, name, "1-tokens", 2, 0) and store.settle(code, name, "1-tokens", 2)
    third = visit(code, "tokenization", "1-tokens.3.shown", student)
    assert "Measured just now" in told(third) and seat(third)["shown"] and seat(third)["vote"] == 0
    assert not seat(visit(code, "tokenization", "1-tokens.3", new_secret()))["shown"]


def test_who_is_not_let_in_is_told_why(store: Store) -> None:
    code, _secret = store.start("1-tokens")
    for wrong in ("AAAAAAAA", "<b>$x$" * 99, "\0", "💥"):
        assert "There is no class with this code" in told(open_page("lessons", **{"class": wrong}))
    students = [new_secret() for _n in range(3)]
    for student in students[:2]:
        assert "It begins soon" in told(visit(code.lower(), "lessons", "lobby", student))
    assert "The class is full" in told(visit(code, "lessons", "lobby", students[2]))
    for n in range(FROM_ALL):
        operator.guesses.wrong(str(n))
    assert "Too many wrong codes" in told(visit(code, "lessons", "lobby", students[2]))
    assert "It begins soon" in told(visit(code, "lessons", "lobby", students[0]))  # who is in stays in
