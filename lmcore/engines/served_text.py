"""A text for a server that a chat template wrote, the server's own or one that was typed here."""

from __future__ import annotations

from collections.abc import Sequence


class ServedText(str):
    """A text that a chat template wrote for a server to read; it equals no text that somebody typed.

    Its control strings are control tokens, and nothing is put in front of it.

    Attributes:
        ids: the server's own ids of it; None where nobody tells them.
        code: Python that gives it, which is how it is written in snippets.
    """

    ids: tuple[int, ...] | None
    code: str

    def __new__(cls, text: str, ids: Sequence[int] | None = None, code: str = "") -> ServedText:
        """Make one."""
        made = super().__new__(cls, text)
        made.ids, made.code = None if ids is None else tuple(ids), code
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ServedText) and str.__eq__(self, other) and self.ids == other.ids

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((str.__hash__(self), self.ids))

    def __repr__(self) -> str:
        return self.code or f"engine.written({str.__repr__(self)})"
