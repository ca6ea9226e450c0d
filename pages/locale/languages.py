"""The languages of the pages. English is what the code says; the others have catalogues."""

from __future__ import annotations

from dataclasses import dataclass

ENGLISH = "en"


@dataclass(frozen=True)
class Language:
    """A language that readers can choose.

    Attributes:
        title: what it calls itself.
        tag: its BCP 47 tag, which browsers and screen readers are told.
        folder: its folder in `pages/locale`; None for English.
    """

    title: str
    tag: str
    folder: str | None = None


LANGUAGES = {
    ENGLISH: Language("English", "en"),
    "zh": Language("简体中文", "zh-CN", "zh_CN"),
}
"""By the code that links have in `lang`, and files of lessons in their texts."""


def greeting(asked: str) -> str:
    """Return the code of the language to greet a visitor in.

    Args:
        asked: what the browser asks for, as `navigator.language` or the header Accept-Language says it.

    >>> greeting("zh-TW,en;q=0.8"), greeting("pt-BR")
    ('zh', 'en')
    """
    return next((code for code in LANGUAGES if asked.lower().startswith(code)), ENGLISH)
