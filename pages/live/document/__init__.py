"""What concerns the browser's document as a whole: the language it is in, and text that is no Unicode."""

from __future__ import annotations

from pages.common.text import _, language
from pages.live.part import part
from pages.locale.languages import LANGUAGES

_HTML = '<div class="said" role="status"></div>'


def document() -> None:
    """Say the language of the page, and keep halves of characters out of every field, which would stop the session."""
    part("document", _HTML)(
        key="explorer_document",
        data={
            "language": LANGUAGES[language()].tag,
            "replaced": _("Half a character (a lone surrogate) is no text and was replaced by \ufffd."),
        },
        height="content",
    )
