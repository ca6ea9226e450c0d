"""What two sides hold most probable at one place, told by one set of ids, or by the tokens' bytes."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from lmcore.compare.alignment import vocabularies
from lmcore.compare.side import Run
from lmcore.engines.agreement import id_of_text
from lmcore.engines.top_tokens import TopTokens

__all__ = ["At", "TokensOfBoth", "LogProbs"]

_N = 20  # most probable tokens of a side that is here

LogProbs: TypeAlias = dict[int, float]
"""Token id -> ln of its probability."""


class At(NamedTuple):
    """What is known of a side at one place: the logits [V] of one that is here, else what a server told."""

    logits: Tensor | None
    told: TopTokens | None


class TokensOfBoth:
    """The tokens of two sides under one set of ids.

    A model has ids. A server may name a token by its id or by its text, which is looked up in the other side's
    vocabulary; where neither side has one, each text is given a number below 0.
    """

    def __init__(self, a: Run, b: Run) -> None:
        self._a, self._b = a, b
        self._numbers: dict[str, int] = {}  # of tokens that both sides name by their texts alone
        self._tokenizer = next((run.tokenizer for run in (a, b) if run.tokenizer is not None), None)

    def are_told(self, told: TopTokens, run: Run) -> bool:
        """Whether the other side can know one of the tokens that a server told for `run`."""
        return bool(self._by_id(told, self._b if run is self._a else self._a))

    def by_id(self, a: At, b: At) -> tuple[LogProbs, LogProbs]:
        """Return what is known of the same tokens on both sides.

        Of a side that is here these are its own most probable ones and all that the other side tells.
        """
        rows = [None if at.logits is None else torch.log_softmax(at.logits.double(), -1) for at in (a, b)]
        known: list[LogProbs] = []
        for at, row, other in ((a, rows[0], self._b), (b, rows[1], self._a)):
            if row is None:
                assert at.told is not None
                known.append(self._by_id(at.told, other))
            else:
                best = row.topk(min(_N, len(row)))
                known.append(dict(zip(best.indices.tolist(), best.values.tolist(), strict=True)))
        theirs = list(known[1]), list(known[0])
        for side, row, wanted in zip(known, rows, theirs, strict=True):
            if row is not None:
                side |= {token: float(row[token]) for token in wanted if 0 <= token < len(row)}
        return known[0], known[1]

    def by_bytes(self, a: Tensor, b: Tensor, n: int) -> tuple[dict[bytes, float], dict[bytes, float]]:
        """Return the n most probable tokens of two models of different vocabularies, each with its probability on each
        side that has it; those of the same bytes together.

        Args:
            a, b: logits [V] of each.
            n: how many of each side.
        """
        assert self._a.tokenizer is not None and self._b.tokenizer is not None
        groups = vocabularies(self._a.tokenizer, self._b.tokenizer)
        probs = [torch.softmax(row.double(), -1).numpy() for row in (a, b)]
        by_group = [np.bincount(g[g >= 0], p[g >= 0], minlength=1) for g, p in zip(groups, probs, strict=True)]
        sides: tuple[dict[bytes, float], dict[bytes, float]] = ({}, {})
        for side, tokenizer in enumerate((self._a.tokenizer, self._b.tokenizer)):
            for token_id in np.argsort(-probs[side], kind="stable")[:n].tolist():
                token, group = tokenizer.token_bytes(token_id), groups[side][token_id]
                if group < 0:
                    sides[side][token] = float(probs[side][token_id])
                else:
                    for other in (0, 1):
                        sides[other][token] = float(by_group[other][group])
        return sides

    def token(self, run: Run, token_id: int) -> bytes:
        """Return what a token of one side is, by its id there."""
        if token_id < 0:
            return next(text for text, number in self._numbers.items() if number == token_id).encode()
        tokenizer = run.tokenizer or self._tokenizer
        is_known = tokenizer is not None and token_id < tokenizer.vocab_size
        return tokenizer.token_bytes(token_id) if tokenizer is not None and is_known else f"⟨{token_id}⟩".encode()

    def _by_id(self, told: TopTokens, other: Run) -> LogProbs:
        found: LogProbs = {}
        for each in told.best:
            token_id = each.token_id
            if other.tokenizer is None:  # one server may name tokens by text and the other by id
                name = each.text or f"⟨{token_id}⟩"
                token_id = self._numbers.setdefault(name, -1 - len(self._numbers))
            elif token_id is None:
                token_id = id_of_text(other.tokenizer, each.text)
            if token_id is not None:
                found.setdefault(token_id, each.log_prob)
        return found
