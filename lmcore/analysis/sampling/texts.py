"""Many texts under several settings, one after another: a table of their positions, and a summary for each setting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmcore.analysis.logits.texts import MAX_CHARACTERS, Line, Problem
from lmcore.analysis.sampling.through import ScoredThrough, TextLogits
from lmcore.corpus.truth import Truth
from lmcore.language_model import LanguageModel
from lmcore.sampling import SamplingSettings

__all__ = ["Summary", "TextThrough", "rows", "through_texts"]

Columns = Mapping[str, Sequence[Any] | np.ndarray]
_OF_THE_TEXT = ("position", "token_id", "entropy_bits_before", "bits_before", "truth_distance_before")


@dataclass(frozen=True)
class TextThrough:
    """A text under settings.

    Attributes:
        line: The text, with its number.
        n_tokens: How many tokens it has.
        tables: For each of the settings the columns of `ScoredThrough.columns`, as arrays; empty where there is a
            problem.
        problem: Why it was not scored, or "".
    """

    line: Line
    n_tokens: int
    tables: tuple[Mapping[str, np.ndarray], ...]
    problem: Problem = ""


def through_texts(
    lm: LanguageModel, lines: Sequence[Line], settings: Sequence[SamplingSettings], truth: Truth | None = None
) -> Iterator[TextThrough]:
    """Yield each text under all settings, or with what is wrong with it; the model runs once a text.

    Args:
        lm: The language model.
        lines: The texts.
        settings: One or more.
        truth: Where it is known; the tables then have the distance to it.

    Raises:
        ValueError: settings that leave no token.
    """
    for line in lines:
        if line.problem or len(line.text) > MAX_CHARACTERS:
            yield TextThrough(line, 0, (), line.problem or "too long")
            continue
        ids = lm.tokenizer.encode(line.text).ids
        if not 2 <= len(ids) <= lm.config.context_length:
            yield TextThrough(line, len(ids), (), "one token" if len(ids) < 2 else "too long")
            continue
        known = None if truth is None else [truth.next_token_probs(ids[:end]) for end in range(1, len(ids))]
        if known is not None and not any(row is not None for row in known):
            known = None
        text = TextLogits.of(lm(ids), ids)
        tables = [ScoredThrough.of(text, each, known).columns() for each in settings]
        # As arrays: lists of a thousand texts' numbers would take several times as much memory.
        yield TextThrough(line, len(ids), tuple({n: np.asarray(c) for n, c in table.items()} for table in tables))


def rows(lm: LanguageModel, found: Iterable[TextThrough], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each position of each text, with the columns of every setting side by side.

    Args:
        lm: The language model, for the texts of tokens; a token that is no whole text is given as its bytes.
        found: The texts.
        names: What the columns of each of the settings end in: "candidates (pinned)"; "" adds nothing.
    """
    for text in found:
        tables = [{name: column.tolist() for name, column in table.items()} for table in text.tables]
        for place in range(len(tables[0]["position"]) if tables else 0):
            first = tables[0]
            token = lm.tokenizer.token_bytes(first["token_id"][place])
            row = {"line": text.line.number, "position": first["position"][place] + 1}
            row |= {"token_id": first["token_id"][place], "token": token.decode("utf-8", "backslashreplace")}
            row |= {name: first[name][place] for name in _OF_THE_TEXT[2:] if name in first}
            for ending, table in zip(names, tables, strict=True):
                own = {name: values[place] for name, values in table.items() if name not in _OF_THE_TEXT}
                row |= {f"{name} ({ending})" if ending else name: value for name, value in own.items()}
            yield row


@dataclass(frozen=True)
class Summary:
    """What settings do over the positions of one or many texts.

    Attributes:
        positions: How many there are.
        possible: At how many of them the token that came could have been drawn.
        removed_mass: Mean probability at T = 1 of what was removed.
        candidates: Median number of tokens that can be drawn.
        bits_before: Mean surprisal at T = 1.
        bits_after: Mean surprisal after the settings of the tokens that could be drawn; NaN without any.
        truth_before, truth_after: Mean total variation distance to a known truth; NaN without one.
    """

    positions: int
    possible: int
    removed_mass: float
    candidates: int
    bits_before: float
    bits_after: float
    truth_before: float
    truth_after: float

    @classmethod
    def of(cls, tables: Sequence[Columns]) -> Summary:
        """Summarise the columns of `ScoredThrough` of one or more texts.

        Raises:
            ValueError: no position at all.
        """

        def joined(name: str) -> np.ndarray:
            return np.concatenate([np.asarray(table.get(name, ()), dtype=np.float64) for table in tables])

        if not tables:
            raise ValueError("There is no text to summarise.")
        possible, bits = joined("possible").astype(bool), joined("bits_after")
        return cls(
            positions=len(bits),
            possible=int(possible.sum()),
            removed_mass=float(joined("removed_mass").mean()),
            candidates=int(np.percentile(joined("candidates"), 50, method="lower")),
            bits_before=float(joined("bits_before").mean()),
            bits_after=_mean(bits[possible]),
            truth_before=_mean(joined("truth_distance_before")),
            truth_after=_mean(joined("truth_distance_after")),
        )


def _mean(numbers: np.ndarray) -> float:
    known = numbers[~np.isnan(numbers)]
    return float(known.mean()) if len(known) else float("nan")
