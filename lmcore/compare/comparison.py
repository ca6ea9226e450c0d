"""`compare(a, b, ids_or_text) -> Comparison`: where two runs part first, and how far they are apart at each place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from lmcore.compare import findings
from lmcore.compare.alignment import vocabularies
from lmcore.compare.findings import STAGES, Finding, Stage
from lmcore.compare.hidden import StreamStep, comparable, first_parting, stream_differences
from lmcore.compare.measures import Divergence, shared, told, whole
from lmcore.compare.places import Places
from lmcore.compare.served import Served, ServedRun
from lmcore.compare.side import Drawn, Forward, LocalRun, Passes, Run, Side
from lmcore.compare.tokens_of_both import LogProbs
from lmcore.distribution import rank
from lmcore.language_model import LanguageModel
from lmcore.loading import load
from lmcore.sampling import Note, SamplingSettings

__all__ = ["Comparison", "KL", "Beside", "ROUNDING", "TOLD_DIGITS", "compare"]

Given: TypeAlias = "str | LanguageModel | Side | Served | Run"
"""A model's name, a model, or a side of which more is said."""

ROUNDING = 1e-4
"""A difference of log-probabilities, in nats, up to which two local models in one dtype say the same: float32 sums in
another order differ by some 1e-5."""
TOLD_DIGITS = 2e-3
"""The same where a server tells them: it may write three digits."""


class KL(NamedTuple):
    """The divergence at each place in bits, both ways; float64 [N]."""

    a_b: np.ndarray
    b_a: np.ndarray


class Beside(NamedTuple):
    """One token and its probability on both sides."""

    token: bytes
    a: float | None
    b: float | None


class Comparison:
    """Two runs side by side. Everything is computed when it is first asked for.

    Attributes:
        a, b: the two runs.
        divergence: how far the next-token distributions are apart at each of `places`, before any sampler; may be set,
            where it is known from another comparison of the same two.
    """

    def __init__(self, a: Run, b: Run, forward: Forward) -> None:
        self.a, self.b = a, b
        self._places = Places(a, b, forward)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What each stage says, in order."""
        return tuple(self._finding(stage) for stage in STAGES)

    @cached_property
    def first(self) -> Finding | None:
        """The first stage at which the two differ; None where they differ nowhere. Later stages are not looked at."""
        for stage in STAGES:
            found = self._finding(stage)
            if found.same is False:
                return found
        return None

    @property
    def first_difference(self) -> Stage | None:
        """The first difference: "text", "ids", "logits", "settings" or "draw"; None where there is none."""
        return self.first.stage if self.first else None

    @property
    def sentence(self) -> Note:
        """One line that says it."""
        return self.first.note if self.first else Note(findings.NOTHING)

    @property
    def same_vocabulary(self) -> bool:
        """Whether an id is the same token on both sides."""
        return self._places.same_vocabulary

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """The positions of A and of B that are compared: those at the same place of the text, of which both tell
        something. After a pasted request's prompt come the tokens of its answer, which the other side is given too."""
        return self._places.pairs

    @cached_property
    def divergence(self) -> Divergence:
        """How far the next-token distributions are apart at each of `places`, before any sampler."""
        if not self.places:
            return told([], [])
        left, right = (list(side) for side in zip(*self.places, strict=True))
        a, b = self._places.logits(self.a), self._places.logits(self.b)
        if a is not None and b is not None:
            a = a if left == list(range(len(a))) else a[left]  # without a copy where nothing is left out
            b = b if right == list(range(len(b))) else b[right]
            if self.same_vocabulary:
                return whole(a, b)
            assert self.a.tokenizer is not None and self.b.tokenizer is not None
            return shared(a, b, *vocabularies(self.a.tokenizer, self.b.tokenizer))
        found = told(*zip(*(self._by_id(i, j) for i, j in self.places), strict=True))
        if a is not None:  # its whole order is known, not only the tokens beside B's
            for row, (place, token_id) in enumerate(zip(left, found.first_b.tolist(), strict=True)):
                if 0 <= token_id < a.shape[-1]:
                    found.rank[row] = rank(a[place], token_id)
        return found

    @property
    def kl(self) -> KL:
        """KL(A‖B) and KL(B‖A) in bits at each of `places`; lower bounds where a side tells a few tokens only."""
        return KL(self.divergence.kl_ab, self.divergence.kl_ba)

    @property
    def total_variation(self) -> np.ndarray:
        """The total variation at each of `places`."""
        return self.divergence.total_variation

    @property
    def flips(self) -> np.ndarray:
        """Whether the most probable token is another one, at each of `places`."""
        return self.divergence.flips

    @cached_property
    def hidden(self) -> tuple[StreamStep, ...]:
        """How far the residual streams are apart after each step, for two local models of one width that read the same
        ids; empty for others."""
        models = self._of_one_width
        return tuple(stream_differences(*models, self.a.ids or ())) if models else ()

    @cached_property
    def parts_in(self) -> StreamStep | None:
        """The first step in the model after which the streams differ by more than rounding; None where none does."""
        models = self._of_one_width
        return first_parting(*models, self.a.ids or ()) if models else None

    @property
    def _of_one_width(self) -> tuple[LanguageModel, LanguageModel] | None:
        a, b = self.a, self.b
        if not (isinstance(a, LocalRun) and isinstance(b, LocalRun)) or a.ids != b.ids or not comparable(a.lm, b.lm):
            return None
        return a.lm, b.lm

    @cached_property
    def drawn(self) -> tuple[tuple[Drawn, ...], tuple[Drawn, ...]]:
        """What came on both sides after the prompt; a token that a server names by its id has the other's bytes."""
        tokenizer = next((run.tokenizer for run in (self.a, self.b) if run.tokenizer is not None), None)
        if tokenizer is None:
            return self.a.drawn, self.b.drawn

        def named(each: Drawn) -> Drawn:
            if each.token or each.token_id is None or each.token_id >= tokenizer.vocab_size:
                return each
            return replace(each, token=tokenizer.token_bytes(each.token_id))

        return tuple(map(named, self.a.drawn)), tuple(map(named, self.b.drawn))

    @cached_property
    def parting(self) -> int | None:
        """The number of the first drawn token that differs; None where all are the same."""
        return findings.first_difference(*([each.token for each in side] for side in self.drawn))

    def beside(self, index: int, n: int = 8) -> list[Beside]:
        """Return the n most probable tokens of each side at one of `places`, the most probable first.

        A probability is None where a side has no such token or does not tell it. Over two vocabularies tokens are the
        same by their bytes.
        """
        i, j = self.places[index]
        best, a, b = self.divergence.best, None, None
        if best is None or n > best.ids.shape[1] // 2:
            best, a, b = None, self._places.at(self.a, i).logits, self._places.at(self.b, j).logits
        sides: tuple[dict[bytes, float], dict[bytes, float]]
        if a is not None and b is not None and not self.same_vocabulary:
            sides = self._places.tokens.by_bytes(a, b, n)
        else:
            known = best.at(index) if best else self._by_id(i, j)
            sides = ({}, {})
            for side, log_probs in zip(sides, known, strict=True):
                for token_id, value in log_probs.items():  # of two tokens of the same bytes the more probable one
                    token = self.token(self.a, token_id)
                    side[token] = max(side.get(token, 0.0), math.exp(value))
        shown = {token for side in sides for token in sorted(side, key=side.__getitem__, reverse=True)[:n]}
        found = [Beside(token, sides[0].get(token), sides[1].get(token)) for token in shown]
        return sorted(found, key=lambda each: (-max(each.a or 0.0, each.b or 0.0), each.token))

    def worst(self, n: int = 10) -> list[int]:
        """Return the n entries of `places` with the largest KL(A‖B), the largest first."""
        return np.argsort(-self.divergence.kl_ab, kind="stable")[:n].tolist()

    def token(self, run: Run, token_id: int) -> bytes:
        """Return what a token of `divergence` is on one side, by its id there."""
        if token_id < 0:  # a number for a text, which is given when the places are gone through
            _ = self.places
        return self._places.tokens.token(run, token_id)

    def _by_id(self, i: int, j: int) -> tuple[LogProbs, LogProbs]:
        return self._places.tokens.by_id(self._places.at(self.a, i), self._places.at(self.b, j))

    def _finding(self, stage: Stage) -> Finding:
        if stage not in self._found:
            self._found[stage] = self._find(stage)
        return self._found[stage]

    @cached_property
    def _found(self) -> dict[Stage, Finding]:
        return {}

    def _find(self, stage: Stage) -> Finding:
        if stage == "text":
            return findings.text(self.a, self.b)
        if stage == "ids":
            return findings.ids(self.a, self.b)
        if stage == "logits":
            return self._logits_finding()
        if stage == "settings":
            return findings.settings(self.a, self.b)
        return findings.draw(self.a, self.b, *self.drawn)

    def _logits_finding(self) -> Finding:
        if not self.places or np.isnan(self.divergence.largest).all():
            return Finding("logits", None, Note(findings.NO_LOGITS))
        found = self.divergence
        most = float(np.nanmax(found.largest))
        beyond = TOLD_DIGITS if self._places.are_told else ROUNDING
        place = int(np.argmax(found.largest > beyond)) if most > beyond else None
        if place is None:
            template = (
                findings.SAME_REPORTED if self._places.are_told else findings.ROUNDING if most else findings.SAME_LOGITS
            )
            return Finding("logits", True, Note(template, **({"most": f"{most:.1g}"} if "{" in template else {})))
        if self._places.are_told:
            return Finding("logits", False, Note(findings.REPORTED, most=f"{most:.3g}"), self.places[place][0])
        template = findings.LOGITS if self.same_vocabulary else findings.CHANCES
        values = {"kl": f"{found.kl_ab.mean():.3g}", "flips": int(found.flips.sum()), "n": len(found)}
        return Finding("logits", False, Note(template, **values), self.places[place][0])


def compare(
    a: Given,
    b: Given,
    ids_or_text: str | Sequence[int] | None = None,
    *,
    settings: SamplingSettings | None = None,
    max_new_tokens: int = 0,
    forward: Forward | None = None,
    lock: AbstractContextManager[object] | None = None,
) -> Comparison:
    """Compare two runs: where they part first, and by how much.

    Args:
        a, b: a model or its name; or a `Side`, `Served` or `Told`, which says more: a conversation, another template,
            other settings.
        ids_or_text: what both read, where a side does not say it itself.
        settings: how both draw, where a side does not say it itself.
        max_new_tokens: how many tokens both generate, where a side does not say it itself.
        forward: runs a local model over ids; it may keep what it returned. By default the latest pass of each is kept.
        lock: held while a local model draws a token, and free between two.

    Raises:
        ValueError: no such model; nothing to read; a template that refuses.

    >>> found = compare("small-world", "small-world:bfloat16", "The king")
    >>> found.first_difference, bool((found.kl.a_b < 0.01).all())
    ('logits', True)
    >>> compare("small-world", "small-world", "The king").first_difference
    """
    forward, lock = forward or Passes(), lock or nullcontext()
    runs = [_run(each, ids_or_text, settings, max_new_tokens, forward, lock) for each in (a, b)]
    return Comparison(runs[0], runs[1], forward)


def _run(
    given: Given,
    ids_or_text: str | Sequence[int] | None,
    settings: SamplingSettings | None,
    max_new_tokens: int,
    forward: Forward,
    lock: AbstractContextManager[object],
) -> Run:
    if isinstance(given, str):
        given = load(given)
    if isinstance(given, LanguageModel):
        given = Side(model=given, settings=settings or SamplingSettings(), max_new_tokens=max_new_tokens)
    if isinstance(given, Side):
        if given.ids is None and not given.messages and given.text is None and ids_or_text is not None:
            is_text = isinstance(ids_or_text, str)
            given = replace(given, **{"text": ids_or_text} if is_text else {"ids": tuple(map(int, ids_or_text))})  # type: ignore[arg-type]
        return LocalRun(given, forward, lock)
    if isinstance(given, Served):
        if given.text is None and isinstance(ids_or_text, str):
            given = replace(given, text=ids_or_text)
        return ServedRun(given)
    return given
