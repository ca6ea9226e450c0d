"""Classes, students and votes in SQLite: one file for all replicas of a machine, or memory."""

from __future__ import annotations

import contextlib
import hmac
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pages.classes.codes import hashed, new_code, new_name, new_secret
from pages.classes.records import LOBBY, Class, Full, NoClass, NotTeacher, Pace, Vote

HERE = 50.0  # seconds since a student was last seen, after which nobody counts on them
IDLE_DAYS = 60  # without its teacher, after which a class ends by itself
KEPT_DAYS = 7  # that an ended class is kept
MOST_CLASSES = 1000
_MOST_TIMES = 5  # as many students of one class, over all its time, as the server has at once
_DAY = 86400.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS classes(
  code TEXT PRIMARY KEY, secret BLOB NOT NULL, lesson TEXT NOT NULL, step INTEGER NOT NULL, pace TEXT NOT NULL,
  turn INTEGER NOT NULL DEFAULT 0, marks INTEGER NOT NULL DEFAULT 0,
  used REAL NOT NULL, ended REAL);
CREATE TABLE IF NOT EXISTS revealed(
  code TEXT NOT NULL REFERENCES classes ON DELETE CASCADE, lesson TEXT NOT NULL, step INTEGER NOT NULL,
  PRIMARY KEY(code, lesson, step));
CREATE TABLE IF NOT EXISTS students(
  code TEXT NOT NULL REFERENCES classes ON DELETE CASCADE, name TEXT NOT NULL, secret BLOB NOT NULL,
  seen REAL NOT NULL, PRIMARY KEY(code, name), UNIQUE(code, secret));
CREATE INDEX IF NOT EXISTS students_seen ON students(seen);
CREATE TABLE IF NOT EXISTS votes(
  code TEXT NOT NULL, name TEXT NOT NULL, lesson TEXT NOT NULL, step INTEGER NOT NULL, choice INTEGER NOT NULL,
  settled INTEGER NOT NULL, time REAL NOT NULL, PRIMARY KEY(code, lesson, step, name),
  FOREIGN KEY(code, name) REFERENCES students ON DELETE CASCADE);
"""


class Store:
    """All classes of a server; threads and processes may share it.

    Args:
        path: the file; None keeps them in memory until the store is closed.
        room: how many students, of all classes together, can be here at the same time.
        clock: gives the time in seconds since 1970.

    Raises:
        sqlite3.Error, OSError: when the file cannot be used.
    """

    def __init__(self, path: Path | None = None, room: int = 120, clock: Callable[[], float] = time.time) -> None:
        self._lock, self._clock, self.room = threading.RLock(), clock, room
        where = ":memory:" if path is None else str(path)
        self._base = sqlite3.connect(where, timeout=5, isolation_level=None, check_same_thread=False)
        self._base.execute("PRAGMA foreign_keys = ON")
        self._base.execute("PRAGMA journal_mode = WAL")  # who reads does not wait for who writes
        self._base.execute("PRAGMA synchronous = NORMAL")  # a program that ends loses nothing
        self._base.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._base.close()

    def start(self, lesson: str) -> tuple[str, str]:
        """Open a class at a lesson; return its code and its teacher's secret.

        Raises:
            Full: when there are too many classes.
        """
        code, secret = new_code(), new_secret()
        with self._writing():
            if self._one("SELECT count(*) FROM classes") >= MOST_CLASSES:
                raise Full
            self._base.execute(
                "INSERT INTO classes(code, secret, lesson, step, pace, used) VALUES(?, ?, ?, ?, 'teacher', ?)",
                (code, hashed(secret), lesson, LOBBY, self._clock()),
            )
        return code, secret

    def find(self, code: str) -> Class | None:
        """Return a class by its code, also one that has ended; None when there is none."""
        with self._lock:
            row = self._base.execute(
                "SELECT lesson, step, pace, turn, ended FROM classes WHERE code = ?", (code,)
            ).fetchone()
            if row is None:
                return None
            lesson, step, pace, turn, ended = row
            shown = self._base.execute("SELECT step FROM revealed WHERE code = ? AND lesson = ?", (code, lesson))
            return Class(code, lesson, step, pace, turn, frozenset(each for (each,) in shown), ended is not None)

    def teaches(self, code: str, secret: str) -> bool:
        """Return whether a secret is that of the class's teacher."""
        with self._lock:
            row = self._base.execute("SELECT secret FROM classes WHERE code = ?", (code,)).fetchone()
        return row is not None and hmac.compare_digest(row[0], hashed(secret))

    def go(
        self, code: str, secret: str, *, lesson: str | None = None, step: int | None = None, pace: Pace | None = None
    ) -> None:
        """Take a class to a step, to another lesson (at its first step), or to another pace.

        Raises:
            NotTeacher, NoClass: when this may not be.
        """
        with self._teaching(code, secret):
            if lesson is not None:
                self._base.execute("UPDATE classes SET lesson = ?, step = 0 WHERE code = ?", (lesson, code))
            if step is not None:
                self._base.execute("UPDATE classes SET step = ? WHERE code = ?", (step, code))
            if pace is not None:
                self._base.execute("UPDATE classes SET pace = ? WHERE code = ?", (pace, code))

    def reveal(self, code: str, secret: str) -> None:
        """Show the answer of the class's step: votes on it can no longer be changed.

        Raises:
            NotTeacher, NoClass: when this may not be.
        """
        with self._teaching(code, secret):
            self._base.execute(
                "INSERT OR IGNORE INTO revealed SELECT code, lesson, step FROM classes WHERE code = ?", (code,)
            )

    def end(self, code: str, secret: str) -> None:
        """End a class: nobody can join or vote any more; it is deleted after `KEPT_DAYS`.

        Raises:
            NotTeacher, NoClass: when this may not be.
        """
        with self._teaching(code, secret):
            self._base.execute("UPDATE classes SET ended = ? WHERE code = ?", (self._clock(), code))

    def join(self, code: str, secret: str) -> str:
        """Return the random name of a student of a class, a new one for a secret that it does not know.

        Raises:
            NoClass: there is none, or it has ended and the student was not in it.
            Full: the student is new, and there is no room.
        """
        with self._lock:  # almost always the student is known, and nothing is written
            known = self._base.execute(
                "SELECT name FROM students WHERE code = ? AND secret = ?", (code, hashed(secret))
            )
            if (row := known.fetchone()) is not None:
                return row[0]
        with self._writing():
            if self._one("SELECT count(*) FROM classes WHERE code = ? AND ended IS NULL", code) == 0:
                raise NoClass
            taken = {name for (name,) in self._base.execute("SELECT name FROM students WHERE code = ?", (code,))}
            since = self._clock() - HERE
            if self._one("SELECT count(*) FROM students WHERE seen > ?", since) >= self.room:
                raise Full
            if len(taken) >= _MOST_TIMES * self.room:  # who is gone and never answered leaves nothing behind
                gone = self._base.execute(
                    "DELETE FROM students WHERE code = ? AND seen <= ? "
                    "AND name NOT IN (SELECT name FROM votes WHERE code = ?)",
                    (code, since, code),
                )
                if gone.rowcount == 0:
                    raise Full
            name = next(name for name in iter(new_name, None) if name not in taken)
            self._base.execute(
                "INSERT OR IGNORE INTO students VALUES(?, ?, ?, ?)", (code, name, hashed(secret), self._clock())
            )
            self._mark(code)
            return str(self._one("SELECT name FROM students WHERE code = ? AND secret = ?", code, hashed(secret)))

    def knows(self, code: str, secret: str) -> bool:
        """Return whether a secret is that of a student of the class."""
        with self._lock:
            return bool(self._one("SELECT count(*) FROM students WHERE code = ? AND secret = ?", code, hashed(secret)))

    def seen(self, students: Iterable[tuple[str, str]]) -> None:
        """Note that students, each a code and a name, are here."""
        with self._writing():
            for code, name in students:
                before = self._one("SELECT seen FROM students WHERE code = ? AND name = ?", code, name)
                self._base.execute(
                    "UPDATE students SET seen = ? WHERE code = ? AND name = ?", (self._clock(), code, name)
                )
                if before is not None and before <= self._clock() - HERE:
                    self._mark(code)

    def left(self, code: str, name: str) -> None:
        """Note that a student is gone; their votes stay."""
        with self._writing():
            self._base.execute("UPDATE students SET seen = 0 WHERE code = ? AND name = ?", (code, name))
            self._mark(code)

    def here(self, code: str) -> int:
        """Return how many students of a class are here."""
        with self._lock:
            return int(
                self._one("SELECT count(*) FROM students WHERE code = ? AND seen > ?", code, self._clock() - HERE)
            )

    def vote(self, code: str, name: str, lesson: str, step: int, choice: int) -> bool:
        """Take a student's answer in place of an earlier one; return whether it counts.

        It does not where the answer was shown, the class has ended or is at another lesson, or, at the teacher's
        pace, at another step.
        """
        with self._writing():
            room = self.find(code)
            if room is None or room.ended or room.lesson != lesson or step in room.revealed:
                return False
            if room.pace == "teacher" and room.step != step:
                return False
            done = self._base.execute(
                "INSERT INTO votes SELECT code, name, ?, ?, ?, 0, ? FROM students WHERE code = ? AND name = ? "
                "ON CONFLICT(code, lesson, step, name) DO UPDATE SET choice = excluded.choice, time = excluded.time "
                "WHERE NOT settled",
                (lesson, step, choice, self._clock(), code, name),
            )
            if done.rowcount == 1:
                self._mark(code)
            return done.rowcount == 1

    def settle(self, code: str, name: str, lesson: str, step: int) -> bool:
        """At a student's own pace: let the answer count as it is, for its question is shown to them now."""
        with self._writing():
            room = self.find(code)
            if room is None or room.ended or room.pace != "own":
                return False
            done = self._base.execute(
                "UPDATE votes SET settled = 1 WHERE code = ? AND name = ? AND lesson = ? AND step = ?",
                (code, name, lesson, step),
            )
            return done.rowcount == 1

    def counts(self, code: str, lesson: str, step: int) -> dict[int, int]:
        """Return how many students chose each choice of a question."""
        with self._lock:
            rows = self._base.execute(
                "SELECT choice, count(*) FROM votes WHERE code = ? AND lesson = ? AND step = ? GROUP BY choice",
                (code, lesson, step),
            )
            return dict(rows.fetchall())

    def votes(self, code: str, student: str | None = None) -> list[Vote]:
        """Return every vote of a class, or of one student, by lesson, step and name."""
        with self._lock:
            rows = self._base.execute(
                "SELECT name, lesson, step, choice, settled FROM votes WHERE code = ? AND (? IS NULL OR name = ?) "
                "ORDER BY lesson, step, name",
                (code, student, student),
            )
            return [Vote(name, lesson, step, choice, bool(settled)) for name, lesson, step, choice, settled in rows]

    def marks(self, codes: Iterable[str]) -> dict[str, tuple[int, int]]:
        """Return, of each of these classes, its turn, and a number that grows with each vote and each who comes."""
        wanted = list(codes)
        with self._lock:
            rows = self._base.execute(
                f"SELECT code, turn, marks FROM classes WHERE code IN ({','.join('?' * len(wanted))})", wanted
            )
            return {code: (turn, marks) for code, turn, marks in rows}

    def forget(self) -> None:
        """End the classes without a teacher, and delete those that ended long ago."""
        now = self._clock()
        with self._writing():
            self._base.execute(
                "UPDATE classes SET ended = ?, turn = turn + 1 WHERE ended IS NULL AND used < ?",
                (now, now - IDLE_DAYS * _DAY),
            )
            self._base.execute("DELETE FROM classes WHERE ended < ?", (now - KEPT_DAYS * _DAY,))
            self._base.execute(  # opened, never begun, and nobody came
                "DELETE FROM classes WHERE step = ? AND used < ? AND code NOT IN (SELECT code FROM students)",
                (LOBBY, now - KEPT_DAYS * _DAY),
            )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")

    @contextlib.contextmanager
    def _teaching(self, code: str, secret: str) -> Iterator[None]:
        with self._writing():
            if not self.teaches(code, secret):
                raise NotTeacher
            if self._one("SELECT ended FROM classes WHERE code = ?", code) is not None:
                raise NoClass
            yield
            self._base.execute("UPDATE classes SET turn = turn + 1, used = ? WHERE code = ?", (self._clock(), code))

    def _mark(self, code: str) -> None:
        self._base.execute("UPDATE classes SET marks = marks + 1 WHERE code = ?", (code,))

    def _one(self, query: str, *values: object) -> Any:
        row = self._base.execute(query, values).fetchone()
        return None if row is None else row[0]
