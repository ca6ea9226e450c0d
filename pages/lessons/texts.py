"""A text of a lesson, in one language or several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Text:
    """A text in one language or several, by their codes; in another one the first is shown."""

    by_language: Mapping[str, str]

    def in_language(self, code: str) -> str:
        """Return the text in a language, or in the first that there is."""
        return self.by_language.get(code) or next(iter(self.by_language.values()))
