"""What a fault costs a model: the loss of the true answer, or the chance that generation stops, with and without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lmcore.chat.encode import ChatModel
from lmcore.chat.findings import Harm

MOST_MEASURED = 4_096
"""The most tokens, of text and answer, of which a harm is measured."""

Measure = Callable[[], Harm]


class TooLong(ValueError):
    """More tokens than the model takes, or than are measured."""


class Harms:
    """What measures harms, each when it is asked to: a pass of the model takes time.

    Args:
        lm: the model.
        ids: the conversation as it is.
        answer: the true answer; without one nothing can be measured.
    """

    def __init__(self, lm: ChatModel, ids: Sequence[int], answer: str | None) -> None:
        self._lm, self._ids, self._answer = lm, ids, answer
        self._known: dict[tuple[tuple[int, ...], str], float] = {}  # several harms have the ids as they are in common

    def loss(
        self, mended: Sequence[int] | None, as_is: Sequence[int] | None = None, before: str = ""
    ) -> Measure | None:
        """Return what measures the loss of the true answer; None where there is nothing to measure.

        Args:
            mended: the ids without the fault.
            as_is: those with it, where they are not the conversation's.
            before: what of the text the mended ids leave to the answer.
        """
        answer, now = self._answer, self._ids if as_is is None else as_is
        if not answer or not mended or not now:
            return None
        return lambda: Harm("loss", self._loss(now, answer), self._loss(mended, before + answer))

    def chance(self, token: int, ends: Sequence[int]) -> Measure | None:
        """Return what measures how likely generation stops after the true answer: at one of `ends`, or at `token`."""
        if not self._answer:
            return None
        ids = [*self._ids, *self._lm.tokenizer.encode(self._answer, add_first=False).ids]

        def measure() -> Harm:
            self._check_length(len(ids))
            probs = self._lm.last_logits(ids, 1)[-1].softmax(-1)
            return Harm("probability", float(probs[list(ends)].sum()), float(probs[token]))

        return measure

    def _loss(self, ids: Sequence[int], answer: str) -> float:
        key = (tuple(ids), answer)
        if key not in self._known:
            self._check_length(len(ids) + len(self._lm.tokenizer.encode(answer, add_first=False)))
            self._known[key] = answer_loss(self._lm, ids, answer)
        return self._known[key]

    def _check_length(self, n: int) -> None:
        if n > min(MOST_MEASURED, self._lm.config.context_length):
            raise TooLong


def answer_loss(lm: ChatModel, ids: Sequence[int], answer: str) -> float:
    """Return the mean loss of an answer's tokens after these ids, in nats.

    Args:
        lm: the model.
        ids: what comes before the answer, one at least.
        answer: some text.

    Raises:
        ValueError: no ids or no answer, or more tokens than the model takes.
    """
    targets = lm.tokenizer.encode(answer, add_first=False).ids
    if not targets:
        raise ValueError("the answer is empty; give a text, whose loss is measured.")
    if not ids:
        raise ValueError("there are no ids before the answer; give one at least, for its first token to follow.")
    logits = lm.last_logits([*ids, *targets[:-1]], len(targets))
    losses = (float(row.logsumexp(-1) - row[target]) for row, target in zip(logits, targets, strict=True))
    return sum(losses) / len(targets)
