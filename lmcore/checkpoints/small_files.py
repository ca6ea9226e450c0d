"""The small files beside a model's weights: JSON and texts, read whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 24
"""The longest such file; an index of thousands of shards is smaller."""


def read_text(path: Path) -> str:
    """Return a file's text.

    Raises:
        ValueError: for a file that is missing, too long or no UTF-8, naming it.
    """
    return _read(path, "")


def read_json(path: Path) -> dict[str, Any]:
    """Return the table of fields that a file holds.

    Raises:
        ValueError: as `read_text`, and for one that is no JSON or no table.
    """
    try:
        values = json.loads(_read(path, " as JSON"))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path.name} cannot be read as JSON: {error}.") from None
    if not isinstance(values, dict):
        raise ValueError(f"{path.name} must be a table of fields, got {values!r:.60}.")
    return values


def _read(path: Path, form: str) -> str:
    try:
        if (size := path.stat().st_size) > MOST_BYTES:
            raise ValueError(f"{path.name} has {size:,} bytes; at most {MOST_BYTES:,} are read.")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(f"{path.name} is missing.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} cannot be read{form}: {error}.") from None
