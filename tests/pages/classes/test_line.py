"""The websocket of a class: votes, what a student and a teacher hear, who is refused."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from pages.classes import line, operator
from pages.classes.codes import new_secret
from pages.classes.guesses import FROM_ONE, Guesses
from pages.classes.store import Store

LESSON = "tour"  # whose first step asks


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    store = Store(None, room=2)
    monkeypatch.setattr(operator, "store", lambda: store)
    monkeypatch.setattr(operator, "guesses", Guesses())
    yield store
    store.close()


@contextlib.contextmanager
def served(port: int = 0) -> Iterator[int]:
    """Serve the websocket alone, as the app does; give the port. In the end all connections are lost."""
    config = uvicorn.Config(
        Starlette(routes=[line.route("")]), port=port, log_level="error", timeout_graceful_shutdown=0
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served() as port:
        yield f"ws://127.0.0.1:{port}/class"


def heard(socket: ClientConnection, key: str) -> dict[str, Any]:
    """Return the next message that says something."""
    while True:
        message = json.loads(socket.recv(timeout=10))
        if key in message:
            return message


def test_votes_reach_the_teacher_and_no_student(address: str, store: Store) -> None:
    code, secret = store.start(LESSON)
    store.go(code, secret, step=0)
    with (
        connect(f"{address}/{code}") as teacher,
        connect(f"{address}/{code}") as one,
        connect(f"{address}/{code}") as two,
    ):
        teacher.send(json.dumps({"teacher": secret}))
        said = []
        for student in (one, two):
            student.send(json.dumps({"student": new_secret()}))
            said.append(heard(student, "turn"))
        while heard(teacher, "here")["here"] < 2:
            pass
        vote = {"vote": 1, "lesson": LESSON, "step": 0}
        one.send(json.dumps(vote))
        assert heard(one, "took") == {"took": 1, "at": [LESSON, 0]}
        while (board := heard(teacher, "counts"))["counts"] != {"1": 1}:
            pass
        assert board["here"] == 2
        for strange in (
            {"vote": 99, "lesson": LESSON, "step": 0},
            {"vote": True, "lesson": LESSON, "step": 0},
            {"vote": 0, "lesson": "../tour", "step": 0},
            {"vote": 0, "lesson": LESSON, "step": -1},
            {"vote": 0, "lesson": [LESSON], "step": 0},
            {"vote": 0, "lesson": LESSON, "step": 0, "padding": "x" * 2000},
            [1],
        ):
            two.send(json.dumps(strange))
        two.send("{")
        two.send(json.dumps(vote | {"vote": 0}))
        assert heard(two, "took")["took"] == 0  # the connection has outlived all that
        assert store.counts(code, LESSON, 0) == {0: 1, 1: 1}
        store.reveal(code, secret)
        told = heard(one, "turn")
        assert told.keys() == {"turn", "spread"} == said[0].keys()  # nothing of what others answered
        one.send(json.dumps(vote | {"vote": 2}))
        assert heard(one, "took")["took"] is None
        teacher.send(json.dumps(vote))  # a teacher has no vote
    assert store.counts(code, LESSON, 0) == {0: 1, 1: 1}


def test_who_has_no_place_is_told_why(address: str, store: Store) -> None:
    code, _secret = store.start(LESSON)
    secrets = [new_secret() for _ in range(3)]

    def refused(hello: dict[str, str], at: str = code) -> str:
        with connect(f"{address}/{at}") as socket:
            socket.send(json.dumps(hello))
            return heard(socket, "refused")["refused"]

    with connect(f"{address}/{code}") as one, connect(f"{address}/{code}") as two:
        for socket, secret in ((one, secrets[0]), (two, secrets[1])):
            socket.send(json.dumps({"student": secret}))
            heard(socket, "turn")
        assert refused({"student": secrets[2]}) == "full"
        one.send(json.dumps({"vote": 0, "lesson": LESSON, "step": 0}))
        assert heard(one, "took")["took"] is None  # it has not begun
    assert refused({"teacher": secrets[0]}) == "unknown"
    assert refused({"student": "short"}) == "unknown"
    assert refused({}) == "unknown"
    for _ in range(FROM_ONE):
        operator.guesses.wrong("127.0.0.1")
    assert refused({"student": new_secret()}) == "slow"
    with connect(f"{address}/{code}") as known:  # who is in stays in
        known.send(json.dumps({"student": secrets[0]}))
        heard(known, "turn")
    with pytest.raises(ConnectionClosed), connect(f"{address}/{code}") as silent:
        silent.send(b"\x00")
        silent.recv(timeout=10)


def test_a_vote_outlives_a_lost_line_and_a_restart_and_is_seen_by_another_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "guesses", Guesses())
    other = Store(tmp_path / "classes.db")  # another replica's
    code, secret = other.start(LESSON)
    other.go(code, secret, step=0)
    mine, theirs = new_secret(), other.join(code, new_secret())
    vote = {"vote": 1, "lesson": LESSON, "step": 0}

    def started() -> Store:
        store = Store(tmp_path / "classes.db")
        monkeypatch.setattr(operator, "store", lambda: store)
        monkeypatch.setattr(line, "_lines", line._Lines())
        return store

    @contextlib.contextmanager
    def student(port: int) -> Iterator[ClientConnection]:
        with connect(f"ws://127.0.0.1:{port}/class/{code}") as socket:
            socket.send(json.dumps({"student": mine}))
            heard(socket, "turn")
            yield socket

    store = started()
    with contextlib.ExitStack() as lines, served() as port:
        lost = lines.enter_context(student(port))
        lost.send(json.dumps(vote))
        assert heard(lost, "took")["took"] == 1
        lost.socket.close()  # without a word, as when a phone goes out of reach
        back = lines.enter_context(student(port))
        back.send(json.dumps(vote | {"vote": 2}))
        assert heard(back, "took")["took"] == 2
        assert other.counts(code, LESSON, 0) == {2: 1}
    with pytest.raises(ConnectionClosed):
        back.recv(timeout=10)
    store.close()
    started()
    with served(port), connect(f"ws://127.0.0.1:{port}/class/{code}") as teacher:
        teacher.send(json.dumps({"teacher": secret}))
        assert heard(teacher, "counts")["counts"] == {"2": 1}  # nothing is lost
        with student(port) as again:
            again.send(json.dumps(vote))
            assert heard(again, "took")["took"] == 1
            assert other.vote(code, theirs, LESSON, 0, 0)  # a vote that came to the other replica
            while heard(teacher, "counts")["counts"] != {"0": 1, "1": 1}:
                pass
            other.reveal(code, secret)  # and so did the teacher's word
            heard(again, "turn")
            again.send(json.dumps(vote | {"vote": 0}))
            assert heard(again, "took")["took"] is None
    other.close()
