"""The fields of another program's config: each is read and its type checked, or refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Fields:
    """A config's fields, of which none may be left unread: what is not understood could change the numbers.

    Args:
        values: the fields.
        harmless: names that change no number of a forward pass.

    >>> fields = Fields({"n_head": 4, "use_cache": True, "clip_qkv": 8.0}, harmless=("use_cache",))
    >>> fields.whole("n_head")
    4
    >>> fields.finish()
    Traceback (most recent call last):
    ...
    ValueError: clip_qkv = 8.0 is not understood.
    """

    def __init__(self, values: Mapping[str, Any], harmless: Iterable[str] = ()) -> None:
        self._values = values
        self._read = set(harmless)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field of any type; an absent one and null are `default`."""
        self._read.add(name)
        value = self._values.get(name)
        return default if value is None else value

    def whole(self, name: str, default: int | None = None) -> int:
        """Return a whole number of at least 1.

        Raises:
            ValueError: when it is missing without a default, or no such number.
        """
        value = self.get(name, default)
        if value is None:
            raise ValueError(f"{name} is missing.")
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
        return value

    def optional_whole(self, name: str) -> int | None:
        """Return a whole number of at least 1, or None where the field is absent."""
        return None if self.get(name) is None else self.whole(name)

    def real(self, name: str, default: float | None = None) -> float:
        """Return a number above 0; see `whole`."""
        value = self.get(name, default)
        if value is None:
            raise ValueError(f"{name} is missing.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
            raise ValueError(f"{name} must be a finite number above 0, got {value!r}.")
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

    def finish(self) -> None:
        """Refuse the first field that nobody read; one that is null, false or empty asks for nothing.

        Raises:
            ValueError: naming the field and its value.
        """
        for name, value in self._values.items():
            if name not in self._read and value is not None and value is not False and value not in ("", [], {}):
                raise ValueError(f"{name} = {value!r:.80} is not understood.")
