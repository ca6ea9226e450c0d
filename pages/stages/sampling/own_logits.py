"""Read logits that a reader typed or pasted: `token: value` lines, a bare list, CSV or JSON."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_SEPARATORS = re.compile(r"[\s,;，；]+")
_JSON_LINE = re.compile(r'^ *"([^"]*)" *: *(-?(?:\d[^\s,]*|Infinity)) *,? *$', re.MULTILINE)  # "token": value,
_JSON_FIELDS = ("logit", "logits", "value", "score", "logprob", "log_prob")  # logits but for what is added to all


@dataclass
class OwnLogits:
    """What was read.

    Attributes:
        tokens: the text of each token, by id; texts may repeat. A bare number's text is its place in the list.
        logits: one number for each token; -inf is an impossible token.
        problems: (number from 1, its text) of every line, or entry of JSON, that could not be read.
        from_json: whether it was JSON as a whole, whose entries are numbered, not lines.
    """

    tokens: list[str] = field(default_factory=list)
    logits: list[float] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)
    from_json: bool = field(default=False, repr=False)

    def add(self, token: str | None, logit: float) -> None:
        """Append one token; its id is its place."""
        self.tokens.append(str(len(self.tokens)) if token is None else token)
        self.logits.append(logit)


def read(text: str) -> OwnLogits:
    """Read logits in whichever form they are in; a line that does not parse is noted and the rest is kept.

    >>> read("很: 2.3\\n好: x\\n不错: 3.8")
    OwnLogits(tokens=['很', '不错'], logits=[2.3, 3.8], problems=[(2, '好: x')])
    >>> read("2.3, 1.5, 3.8").logits
    [2.3, 1.5, 3.8]
    >>> read('{"a": 1, "b": 0.5}').tokens
    ['a', 'b']
    """
    text = text.strip("\ufeff")
    found = OwnLogits()
    if text.lstrip()[:1] in ("[", "{"):
        try:
            values = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            text = text.translate(str.maketrans("[]{}", "    "))  # read what can be read line by line
            text = _JSON_LINE.sub(r"\1: \2", text)
        else:
            found.from_json = True
            _read_json(values, found)
            return found
    for number, line in enumerate(text.splitlines(), start=1):
        _read_line(number, line.strip(), found)
    return found


def _read_line(number: int, line: str, found: OwnLogits) -> None:
    if not line:
        return
    if ":" not in line and "：" not in line:
        values = [_logit(part) for part in _SEPARATORS.split(line) if part]
        if values and None not in values:
            for value in values:
                found.add(None, value)
            return
    for token, text in _pairs(line):
        value = _logit(text)
        if value is not None:
            found.add(token, value)
            return
    if not (number == 1 and _is_header(line)):
        found.problems.append((number, line))


def _pairs(line: str) -> Iterator[tuple[str, str]]:
    """Yield the ways in which a line can be a token and a value: around its last colon, or as fields of CSV."""
    colon = max(line.rfind(":"), line.rfind("："))
    if colon >= 0:
        yield line[:colon].rstrip(), line[colon + 1 :]
    for delimiter in (",", "\t", ";"):
        if delimiter in line:
            fields = next(csv.reader([line], delimiter=delimiter))
            if len(fields) >= 2:
                yield fields[-2], fields[-1]


def _is_header(line: str) -> bool:
    return bool(re.search(r"[,\t;]", line)) and not re.search(r"\d", line)


def _logit(value: Any) -> float | None:
    """Return a number that can be a logit: finite, or -inf; None for anything else."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number < math.inf else None  # which NaN is not


def _read_json(values: Any, found: OwnLogits) -> None:
    """Read {"token": value}, [value, ...], [["token", value], ...] or [{"token": ..., "logit": ...}, ...]."""
    items = list(values.items()) if isinstance(values, dict) else values
    for number, item in enumerate(items, start=1):
        token, value = None, item
        if isinstance(item, (list, tuple)) and len(item) == 2:
            token, value = item
        elif isinstance(item, dict):
            token = item.get("token")
            value = next((item[name] for name in _JSON_FIELDS if name in item), None)
        logit = _logit(value)
        if logit is None:
            found.problems.append((number, json.dumps(item, ensure_ascii=False)))
        else:
            found.add(None if token is None else str(token), logit)
