"""A class above the page: a student at their own pace, and who is not let in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from pages.classes import operator
from pages.classes.codes import new_secret
from pages.classes.guesses import Guesses
from pages.classes.store import Store
from tests.pages.harness import ROOT, open_page, part, told, well


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
