"""Read logits that a reader typed, pasted or opened: `token: value` lines, a bare list, CSV, JSON, a server's answer.

What a server answers are log-probabilities, often of a few tokens only: then the probability of all others is known
too, and is kept as one entry. A log-probability of -9999 or less is how servers write an impossible token.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lmcore.requests.servers import ALIASES, SERVERS

_SEPARATORS = re.compile(r"[\s,;，；]+")
_JSON_LINE = re.compile(r'^ *"([^"]*)" *: *(-?(?:\d[^\s,]*|Infinity)) *,? *$', re.MULTILINE)  # "token": value,
_LOGITS = ("logit", "logits", "value", "score")
_LOG_PROBS = ("logprob", "log_prob", "log_probability", "lnp", "ln p")
_PROBS = ("prob", "probability", "p")
_TEXTS = ("token", "text", "tok_str", "decoded_token", "token_str")
_IDS = ("token_id", "id", "tok")
_ANSWERS = ("top_logprobs", "top_probs", "probs", "top_tokens", "output_top_logprobs")
"""Where servers list the most probable tokens of each position."""
_OF_REQUESTS = {
    *ALIASES,
    *(name for server in SERVERS.values() for name in (*server.reads, server.prompt, server.inside)),
}
_TRIPLE = ("logprob", "id", "token")  # how SGLang writes a candidate
_IMPOSSIBLE = -9999.0
MAX_ID = 2**21


@dataclass
class OwnLogits:
    """What was read.

    Attributes:
        tokens: the text of each token; texts may repeat. None where only a number or an id is known.
        logits: one number for each token; -inf is an impossible token.
        ids: the id of each token, where every one of them came with its own; else empty.
        problems: (number from 1, its text) of every line, or entry of JSON, that could not be read.
        from_json: whether it was JSON as a whole, whose entries are numbered, not lines.
        is_request: whether it was what is sent to a server, settings by their names there, and no logits at all.
        are_log_probs: whether the numbers are log-probabilities by the name of their field.
    """

    tokens: list[str | None] = field(default_factory=list)
    logits: list[float] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)
    from_json: bool = field(default=False, repr=False)
    is_request: bool = field(default=False, repr=False)
    are_log_probs: bool = field(default=False, repr=False)

    def add(self, token: str | None, logit: float) -> None:
        """Append one token."""
        self.tokens.append(token)
        self.logits.append(logit)

    @property
    def untold(self) -> float:
        """The probability of all tokens that are not listed, where the numbers are log-probabilities; else 0."""
        told = sum(math.exp(logit) for logit in self.logits) if self.are_log_probs else 1.0
        return 1 - told if told < 1 - 1e-6 else 0.0


def read(text: str) -> OwnLogits:
    """Read logits in whichever form they are in; a line that does not parse is noted and the rest is kept.

    >>> read("很: 2.3\\n好: x\\n不错: 3.8")
    OwnLogits(tokens=['很', '不错'], logits=[2.3, 3.8], ids=[], problems=[(2, '好: x')])
    >>> read("2.3, 1.5, 3.8").logits
    [2.3, 1.5, 3.8]
    >>> read('{"a": 1, "b": 0.5}').tokens
    ['a', 'b']
    >>> round(read('{"top_logprobs": [{"token": "Paris", "logprob": -0.1}]}').untold, 3)
    0.095
    """
    text = text.strip("\ufeff")
    found = OwnLogits()
    if text.lstrip().startswith("curl "):
        found.is_request = True
        return found
    if text.lstrip()[:1] in ("[", "{"):
        try:
            values = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            text = text.translate(str.maketrans("[]{}", "    "))  # read what can be read line by line
            text = _JSON_LINE.sub(r"\1: \2", text)
        else:
            found.from_json = True
            _read_json(values, found)
            return _checked(found)
    rows = _table(text)
    if rows is not None:
        for number, row in enumerate(rows, start=2):
            if any(row.values()):
                _read_entry(number, row, ",".join(str(value) for value in row.values()), found)
        return _checked(found)
    for number, line in enumerate(text.splitlines(), start=1):
        _read_line(number, line.strip(), found)
    if _is_request(found.tokens):
        return OwnLogits(is_request=True)
    return found


def _is_request(names: Iterable[object]) -> bool:
    """Whether these are the names of a request's fields, at least one of them a setting or what it goes on from."""
    given = set(names)
    return given <= _OF_REQUESTS and not given.isdisjoint({*ALIASES, "prompt", "messages", "inputs"})


def _checked(found: OwnLogits) -> OwnLogits:
    """Keep ids only where each token has one of its own; take log-probabilities for what they are."""
    if len(found.ids) < len(found.logits) or len(set(found.ids)) < len(found.ids) or max(found.ids, default=0) > MAX_ID:
        found.ids = []
    if found.are_log_probs:
        found.logits = [-math.inf if logit <= _IMPOSSIBLE else logit for logit in found.logits]
        found.are_log_probs = sum(map(math.exp, found.logits)) <= 1 + 1e-3
    return found


def _table(text: str) -> list[dict[str, Any]] | None:
    """Return the rows of CSV with a header that names its columns; None for anything else."""
    first, _newline, rest = text.partition("\n")
    for delimiter in (",", "\t", ";"):
        names = [name.strip().strip('"').lower() for name in first.split(delimiter)]
        if rest and len(names) > 1 and {*names} & {*_LOGITS, *_LOG_PROBS, *_PROBS} and {*names} & {*_TEXTS, *_IDS}:
            return list(csv.DictReader(io.StringIO(rest), fieldnames=names, delimiter=delimiter, restval=""))
    return None


def _read_line(number: int, line: str, found: OwnLogits) -> None:
    if not line:
        return
    if ":" not in line and "：" not in line:
        values = [_logit(part) for part in _SEPARATORS.split(line) if part]
        if values and None not in values:
            for value in values:
                found.add(None, value or 0.0)
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
    """Read {"token": value}, [value, ...], [["token", value], ...], [{"token": ..., "logit": ...}, ...], an answer."""
    answer = _in_answer(values)
    if answer is not None:
        found.are_log_probs = isinstance(answer, dict)  # the older form: {"token": log-probability}
        values = answer
    elif isinstance(values, dict) and _is_request(values):
        found.is_request = True
        return
    items = list(values.items()) if isinstance(values, dict) else values if isinstance(values, list) else [values]
    for number, item in enumerate(items, start=1):
        shown = json.dumps(item, ensure_ascii=False)
        if isinstance(item, dict):
            _read_entry(number, item, shown, found)
            continue
        token, value = item if isinstance(item, (list, tuple)) and len(item) == 2 else (None, item)
        logit = _logit(value)
        if logit is None:
            found.problems.append((number, shown))
        else:
            found.add(None if token is None else str(token), logit)


def _read_entry(number: int, entry: Mapping[str, Any], shown: str, found: OwnLogits) -> None:
    """Read one token as an object, or a row of a table: its text, its id, and its logit or (log-)probability."""
    by_name = {str(name).lower(): value for name, value in entry.items()}
    name = next((name for name in (*_LOGITS, *_LOG_PROBS, *_PROBS) if by_name.get(name) not in (None, "")), "")
    logit = _logit(by_name.get(name))
    if logit is not None and name in _PROBS:
        logit = (math.log(logit) if logit > 0 else -math.inf) if 0 <= logit <= 1 else None
    if logit is None:
        found.problems.append((number, shown))
        return
    found.are_log_probs |= name in _LOG_PROBS or name in _PROBS
    text = next((by_name[each] for each in _TEXTS if by_name.get(each) is not None), None)
    found.add(None if text is None else str(text), logit)
    token_id = next((by_name[each] for each in _IDS if str(by_name.get(each, "")).isdigit()), None)
    if token_id is not None:
        found.ids.append(int(token_id))


def _in_answer(values: Any, depth: int = 8) -> list[Any] | dict[str, Any] | None:
    """Return the first list of candidates within a server's answer, however deep; None where there is none."""
    if depth == 0 or not isinstance(values, (dict, list)):
        return None
    if isinstance(values, dict):
        if values and all(str(name).isdigit() and _tells_probability(entry) for name, entry in values.items()):
            return [{"id": name, **entry} for name, entry in values.items()]
        for name in _ANSWERS:
            if isinstance(values.get(name), list) and (found := _candidates(values[name])) is not None:
                return found
    for inner in values.values() if isinstance(values, dict) else values:
        found = _in_answer(inner, depth - 1)
        if found is not None:
            return found
    return None


def _candidates(listed: list[Any]) -> list[Any] | dict[str, Any] | None:
    """Return the candidates of the first position that has any, in whichever way a server lists them."""
    first = next((position for position in listed if position), None)
    if isinstance(first, dict):
        return listed if _tells_probability(first) else first
    if isinstance(first, list):
        return [dict(zip(_TRIPLE, each, strict=False)) if isinstance(each, list) else each for each in first]
    return None


def _tells_probability(entry: Any) -> bool:
    return isinstance(entry, dict) and any(name in entry for name in (*_LOG_PROBS, *_PROBS))
