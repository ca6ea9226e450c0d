"""Writing a lesson as TOML, a step's tables in the order of `ORDER`; the standard library only reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

ORDER = (
    *("page", "minutes", "state", "reveal", "say", "question", "purpose", "choices"),
    *("measure", "beside", "explain", "ask"),
)
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def as_toml(lesson: Mapping[str, Any]) -> str:
    """Return a lesson's tables as a file.

    >>> print(as_toml({"title": "T", "steps": [{"page": "blocks", "state": {"blocks.view": "mlp"}}]}), end="")
    title = "T"
    <BLANKLINE>
    [[steps]]
    page = "blocks"
    state = { "blocks.view" = "mlp" }
    """
    lines = [f"{_key(name)} = {_value(value)}" for name, value in lesson.items() if name != "steps"]
    for step in lesson.get("steps", ()):
        lines += ["", "[[steps]]"]
        lines += [f"{_key(name)} = {_value(step[name])}" for name in sorted(step, key=_place)]
    return "\n".join(lines) + "\n"


def _place(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(name)} = {_value(each)}' for name, each in value.items())} }}" if value else "{}"
    if isinstance(value, (list, tuple)):
        if any(isinstance(each, Mapping) for each in value):
            return "[\n" + "".join(f"  {_value(each)},\n" for each in value) + "]"
        return f"[{', '.join(map(_value, value))}]"
    return repr(value) if isinstance(value, (int, float)) else _text(str(value))
