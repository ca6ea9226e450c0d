"""The words on screen: which language a session reads, and its translations.

Write English in the code and wrap it: `_("Layer")`, `ngettext("{n} token", "{n} tokens", n).format(n=n)`.
Never put values into the string before it is looked up; use `.format(...)` afterwards. Translations are the
.po files of `pages/locale`; `python -m pages.locale` adds new strings to them and drops stale ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TypeVar

import streamlit as st

from pages.common import streamlit_private
from pages.common.escape import markdown_literal, plotly_literal, readable, visible
from pages.locale.catalogues import translations
from pages.locale.languages import ENGLISH, greeting

__all__ = [
    "_",
    "browser_language",
    "in_bits",
    "in_language",
    "in_nats",
    "language",
    "markdown_literal",
    "ngettext",
    "outside_a_session",
    "plotly_literal",
    "readable",
    "visible",
]

T = TypeVar("T")
outside_a_session = ContextVar("the language of a terminal", default="en")


def browser_language() -> str:
    """Return the code of the language to greet a new visitor in."""
    return greeting(str(st.context.locale or ""))


def language() -> str:
    """Return the code of the current session's language, one of `LANGUAGES`."""
    if not streamlit_private.in_a_session():
        return outside_a_session.get()
    return st.session_state.get("lang") or "en"  # a switch without a choice, as a browser may send it, is None


def in_language(by_language: Mapping[str, T]) -> T:
    """Return what is said in the current session's language, in English where it has nothing of its own."""
    return by_language.get(language(), by_language[ENGLISH])


def _(message: str) -> str:
    """Return `message` in the current session's language."""
    return translations(language()).gettext(message)


def ngettext(singular: str, plural: str, n: int) -> str:
    """Return the form of a message that goes with the number `n`, in the current session's language."""
    return translations(language()).ngettext(singular, plural, n)


def in_bits(value: float) -> str:
    """Return an amount of information in bits, three decimals, in the current session's language.

    >>> in_bits(1.5)
    '1.500 bits'
    """
    return _("{n} bits").format(n=f"{value:.3f}")


def in_nats(value: float) -> str:
    """Return a loss or a surprisal in nats, three decimals, in the current session's language.

    >>> in_nats(1.5)
    '1.500 nats'
    """
    return _("{n} nats").format(n=f"{value:.3f}")
