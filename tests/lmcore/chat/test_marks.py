"""Marked text: what happens to the text happens to the marks, and a template cannot tell it from plain text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmcore.chat.marks import MIXED, Marked, joined, marks_of

TEXT = st.text(alphabet="ab \n<>éß😊", max_size=12)
SOME = st.text(alphabet="ab \n", max_size=2)
OPERATIONS = {
    "strip": lambda text, some: text.strip(some or None),
    "lstrip": lambda text, some: text.lstrip(some or None),
    "rstrip": lambda text, some: text.rstrip(some or None),
    "slice": lambda text, some: text[len(some) : -2],
    "step": lambda text, some: text[::-2],
    "add": lambda text, some: text + some,
    "add on the left": lambda text, some: some + text,
    "times": lambda text, some: text * len(some),
    "split": lambda text, some: text.split(some or None),
    "split once": lambda text, some: text.split(some or None, 1),
    "rsplit once": lambda text, some: text.rsplit(some or None, 1),
    "lines": lambda text, some: text.splitlines(),
    "lines with ends": lambda text, some: text.splitlines(True),
    "partition": lambda text, some: text.partition(some or "a"),
    "rpartition": lambda text, some: text.rpartition(some or "a"),
    "replace": lambda text, some: text.replace(some, "xy"),
    "replace once": lambda text, some: text.replace(some, "xy", 1),
    "prefix": lambda text, some: text.removeprefix(some),
    "suffix": lambda text, some: text.removesuffix(some),
    "join": lambda text, some: text.join([some, text, some]),
    "characters": lambda text, some: list(text),
    "title": lambda text, some: text.title(),
    "upper": lambda text, some: text.upper(),
    "capitalize": lambda text, some: text.capitalize(),
    "centre": lambda text, some: text.center(15),
}


@given(TEXT, SOME)
def test_every_operation_gives_the_plain_result_and_each_character_keeps_its_mark(text, some):
    marked = Marked(text, text)  # a character's mark is the character itself
    for name, operation in OPERATIONS.items():
        plain, found = operation(text, some), operation(marked, some)
        assert found == plain, name
        for piece in [found] if isinstance(found, str) else found:
            assert len(marks_of(piece)) == len(piece), name
            for character, mark in zip(piece, marks_of(piece), strict=True):
                assert mark == MIXED or mark.casefold() == character.casefold(), (name, piece)


@given(TEXT, TEXT)
def test_what_was_joined_keeps_its_parts(first, second):
    text = joined([Marked(first, "1" * len(first)), second, Marked(second, "2" * len(second))])
    assert text == first + second + second
    assert marks_of(text) == "1" * len(first) + MIXED * len(second) + "2" * len(second)


def test_errors_are_those_of_plain_text():
    text = Marked("a", "1")
    for wrong in (lambda x: x + 1, lambda x: 1 + x, lambda x: x["b"], lambda x: x(), lambda x: x * "b"):
        with pytest.raises(TypeError) as plain:
            wrong("a")
        with pytest.raises(TypeError) as marked:
            wrong(text)
        assert str(marked.value) == str(plain.value)
    assert {text: 1}["a"] == 1 and hash(text) == hash("a")
