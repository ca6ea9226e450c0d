"""Classes in SQLite: who may do what, votes that change until they are shown, restarts, threads, two processes."""

import multiprocessing
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.classes.codes import ALPHABET, LENGTH, as_shown, as_typed, new_code, new_secret
from pages.classes.records import LOBBY, Full, NoClass, NotTeacher
from pages.classes.store import HERE, IDLE_DAYS, KEPT_DAYS, Store

DAY = 86400.0


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Iterator[Store]:
    store = Store(None, room=3, clock=clock)
    yield store
    store.close()


def test_codes_are_hard_to_guess_and_easy_to_type() -> None:
    assert len(ALPHABET) ** LENGTH > 2**39
    assert not set(ALPHABET) & set("01OILU")
    codes = {new_code() for _ in range(2000)}
    assert len(codes) == 2000
    assert set("".join(codes)) == set(ALPHABET)
    code = codes.pop()
    assert as_typed(f" {as_shown(code).lower()} ") == code


def test_a_class_goes_from_the_lobby_to_its_end(store: Store) -> None:
    code, secret = store.start("tour")
    begun = store.find(code)
    assert begun is not None
    assert (begun.lesson, begun.step, begun.pace, begun.ended) == ("tour", LOBBY, "teacher", False)
    name = store.join(code, "s" * 32)
    assert not store.vote(code, name, "tour", 0, 1)  # it has not begun
    store.go(code, secret, step=0)
    assert store.vote(code, name, "tour", 0, 1)
    assert store.vote(code, name, "tour", 0, 2)  # changed: counted once
    assert store.counts(code, "tour", 0) == {2: 1}
    assert not store.vote(code, name, "tour", 1, 0)  # the teacher is not there yet
    assert not store.vote(code, name, "other", 0, 0)
    store.reveal(code, secret)
    shown = store.find(code)
    assert shown is not None and shown.revealed == {0} and shown.turn > begun.turn
    assert not store.vote(code, name, "tour", 0, 0)
    assert store.counts(code, "tour", 0) == {2: 1}
    store.go(code, secret, lesson="after")
    moved = store.find(code)
    assert moved is not None and (moved.lesson, moved.step, moved.revealed) == ("after", 0, frozenset())
    store.end(code, secret)
    ended = store.find(code)
    assert ended is not None and ended.ended
    assert not store.vote(code, name, "after", 0, 0)
    assert store.join(code, "s" * 32) == name  # who was in it sees that it has ended
    with pytest.raises(NoClass):
        store.join(code, "t" * 32)
    with pytest.raises(NoClass):
        store.go(code, secret, step=3)
    assert [(vote.name, vote.choice) for vote in store.votes(code)] == [(name, 2)]


def test_only_the_teachers_secret_leads_a_class(store: Store) -> None:
    code, secret = store.start("tour")
    other, others_secret = store.start("tour")
    student = new_secret()
    name = store.join(code, student)
    for wrong in (student, others_secret, name, code, ""):
        assert not store.teaches(code, wrong)
        for forbidden in (
            lambda wrong=wrong: store.go(code, wrong, step=0),
            lambda wrong=wrong: store.reveal(code, wrong),
            lambda wrong=wrong: store.end(code, wrong),
        ):
            with pytest.raises(NotTeacher):
                forbidden()
    assert store.teaches(code, secret) and not store.teaches("NOSUCH", secret)
    found = store.find(code)
    assert found is not None and (found.step, found.turn, found.ended) == (LOBBY, 0, False)
    assert not store.knows(other, student)
    store.go(other, others_secret, step=0)
    assert not store.vote(other, name, "tour", 0, 0)  # a name of another class


def test_secrets_are_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "classes.db"
    store = Store(path)
    code, secret = store.start("tour")
    student = new_secret()
    store.join(code, student)
    store.close()
    content = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert code.encode() in content
    assert secret.encode() not in content and student.encode() not in content


def test_at_their_own_pace_an_answer_that_was_shown_stays(store: Store) -> None:
    code, secret = store.start("tour")
    store.go(code, secret, step=0, pace="own")
    name = store.join(code, "s" * 32)
    assert store.vote(code, name, "tour", 4, 1)
    assert not store.settle(code, name, "tour", 5)  # without an answer none is shown
    assert store.settle(code, name, "tour", 4)
    assert not store.vote(code, name, "tour", 4, 0)
    (vote,) = store.votes(code, name)
    assert (vote.choice, vote.settled) == (1, True)
    store.go(code, secret, pace="teacher")
    assert not store.settle(code, name, "tour", 0)


def test_a_full_server_keeps_those_it_has(store: Store, clock: Clock) -> None:
    code, _secret = store.start("tour")
    other, _ = store.start("tour")
    names = [store.join(code, f"{n:032}") for n in range(2)] + [store.join(other, f"{2:032}")]
    for full in (code, other):
        with pytest.raises(Full):
            store.join(full, f"{3:032}")
    assert store.join(code, f"{0:032}") == names[0]
    assert store.here(code) == 2
    store.left(code, names[0])
    assert store.here(code) == 1
    fourth = store.join(code, f"{3:032}")  # there is room again
    assert store.join(code, f"{0:032}") == names[0]  # and who comes back is kept
    clock.now += HERE + 1
    store.seen([(code, fourth)])
    assert (store.here(code), store.here(other)) == (1, 0)


def test_ended_and_forgotten_classes_are_deleted(store: Store, clock: Clock) -> None:
    ended, secret = store.start("tour")
    store.go(ended, secret, step=0)
    store.vote(ended, store.join(ended, "s" * 32), "tour", 0, 0)
    store.reveal(ended, secret)
    store.end(ended, secret)
    idle, _ = store.start("tour")
    store.join(idle, "t" * 32)
    unused, _ = store.start("tour")  # to which nobody came
    clock.now += KEPT_DAYS * DAY - 1
    store.forget()
    assert store.find(ended) is not None and len(store.votes(ended)) == 1
    clock.now += 2
    store.forget()
    assert store.find(unused) is None
    assert store.find(ended) is None and store.votes(ended) == [] and not store.knows(ended, "s" * 32)
    found = store.find(idle)
    assert found is not None and not found.ended
    clock.now += IDLE_DAYS * DAY
    store.forget()
    found = store.find(idle)
    assert found is not None and found.ended
    clock.now += KEPT_DAYS * DAY + 1
    store.forget()
    assert store.find(idle) is None


def test_a_restart_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "classes.db"
    store = Store(path)
    code, secret = store.start("tour")
    store.go(code, secret, step=2)
    name = store.join(code, "s" * 32)
    store.vote(code, name, "tour", 2, 1)
    before = store.find(code)
    del store  # not closed, as when a program is killed
    again = Store(path)
    assert again.find(code) == before
    assert again.teaches(code, secret) and again.join(code, "s" * 32) == name
    assert again.counts(code, "tour", 2) == {1: 1}
    again.close()
    with pytest.raises(sqlite3.Error):
        Store(tmp_path / "no-such-folder" / "classes.db")


def vote_for(path: Path, code: str, first: int) -> None:
    """In another process: join and vote, each student twice."""
    store = Store(path)
    for n in range(first, first + 20):
        name = store.join(code, f"{n:032}")
        assert store.vote(code, name, "tour", 0, 0)
        assert store.vote(code, name, "tour", 0, n % 3)
    store.close()


def test_two_processes_and_many_threads_lose_no_vote(tmp_path: Path) -> None:
    path = tmp_path / "classes.db"
    store = Store(path)
    code, secret = store.start("tour")
    store.go(code, secret, step=0)
    context = multiprocessing.get_context("fork")  # a process that imports everything anew takes seconds
    processes = [context.Process(target=vote_for, args=(path, code, first)) for first in (0, 20)]
    threads = [threading.Thread(target=vote_for, args=(path, code, first)) for first in (40, 60)]

    def same() -> None:
        for n in range(80, 100):
            store.vote(code, store.join(code, f"{n:032}"), "tour", 0, n % 3)

    threads += [threading.Thread(target=same) for _ in range(2)]  # of one connection, the same students twice
    workers: list[threading.Thread | multiprocessing.process.BaseProcess] = [*processes, *threads]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert store.counts(code, "tour", 0) == {choice: sum(n % 3 == choice for n in range(100)) for choice in range(3)}
    names = [vote.name for vote in store.votes(code)]
    assert len(names) == len(set(names)) == 100
    store.close()


def test_who_watches_sees_that_something_changed(store: Store) -> None:
    code, secret = store.start("tour")
    other, _ = store.start("tour")
    seen = [store.marks([code, other])]

    def changed() -> bool:
        seen.append(store.marks([code, other]))
        assert seen[-1][other] == seen[0][other]
        return seen[-1][code] != seen[-2][code]

    store.go(code, secret, step=0)
    assert changed()
    name = store.join(code, "s" * 32)
    assert changed()
    store.vote(code, name, "tour", 0, 1)
    assert changed()
    store.vote(code, name, "tour", 7, 1)  # does not count
    assert not changed()
    store.left(code, name)
    assert changed()
    store.seen([(code, name)])
    assert changed()
    store.seen([(code, name)])  # still here
    assert not changed()
    assert store.marks(["NOSUCH"]) == store.marks([]) == {}
