"""The stages in the order of the pipeline: their names, titles and scripts."""

from __future__ import annotations

from pathlib import Path

from pages.common.text import _

_FOLDER = Path(__file__).parent.parent / "stages"


def titles() -> dict[str, str]:
    """Return the stages in order: a stage's name, which is its folder and its address, and its title."""
    return {
        "tokenization": _("Tokenization"),
        "embedding": _("Embedding lookup"),
        "position": _("Position encoding"),
        "blocks": _("Transformer blocks"),
        "logits": _("LM head and logits"),
        "sampling": _("Sampling"),
        "generation": _("Generation"),
        "compare": _("Compare"),
        "tying": _("Weight tying"),
        "training": _("Joint training"),
    }


def names() -> list[str]:
    """Return the name of every page, those outside the pipeline too, sorted."""
    return sorted(path.parent.name for path in _FOLDER.glob("*/page.py"))


def script(name: str) -> Path:
    """Return the script of a page.

    >>> script("sampling").relative_to(_FOLDER).as_posix()
    'sampling/page.py'
    """
    return _FOLDER / name / "page.py"
