"""Many texts under a model: read from a list or a file, then scored one after another."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lmcore.analysis.logits.scoring import Scores, score
from lmcore.language_model import LanguageModel

Problem = Literal["", "not UTF-8", "not CSV", "not JSON", "one token", "too long"]
MAX_CHARACTERS = 4000  # of one text


@dataclass(frozen=True)
class Line:
    """A text of a list or file: the number of its (last) line, counted from 1, and why it cannot be read, if so."""

    number: int
    text: str
    problem: Problem = ""


@dataclass(frozen=True)
class ScoredText:
    """A line and its scores; None, and a problem, where there are none. `n_tokens` counts all of the line's tokens."""

    line: Line
    n_tokens: int
    scores: Scores | None
    problem: Problem = ""


def read_texts(data: bytes, is_csv: bool = False, is_jsonl: bool = False) -> list[Line]:
    r"""Return the texts in a file's bytes; blank lines are none.

    Args:
        data: UTF-8, with or without a mark at the start.
        is_csv: whether it is a table: then the texts are the column named "text", or the first when none is.
        is_jsonl: whether each line is JSON: a string, or an object with a string called "text".

    >>> [line.text for line in read_texts("今天天气\n\nThe king\n".encode())]
    ['今天天气', 'The king']
    >>> read_texts(b'id,text\n1,"a, b"\n', is_csv=True)
    [Line(number=2, text='a, b', problem='')]
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    if is_csv:
        return _rows(data)
    lines = [_decoded(number, line) for number, line in enumerate(data.splitlines(), start=1)]
    lines = [line for line in lines if line.text.strip()]
    return [line if line.problem else _from_json(line) for line in lines] if is_jsonl else lines


def read_file(name: str, data: bytes) -> list[Line]:
    """Return the texts in a file's bytes, as the ending of its name says: .csv, .jsonl, else a text a line."""
    return read_texts(data, name.lower().endswith(".csv"), name.lower().endswith(".jsonl"))


def score_texts(lm: LanguageModel, lines: Sequence[Line]) -> Iterator[ScoredText]:
    """Yield each line with its scores, or with what is wrong with it."""
    for line in lines:
        if line.problem or len(line.text) > MAX_CHARACTERS:
            yield ScoredText(line, 0, None, line.problem or "too long")
            continue
        ids = lm.tokenizer.encode(line.text).ids
        if not 2 <= len(ids) <= lm.config.context_length:
            yield ScoredText(line, len(ids), None, "one token" if len(ids) < 2 else "too long")
            continue
        yield ScoredText(line, len(ids), score(lm(ids), ids))


def _decoded(number: int, line: bytes) -> Line:
    try:
        return Line(number, line.decode("utf-8").strip())
    except UnicodeDecodeError:
        return Line(number, line.decode("utf-8", "backslashreplace"), "not UTF-8")


def _from_json(line: Line) -> Line:
    try:
        told = json.loads(line.text)
    except (ValueError, RecursionError):
        told = None
    text = told.get("text") if isinstance(told, dict) else told
    if not isinstance(text, str):
        return Line(line.number, line.text, "not JSON")
    # JSON can write half a surrogate pair, which no UTF-8 can.
    is_text = text.encode("utf-8", "replace").decode() == text
    return Line(line.number, text) if is_text else Line(line.number, line.text, "not UTF-8")


def _rows(data: bytes) -> list[Line]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        return [Line(number, data.splitlines()[number - 1].decode("utf-8", "backslashreplace"), "not UTF-8")]
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines: list[Line] = []
    column = 0
    try:
        for index, row in enumerate(reader):
            names = [name.strip().lower() for name in row]
            if index == 0 and "text" in names:
                column = names.index("text")
            elif column < len(row) and row[column].strip():
                lines.append(Line(reader.line_num, row[column].strip()))
    except csv.Error as error:
        lines.append(Line(reader.line_num, str(error), "not CSV"))
    return lines
