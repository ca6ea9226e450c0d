"""What people get wrong about language models: one list of names, for the wrong choices of all lessons."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pages.lessons.texts import Text


@dataclass(frozen=True)
class Misconception:
    """What somebody may believe, and what a teacher can answer."""

    name: str
    belief: Text
    answer: Text


@cache
def misconceptions() -> dict[str, Misconception]:
    """Return the list of `misconceptions.toml` by name."""
    given = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {name: Misconception(name, Text(texts["belief"]), Text(texts["answer"])) for name, texts in given.items()}
