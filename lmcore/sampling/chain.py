"""Run the stages one after another and keep what each did: `reshape(logits, settings) -> Reshaped`.

    logits [V] -> candidates -> stage -> candidates -> ... -> candidates -> probs [V]
                      \\__________ AppliedStage: before, after, note __________/

A stage of chance splits the way in two, each with its weight; what is drawn from is their mixture. A stage with state
is given the state of this token, and the result says what the state would be after each possible next one.

Only the final candidates are computed at once, because this runs for every token of a text. All that is as long as
the vocabulary (a step's probs, what it removed) is computed when it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from lmcore.distribution import ArrayLike, entropy_bits
from lmcore.sampling import registry
from lmcore.sampling.candidates import Candidates
from lmcore.sampling.settings import SamplingSettings
from lmcore.sampling.stage import NOTHING, Context, History, Note, Stage

__all__ = ["ONE_CANDIDATE", "Reshaped", "State", "AppliedStage", "Way", "reshape"]

ONE_CANDIDATE = "1 candidate is left: the seed has no effect"
State = Mapping[str, Any]
"""What the stages carry from token to token, by the stage's name; a stage without an entry begins anew."""


@dataclass(frozen=True, eq=False)
class AppliedStage:
    """What one stage did. Ids are int64, ascending; probabilities and masses float64.

    Attributes:
        name: The stage: "top_k".
        settings: The fields it used, for a label: {"top_k": 50}.
        before: The candidates it was given.
        after: The candidates it left.
        note: A remark such as "top_k 500 was clamped to the 5 tokens of the vocabulary", or "".
    """

    name: str
    settings: Mapping[str, Any]
    before: Candidates
    after: Candidates
    note: Note = NOTHING

    @property
    def kept(self) -> int:
        """How many tokens are left after this step."""
        return len(self.after)

    @property
    def kept_ids(self) -> Tensor:
        """`[kept]`, the tokens left after this step."""
        return self.after.token_ids

    @cached_property
    def removed_ids(self) -> Tensor:
        """The tokens this step, and no earlier one, took out of play."""
        removed = torch.zeros(self.before.vocab_size, dtype=torch.bool)
        removed[self.before.token_ids] = True
        removed[self.after.token_ids] = False
        return removed.nonzero().squeeze(1)

    @cached_property
    def removed_mass(self) -> float:
        """Probability of the removed tokens in the distribution that entered this step, from 0 to 1."""
        return float(self.before.dense()[self.removed_ids].sum())

    @cached_property
    def probs(self) -> Tensor:
        """`[V]`, the distribution after this step."""
        return self.after.dense()

    @property
    def entropy_bits(self) -> float:
        """Entropy of the distribution after this step, in bits."""
        return float(entropy_bits(self.after.probs))


@dataclass(frozen=True, eq=False)
class Way:
    """One way through the stages: what chance decided, with its probability.

    Attributes:
        weight: From 0 to 1; the weights of all ways sum to 1.
        steps: One for each active stage, in the order they ran.
        final: The candidates at the end.
        is_retry: Whether it is taken because the token drawn first was not allowed.
    """

    weight: float
    steps: tuple[AppliedStage, ...]
    final: Candidates
    is_retry: bool = False


@dataclass(frozen=True, eq=False)
class Reshaped:
    """A reshaped distribution and the way it came about.

    Attributes:
        settings: What was asked for.
        start: Every possible token with its logit, as given.
        ways: One, unless a stage of chance split it; the one in which chance acts comes first.
        state: What the stages were given from the token before.
        allowed: `[V]` booleans, the mask that came before the first stage; None where there was none.
    """

    settings: SamplingSettings
    start: Candidates
    ways: tuple[Way, ...]
    state: State
    allowed: Tensor | None = None

    @property
    def steps(self) -> tuple[AppliedStage, ...]:
        """The steps of the first way, one for each active stage, in the order they ran; empty if none was active."""
        return self.ways[0].steps

    @cached_property
    def final(self) -> Candidates:
        """The tokens that can be drawn, with the mixture of all ways as their distribution."""
        if len(self.ways) == 1:
            return self.ways[0].final
        return Candidates.mixture([(way.weight, way.final) for way in self.ways])

    @cached_property
    def probs(self) -> Tensor:
        """`[V]` float64, the distribution to draw from; sums to 1."""
        return self.final.dense()

    @cached_property
    def initial_probs(self) -> Tensor:
        """`[V]` float64, the softmax of the logits as given: temperature 1 and nothing else."""
        return self.start.dense()

    @property
    def candidates(self) -> int:
        """How many tokens can be drawn."""
        return len(self.final)

    @property
    def kept_ids(self) -> Tensor:
        """`[candidates]` int64, the tokens that can be drawn, ascending."""
        return self.final.token_ids

    @cached_property
    def removed_by(self) -> Tensor:
        """`[V]` int64: the index in `steps` of the one that removed the token; -1 kept; -2 impossible at the start.

        A token that is left on any way is kept. What the mask does not allow counts as impossible.
        """
        fate = torch.full((self.start.vocab_size,), -2)
        fate[_entering(self.start, self.allowed).token_ids] = -1
        for index, step in enumerate(self.steps):
            fate[step.removed_ids] = index
        fate[self.final.token_ids] = -1
        return fate

    @cached_property
    def removed(self) -> Tensor:
        """`[V]` booleans: the tokens that were possible at the start and can no longer be drawn."""
        gone = torch.zeros(self.start.vocab_size, dtype=torch.bool)
        gone[self.start.token_ids] = True
        gone[self.final.token_ids] = False
        return gone

    @cached_property
    def removed_mass(self) -> float:
        """Probability, at temperature 1, of all the tokens that can no longer be drawn."""
        return float(self.initial_probs[self.removed].sum())

    @property
    def entropy_bits(self) -> float:
        """Entropy of `probs` in bits."""
        return float(entropy_bits(self.final.probs))

    @property
    def effective_vocabulary(self) -> float:
        """`2 ** entropy_bits`: the number of equally likely tokens that would be as uncertain."""
        return float(2.0**self.entropy_bits)

    @property
    def note(self) -> Note:
        """Says so where one candidate is left and the seed therefore has no effect; else ""."""
        return Note(ONE_CANDIDATE) if self.candidates == 1 else NOTHING

    def next_state(self, token_id: int) -> State:
        """Return what the stages carry on once a token was drawn: pass it to `reshape` for the next position.

        Where chance split the way, a stage after it is told the candidates of all ways mixed, as nobody says which
        way the token came by.

        Args:
            token_id: A token that can be drawn, or any other one that a reader put there instead.
        """
        state = dict(self.state)
        for place, step in enumerate(self.steps):
            stage = registry.get(step.name)
            if stage.start is None or stage.after is None:
                continue
            before, after = step.before, step.after
            if len(self.ways) > 1:
                before, after = (
                    Candidates.mixture([(way.weight, getattr(way.steps[place], side)) for way in self.ways])
                    for side in ("before", "after")
                )
            now = state.get(step.name, stage.start(self.settings))
            state[step.name] = stage.after(now, token_id, before, after, self.settings)
        return state


def reshape(
    logits: ArrayLike,
    settings: SamplingSettings | None = None,
    history: History | Sequence[int] = (),
    state: State | None = None,
    allowed: Tensor | None = None,
    retries: bool = False,
) -> Reshaped:
    """Turn the logits of one position into the distribution a token is drawn from, stage by stage.

    Args:
        logits: `[V]`, of one position; -inf marks an impossible token.
        settings: The knobs, their order and the rules; None is the plain softmax.
        history: The tokens before this position, for the penalties. `History(prompt, generated)` tells the two
            apart, which some engines do; a plain sequence of ids counts as generated.
        state: `next_state` of the result before, for stages that carry one (mirostat); None at a text's beginning.
        allowed: `[V]` booleans, a mask that is put on the logits before the first stage; None allows every token.
        retries: Whether the mask comes only where a token drawn without it is not allowed, for a second draw, as in
            llama.cpp: two ways, which are mixed.

    Returns:
        `Reshaped`: `.probs` `[V]` float64, and `.steps`, one for each active stage.

    Raises:
        ValueError: logits empty, NaN, +inf, all -inf or of more than one position; an id outside the vocabulary in
            the history or the logit bias; a bias or penalty that leaves no token or overflows; a mask of another
            size, or one that allows no possible token; retries with a stage that carries a state, which the draw that
            is not allowed would move.

    >>> result = reshape([2.3, 1.5, 3.8, 0.5, 1.2], SamplingSettings(temperature=1.5, top_k=3))
    >>> [round(p, 4) for p in result.probs.tolist()]
    [0.2323, 0.1363, 0.6314, 0.0, 0.0]
    >>> [(step.name, step.kept, round(step.removed_mass, 4)) for step in result.steps]
    [('temperature', 5, 0.0), ('top_k', 3, 0.1536)]
    """
    settings = SamplingSettings() if settings is None else settings
    seen = history if isinstance(history, History) else History(generated=history)
    start = Candidates.start(logits)

    def run(entering: Candidates) -> list[Way]:
        ways = [Way(1.0, (), entering)]
        for name in settings.active:
            stage = registry.get(name)
            ways = [after for way in ways for after in _run(stage, way, settings, seen, start, state or {})]
        return ways

    masked = run(_entering(start, allowed))
    ways = masked if allowed is None or not retries else _retried(run(start), masked, settings, allowed)
    return Reshaped(settings, start, tuple(ways), dict(state or {}), allowed)


def _retried(first: Sequence[Way], second: Sequence[Way], settings: SamplingSettings, allowed: Tensor) -> list[Way]:
    """Draw by the first ways; where the token is not allowed, by the second ones."""
    if stateful := [name for name in settings.active if registry.get(name).start is not None]:
        names = ", ".join(stateful)
        raise ValueError(
            f"{names} carries a state that a token which is not allowed would move: switch it off, or put the mask "
            "before the draw."
        )
    ways: list[Way] = []
    again = 0.0
    for way in first:
        kept = allowed[way.final.token_ids]
        share = float(way.final.probs[kept].sum())
        again += way.weight * (1 - share)
        if share > 0:
            ways.append(replace(way, weight=way.weight * share, final=way.final.keep_where(kept)))
    if again <= 0 or all(bool(allowed[way.final.token_ids].all()) for way in first):
        return ways
    return [*ways, *(replace(way, weight=way.weight * again, is_retry=True) for way in second)]


def _entering(start: Candidates, allowed: Tensor | None) -> Candidates:
    """Return what enters the first stage."""
    if allowed is None:
        return start
    if allowed.shape != (start.vocab_size,) or allowed.dtype != torch.bool:
        raise ValueError(
            f"allowed is {list(allowed.shape)} of {allowed.dtype}; it must be [{start.vocab_size}] booleans, as logits."
        )
    kept = allowed[start.token_ids]
    if not bool(kept.any()):
        raise ValueError("the mask allows no token that is possible; at least one must be left to draw.")
    return start.keep_where(kept)


def _run(
    stage: Stage, way: Way, settings: SamplingSettings, history: History, start: Candidates, state: State
) -> list[Way]:
    """Continue a way by one stage; by chance into more than one."""
    now = state.get(stage.name, stage.start(settings)) if stage.start else None
    context = Context(settings, history, start, {step.name: step.before for step in way.steps}, now)
    used = stage.used(settings)
    return [
        Way(way.weight * weight, (*way.steps, AppliedStage(stage.name, used, way.final, tokens, note)), tokens)
        for weight, tokens, note in stage.branches(way.final, context)
    ]
