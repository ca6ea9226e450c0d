"""The fields of another program's config: each is read and its type checked, refused by name, or noted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
MOST_LAYERS = 10_000
"""Lists of layers are made from a config alone, before the tensors say how many there are."""


class Fields:
    """A config's fields. What is not read must change no number.

    A field that nobody reads is refused when its meaning is known to change the numbers, unless its value is one that
    asks for nothing. One whose meaning nobody knows is let through: files carry notes of many programs, and
    `finish` returns them for the reader to see.

    Args:
        values: the fields.
        meanings: fields known to change the numbers -> the values that ask for nothing; null always does.
        harmless: names known to change no number of a forward pass.

    >>> fields = Fields({"n_head": 4, "clip_qkv": None, "my_note": 1}, meanings={"clip_qkv": ()})
    >>> fields.whole("n_head")
    4
    >>> fields.finish()
    {'my_note': 1}
    >>> Fields({"clip_qkv": 8.0}, meanings={"clip_qkv": ()}).finish()
    Traceback (most recent call last):
    ...
    ValueError: clip_qkv = 8.0 would change the numbers and is not supported.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        meanings: Mapping[str, tuple[Any, ...]] | None = None,
        harmless: Iterable[str] = (),
    ) -> None:
        self._values = values
        self._meanings = meanings or {}
        self._harmless = frozenset(harmless)
        self._read: set[str] = set()
        self._within: dict[str, Fields] = {}

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field of any type; an absent one and null are `default`."""
        self._read.add(name)
        value = self._values.get(name)
        return default if value is None else value

    def within(self, name: str, over: Mapping[str, Any] | None = None) -> Fields:
        """Return the fields of a table, an empty one where it is absent; they are finished with these.

        Args:
            name: the table's.
            over: fields that replace the table's own.

        Raises:
            ValueError: for a field that is no table.
        """
        values = self.get(name, {})
        if not isinstance(values, dict):
            raise ValueError(f"{name} must be a table, got {values!r:.80}.")
        self._within[name] = Fields(values | dict(over or {}), self._meanings, self._harmless)
        return self._within[name]

    def fill(self, defaults: Mapping[str, Any], null: bool = False) -> None:
        """Give absent fields, and if `null` those that are null, a value."""
        kept = {name: value for name, value in self._values.items() if value is not None or not null}
        self._values = {**defaults, **kept}

    def whole(self, name: str, default: int | None = None, most: int | None = None) -> int:
        """Return a whole number of at least 1.

        Raises:
            ValueError: when it is missing without a default, no such number, or more than the most.
        """
        value = self.get(name, default)
        if value is None:
            raise ValueError(f"{name} is missing.")
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
        if most is not None and value > most:
            raise ValueError(f"{name} = {value:,} is more than the {most:,} that are read.")
        return value

    def optional_whole(self, name: str) -> int | None:
        """Return a whole number of at least 1, or None where the field is absent."""
        return None if self.get(name) is None else self.whole(name)

    def real(self, name: str, default: float | None = None) -> float:
        """Return a number above 0; see `whole`."""
        value = self.get(name, default)
        if value is None:
            raise ValueError(f"{name} is missing.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
            raise ValueError(f"{name} must be a finite number above 0, got {value!r:.80}.")
        return float(value)

    def switch(self, name: str, default: bool) -> bool:
        """Return True or False; see `whole`."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise ValueError(f"{name} must be true or false, got {value!r}.")
        return value

    def one_of(self, name: str, known: Mapping[str, T], default: str) -> T:
        """Return what a word stands for.

        Raises:
            ValueError: for a word that is not known, naming those that are.
        """
        value = self.get(name, default)
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"{name} = {value!r} is not supported; it must be {' or '.join(map(repr, known))}.")
        return known[value]

    def require(self, name: str, *supported: Any) -> None:
        """Read a field that may only be absent or one of these values.

        Raises:
            ValueError: for another value.
        """
        value = self.get(name)
        if value is not None and value not in supported:
            raise ValueError(f"{name} = {value!r} is not supported; it must be {' or '.join(map(repr, supported))}.")

    def finish(self) -> dict[str, Any]:
        """Return the fields whose meaning nobody knows, those of tables by table.field.

        Raises:
            ValueError: for one that nobody read and that would change the numbers, naming it and its value.
        """
        unknown: dict[str, Any] = {}
        for name, value in self._values.items():
            if name in self._read or name in self._harmless or value is None:
                continue
            if name not in self._meanings:
                unknown[name] = value
            elif value not in self._meanings[name]:
                raise ValueError(f"{name} = {value!r:.80} would change the numbers and is not supported.")
        for table, fields in self._within.items():
            unknown |= {f"{table}.{name}": value for name, value in fields.finish().items()}
        return unknown
