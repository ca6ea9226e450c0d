"""What the operator says of classes, and the one store of this server."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from pages.classes.guesses import Guesses
from pages.classes.store import Store

FILE_VARIABLE = "GLASS_BOX_LM_CLASSES"
"""The environment variable that names the SQLite file of classes; without it they are in memory."""

STUDENTS_VARIABLE = "GLASS_BOX_LM_STUDENTS"
"""The environment variable that says how many students can be here at the same time."""

STUDENTS = 120

guesses = Guesses()


@cache
def store() -> Store:
    """Return the classes of this server.

    Raises:
        sqlite3.Error, OSError: when the operator's file cannot be used.
        ValueError: when the number of students is none.
    """
    path = os.environ.get(FILE_VARIABLE)
    return Store(Path(path) if path else None, most_students())


def is_kept() -> bool:
    """Return whether classes outlive the server."""
    return bool(os.environ.get(FILE_VARIABLE))


def most_students() -> int:
    """Return how many students can be here at the same time.

    Raises:
        ValueError: when the environment variable is no whole number of at least 1.
    """
    given = os.environ.get(STUDENTS_VARIABLE, str(STUDENTS))
    if not given.isdecimal() or int(given) < 1:
        raise ValueError(f"{STUDENTS_VARIABLE} must be a whole number of at least 1, such as 60, got {given!r}.")
    return int(given)
