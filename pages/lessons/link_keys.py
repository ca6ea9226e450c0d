"""Which values a page's address may hold: a lesson that misspells one would show another page than it means."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from lmcore.sampling.registry import all_fields
from pages.common.former_names import key_today, value_today

_PAGES = Path(__file__).parent.parent
_SHARED = ("common", "live/sampling_lab")  # whose values stand in the address of more than one page
_VIEW = ".view"


def unknown(page: str, name: str, value: object) -> bool:
    """Return whether a page's code has no such name, or, for one of its views, no such value.

    Args:
        page: the page's folder in `pages/stages`.
        name: of a value in the address, such as "temperature" or "logits.view".
        value: what a lesson sets it to.
    """
    if name in all_fields():
        return False
    name = key_today(name)
    value = value_today(name, value) if isinstance(value, str) else value
    known = _said_in(f"stages/{page}")
    return name not in known | _said_in(*_SHARED) or (name.endswith(_VIEW) and value not in known)


@cache
def _said_in(*folders: str) -> frozenset[str]:
    """Every text that stands in the code of some folders: the names of values are among them."""
    files = (file for folder in folders for file in (_PAGES / folder).rglob("*.py"))
    return frozenset(
        node.value
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
