"""`compare(a, b, ids_or_text) -> Comparison`: where two runs part first, and how far they are apart at each place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from lmcore.compare import findings
from lmcore.compare.alignment import aligned, vocabularies
from lmcore.compare.findings import STAGES, Finding, Stage
from lmcore.compare.hidden import StreamStep, comparable, stream_differences
from lmcore.compare.measures import Divergence, shared, told, whole
from lmcore.compare.served import Served, ServedRun
from lmcore.compare.side import Drawn, Forward, LocalRun, Run, Side
from lmcore.compare.told import Told
from lmcore.distribution import rank
from lmcore.engines.agreement import id_of_text
from lmcore.engines.top_tokens import TopTokens
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
    """

    def __init__(self, a: Run, b: Run, forward: Forward) -> None:
        self.a, self.b = a, b
        self._forward = forward

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

    @cached_property
    def same_vocabulary(self) -> bool:
        """Whether an id is the same token on both sides."""
        return findings.same_words(self.a, self.b)

    @cached_property
    def places(self) -> tuple[tuple[int, int], ...]:
        """The positions of A and of B that are compared: those at the same place of the text, of which both tell
        something. After a pasted request's prompt come the tokens of its answer, which the other side is given too."""
        if isinstance(self.a, Told) or isinstance(self.b, Told):
            if not all(self._can_read(run) for run in (self.a, self.b) if isinstance(run, LocalRun)):
                return ()
            pairs = [(i, i) for i in range(self._prompt - 1, self._prompt + len(self._answer))]
        elif self.a.ids is None or self.b.ids is None:
            return ()
        elif self.same_vocabulary and self.a.ids == self.b.ids:
            pairs = [(i, i) for i in range(len(self.a.ids))]
        else:
            pairs = aligned(self.a.tokens or (), self.b.tokens or ())
        return tuple((i, j) for i, j in pairs if self._tells(self.a, i) and self._tells(self.b, j))

    @cached_property
    def divergence(self) -> Divergence:
        """How far the next-token distributions are apart at each of `places`, before any sampler."""
        if not self.places:
            return told([], [])
        left, right = (list(side) for side in zip(*self.places, strict=True)) if self.places else ([], [])
        a, b = self._logits_a, self._logits_b
        if a is not None and b is not None:
            a = a if left == list(range(len(a))) else a[left]  # without a copy where nothing is left out
            b = b if right == list(range(len(b))) else b[right]
            if self.same_vocabulary:
                return whole(a, b)
            assert self.a.tokenizer is not None and self.b.tokenizer is not None
            return shared(a, b, *vocabularies(self.a.tokenizer, self.b.tokenizer))
        found = told(*self._both_told(left, right))
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
        a, b = self.a, self.b
        if not (isinstance(a, LocalRun) and isinstance(b, LocalRun)) or a.ids != b.ids or not comparable(a.lm, b.lm):
            return ()
        return tuple(stream_differences(a.lm, b.lm, a.ids))

    @property
    def parts_in(self) -> StreamStep | None:
        """The first step in the model after which the streams differ by more than rounding; None where none does."""
        return next((step for step in self.hidden if step.apart > 1e-6), None)

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
        if self.a.tokenizer is not None and self.b.tokenizer is not None and not self.same_vocabulary:
            sides = self._by_bytes(i, j, n)
        else:
            (left,), (right,) = self._both_told([i], [j])
            sides = [
                {self.token(self.a, token): math.exp(value) for token, value in side.items()} for side in (left, right)
            ]
        best = {token for side in sides for token in sorted(side, key=side.__getitem__, reverse=True)[:n]}
        found = [Beside(token, sides[0].get(token), sides[1].get(token)) for token in best]
        return sorted(found, key=lambda each: (-max(each.a or 0.0, each.b or 0.0), each.token))

    def worst(self, n: int = 10) -> list[int]:
        """Return the n entries of `places` with the largest KL(A‖B), the largest first."""
        return np.argsort(-self.divergence.kl_ab, kind="stable")[:n].tolist()

    def _can_read(self, run: LocalRun) -> bool:
        """Whether a local model takes the tokens that the pasted side tells."""
        ids = next((each.ids for each in (self.a, self.b) if isinstance(each, Told) and each.ids), run.ids)
        whole, config = (*ids, *self._answer), run.lm.config
        return len(whole) <= config.context_length and all(0 <= i < config.vocab_size for i in whole)

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
        beyond = TOLD_DIGITS if self._is_told else ROUNDING
        place = int(np.argmax(found.largest > beyond)) if most > beyond else None
        if place is None:
            template = findings.SAME_REPORTED if self._is_told else findings.ROUNDING if most else findings.SAME_LOGITS
            return Finding("logits", True, Note(template, **({"most": f"{most:.1g}"} if "{" in template else {})))
        if self._is_told:
            return Finding("logits", False, Note(findings.REPORTED, most=f"{most:.3g}"), self.places[place][0])
        template = findings.LOGITS if self.same_vocabulary else findings.CHANCES
        values = {"kl": f"{found.kl_ab.mean():.3g}", "flips": int(found.flips.sum()), "n": len(found)}
        return Finding("logits", False, Note(template, **values), self.places[place][0])

    @property
    def _is_told(self) -> bool:
        return self._logits_a is None or self._logits_b is None

    @property
    def _logits_a(self) -> Tensor | None:
        return self._logits(self.a, self.b)

    @property
    def _logits_b(self) -> Tensor | None:
        return self._logits(self.b, self.a)

    def _logits(self, run: Run, other: Run) -> Tensor | None:
        if not isinstance(run, LocalRun):
            return None
        ids = (*(other.ids or run.ids), *self._answer) if isinstance(other, Told) else run.ids
        return run.logits if ids == run.ids else self._forward(run.lm, ids)

    @cached_property
    def _prompt(self) -> int:
        """How many tokens a pasted request's prompt has: as it says, or as the other side cuts it."""
        told_ids = next((run.ids for run in (self.a, self.b) if isinstance(run, Told) and run.ids), None)
        ids = told_ids or next((run.ids for run in (self.a, self.b) if not isinstance(run, Told)), None)
        return len(ids) if ids else 1

    @cached_property
    def _answer(self) -> tuple[int, ...]:
        """The tokens of a pasted answer but the last, by id: what the places after the prompt stand behind."""
        answers = [run.drawn for run in (self.a, self.b) if isinstance(run, Told)]
        if len(answers) == 2:  # as long as the two answers are the same
            same = findings.first_difference(*([each.token for each in answer] for answer in answers))
            return tuple(range(min(map(len, answers)) - 1 if same is None else same))
        tokenizer = next((run.tokenizer for run in (self.a, self.b) if run.tokenizer is not None), None)
        found = []
        for each in answers[0][:-1] if answers else ():
            token_id = each.token_id
            if token_id is None and tokenizer is not None:
                token_id = id_of_text(tokenizer, each.token.decode(errors="replace"))
            if token_id is None or (tokenizer is not None and token_id >= tokenizer.vocab_size):
                break
            found.append(token_id)
        return tuple(found)

    def _places_of(self, run: Run) -> Mapping[int, TopTokens]:
        return run.places_after(self._prompt) if isinstance(run, Told) else run.places

    def _tells(self, run: Run, place: int) -> bool:
        if isinstance(run, LocalRun):
            return True
        other = self.b if run is self.a else self.a
        places = self._places_of(run)
        return place in places and bool(self._by_id(places[place], other))

    def token(self, run: Run, token_id: int) -> bytes:
        """Return what a token of `divergence` is on one side, by its id there."""
        tokenizer = run.tokenizer or next((each.tokenizer for each in (self.a, self.b) if each.tokenizer), None)
        if token_id < 0:
            return next(name for name, number in self._names.items() if number == token_id).encode()
        is_known = tokenizer is not None and token_id < tokenizer.vocab_size
        return tokenizer.token_bytes(token_id) if tokenizer is not None and is_known else f"⟨{token_id}⟩".encode()

    @cached_property
    def _names(self) -> dict[str, int]:
        """Numbers below 0 for tokens that both sides name by their texts alone."""
        return {}

    def _both_told(self, left: list[int], right: list[int]) -> tuple[list[dict[int, float]], list[dict[int, float]]]:
        """Return what is known at each place on both sides, by one set of ids."""
        sides: tuple[list[dict[int, float]], list[dict[int, float]]] = ([], [])
        for i, j in zip(left, right, strict=True):
            a, b = self._told_at(self.a, i, self.b), self._told_at(self.b, j, self.a)
            # Of a side that is here, every token that the other tells is known, and its own first ones.
            for run, mine, theirs, place in ((self.a, a, b, i), (self.b, b, a, j)):
                if isinstance(run, LocalRun):
                    mine |= self._log_probs(run, place, list(theirs))
            sides[0].append(a)
            sides[1].append(b)
        return sides

    def _by_bytes(self, i: int, j: int, n: int) -> list[dict[bytes, float]]:
        """Return the n most probable tokens of both sides, each with its probability on each side that has it; those of
        the same bytes together."""
        assert self.a.tokenizer is not None and self.b.tokenizer is not None
        logits_a, logits_b = self._logits_a, self._logits_b
        assert logits_a is not None and logits_b is not None
        groups = vocabularies(self.a.tokenizer, self.b.tokenizer)
        probs = [torch.softmax(row.double(), -1).numpy() for row in (logits_a[i], logits_b[j])]
        by_group = [np.bincount(g[g >= 0], p[g >= 0], minlength=1) for g, p in zip(groups, probs, strict=True)]
        sides: list[dict[bytes, float]] = [{}, {}]
        for side, tokenizer in enumerate((self.a.tokenizer, self.b.tokenizer)):
            for token_id in np.argsort(-probs[side], kind="stable")[:n].tolist():
                token, group = tokenizer.token_bytes(token_id), groups[side][token_id]
                if group < 0:
                    sides[side][token] = float(probs[side][token_id])
                else:
                    for other in (0, 1):
                        sides[other][token] = float(by_group[other][group])
        return sides

    def _told_at(self, run: Run, place: int, other: Run) -> dict[int, float]:
        if not isinstance(run, LocalRun):
            return self._by_id(self._places_of(run)[place], other)
        return self._log_probs(run, place, [])

    def _by_id(self, candidates: TopTokens, other: Run) -> dict[int, float]:
        """Return what a server tells at one place by id; tokens named by a text are looked up in the other's
        vocabulary."""
        found: dict[int, float] = {}
        for each in candidates.best:
            token_id = each.token_id
            if other.tokenizer is None:  # one server may name tokens by text and the other by id
                name = each.text or f"⟨{token_id}⟩"
                token_id = self._names.setdefault(name, -1 - len(self._names))
            elif token_id is None:
                token_id = id_of_text(other.tokenizer, each.text)
            if token_id is not None:
                found.setdefault(token_id, each.log_prob)
        return found

    def _log_probs(self, run: LocalRun, place: int, wanted: list[int]) -> dict[int, float]:
        """Return ln P of some tokens and of the 20 most probable ones."""
        logits = self._logits_a if run is self.a else self._logits_b
        assert logits is not None
        row = torch.log_softmax(logits[place].double(), -1)
        kept = dict.fromkeys([*wanted, *row.topk(min(20, len(row))).indices.tolist()])
        return {token: float(row[token]) for token in kept if token < len(row)}


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
    forward, lock = forward or _Passes(), lock or nullcontext()
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


class _Passes:
    """Runs models, and keeps the latest logits of two of them: both sides of a comparison."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, tuple[int, ...]], Tensor] = {}

    def __call__(self, lm: LanguageModel, ids: tuple[int, ...]) -> Tensor:
        key = id(lm), ids  # the runs hold the models, so that an id is that of one model
        if key not in self._kept:
            self._kept = dict(list(self._kept.items())[-1:])
            self._kept[key] = lm(ids)
        return self._kept[key]
