"""The notation the small world is written in: templates with weighted choices, expanded exactly.

A template is a line of words separated by spaces. Two marks make it a family of lines:

- `[good*3|bad]`  a choice: one alternative is taken, with probability in proportion to its weight (1 where none is
  written). Alternatives may be empty and may hold further choices.
- `{name}`        a slot, filled with the same text wherever it stands in the template. Slots come in rows, so that
  what belongs together (a country and its capital) is filled in together.

Every choice has a known probability, so a template is a finite distribution over lines and nothing has to be sampled
to know it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

Row = dict[str, str]

_MARKS = re.compile(r"[\[\]|]|[^\[\]|]+")
_WEIGHT = re.compile(r"(.*?)\*(\d+(?:\.\d+)?)\s*$", re.DOTALL)
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Scene:
    """A template, the rows that fill its slots, and how often it is told.

    Args:
        weight: How often this scene is told, in proportion to the other scenes of its language.
        text: The template.
        rows: The ways to fill the slots. A row is taken in proportion to its field `weight` (1 where it has none).
    """

    weight: float
    text: str
    rows: Sequence[Row] = ({},)

    def lines(self) -> dict[str, float]:
        """Every line this scene can be, words separated by single spaces, with its probability (they sum to 1).

        >>> Scene(1, "{who} [ran|sat*3]", table("who", "Tom", "Ann")).lines()["Ann sat"]
        0.375
        """
        total = sum(_row_weight(row) for row in self.rows)
        lines: dict[str, float] = {}
        for row in self.rows:
            for line, probability in expand(fill(self.text, row)).items():
                lines[line] = lines.get(line, 0.0) + probability * _row_weight(row) / total
        return lines


def _row_weight(row: Row) -> float:
    return float(row.get("weight", "1"))


def table(fields: str, *lines: str) -> list[Row]:
    """Rows written as a small table: field names separated by spaces, cells by `/`.

    >>> table("country capital", "France / Paris", "Japan / Tokyo")[1]
    {'country': 'Japan', 'capital': 'Tokyo'}
    """
    names = fields.split()
    rows = []
    for line in lines:
        cells = [cell.strip() for cell in line.split("/")]
        if len(cells) != len(names):
            raise ValueError(f"row {line!r} has {len(cells)} cells; the table has the {len(names)} fields {fields!r}.")
        rows.append(dict(zip(names, cells, strict=True)))
    return rows


def distinct(rows: Sequence[Row], labels: str) -> list[Row]:
    """Every way to give different rows to the labels, in every order.

    The field `name` of the row that label `a` received becomes slot `a`, any other field `he` becomes slot `a_he`.

    >>> distinct(table("name he", "Tom / he", "Ann / she"), "a b")[1]
    {'a': 'Ann', 'a_he': 'she', 'b': 'Tom', 'b_he': 'he'}
    """
    names = labels.split()
    return [
        {
            label if field == "name" else f"{label}_{field}": cell
            for label, row in zip(names, chosen, strict=True)
            for field, cell in row.items()
        }
        for chosen in permutations(rows, len(names))
    ]


def cross(*tables: Iterable[Row]) -> list[Row]:
    """Every combination of one row from each table (their weights multiply).

    >>> cross(table("who", "Tom", "Ann"), table("weight what", "3 / book"))[0]
    {'who': 'Tom', 'weight': '3.0', 'what': 'book'}
    """
    combined: list[Row] = [{}]
    for rows in tables:
        rows = list(rows)
        combined = [
            {**left, **right, "weight": str(_row_weight(left) * _row_weight(right))}
            for left in combined
            for right in rows
        ]
    return combined


def fill(text: str, row: Row) -> str:
    """The template with its slots filled from `row`; ValueError names a slot that the row does not have."""

    def cell(match: re.Match[str]) -> str:
        if match[1] not in row:
            raise ValueError(f"slot {{{match[1]}}} of {text!r} is not among the row's fields {sorted(row)}.")
        return row[match[1]]

    while _SLOT.search(text):  # a cell may hold a slot itself
        text = _SLOT.sub(cell, text)
    return text


def expand(text: str) -> dict[str, float]:
    """Every line of a template without slots, with its probability.

    >>> expand("the day is [good*3|bad]")
    {'the day is good': 0.75, 'the day is bad': 0.25}
    """
    marks = _MARKS.findall(text)
    lines, end = _sequence(marks, 0)
    if end != len(marks):
        raise ValueError(f"{marks[end]!r} stands outside brackets in {text!r}.")
    return lines


def _sequence(marks: list[str], i: int) -> tuple[dict[str, float], int]:
    """The lines of the marks from i up to the next unmatched `|` or `]`, and where that stands."""
    lines = {"": 1.0}
    while i < len(marks) and marks[i] not in "|]":
        if marks[i] == "[":
            part, i = _choice(marks, i)
        else:
            part = {" ".join(marks[i].split()): 1.0}
        i += 1
        longer: dict[str, float] = {}
        for left, p in lines.items():
            for right, q in part.items():
                line = f"{left} {right}".strip()
                longer[line] = longer.get(line, 0.0) + p * q
        lines = longer
    return lines, i


def _choice(marks: list[str], i: int) -> tuple[dict[str, float], int]:
    """The lines of the choice whose `[` stands at i, and where its `]` stands."""
    alternatives: list[tuple[float, dict[str, float]]] = []
    while marks[i] != "]":
        lines, end = _sequence(marks, i + 1)
        if end == len(marks):
            raise ValueError(f"a bracket is not closed in {''.join(marks)!r}.")
        weight = 1.0
        # The weight is the end of the alternative's last mark, which is text unless the alternative ends with "]".
        last = marks[end - 1]
        if (match := _WEIGHT.match(last)) is not None:
            weight = float(match[2])
            lines = _sequence([*marks[i + 1 : end - 1], match[1]], 0)[0]
        alternatives.append((weight, lines))
        i = end
    total = sum(weight for weight, _ in alternatives)
    chosen: dict[str, float] = {}
    for weight, lines in alternatives:
        for line, probability in lines.items():
            chosen[line] = chosen.get(line, 0.0) + probability * weight / total
    return chosen, i
