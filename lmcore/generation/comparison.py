"""Greedy decoding, beam search and exhaustive search on one prompt, for their answers to be held side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from lmcore.generation.beam import BeamStep, beam_search
from lmcore.generation.exhaustive import SearchStep, exhaustive_search
from lmcore.generation.hypothesis import Hypothesis
from lmcore.language_model import LanguageModel


@dataclass(frozen=True)
class Searches:
    """What the three have found so far.

    Attributes:
        n_tokens: the most tokens of a text.
        greedy: greedy decoding's text, as long as it has become.
        beam: each step of the beam search.
        exhaustive: where the exhaustive search is; None before it begins, or without it.
        done: the share of the work that is done, from 0 to 1.
    """

    n_tokens: int
    greedy: Hypothesis = Hypothesis()
    beam: tuple[BeamStep, ...] = ()
    exhaustive: SearchStep | None = None
    done: float = 0.0

    @property
    def found(self) -> Hypothesis:
        """The most probable whole text of all that was met."""
        known = [self.greedy, *(self.beam[-1].best if self.beam else ())]
        known += self.exhaustive.found if self.exhaustive else ()
        whole = [each for each in known if each.ended or len(each.ids) == self.n_tokens]
        return max(whole or [self.greedy], key=lambda each: each.log_prob)


def compare_searches(
    lm: LanguageModel, ids: Sequence[int], width: int, n_tokens: int, stop_ids: Collection[int], exhaustive: bool
) -> Iterator[Searches]:
    """Search in turn; see `beam_search` and `exhaustive_search` for the arguments and errors."""
    found = Searches(n_tokens)
    last = 2 * n_tokens + (n_tokens if exhaustive else 0)
    for step in beam_search(lm, ids, 1, n_tokens, stop_ids):
        found = replace(found, greedy=step.best[0], done=step.step / last)
        yield found
    for step in beam_search(lm, ids, width, n_tokens, stop_ids):
        found = replace(found, beam=(*found.beam, step), done=(n_tokens + step.step) / last)
        yield found
    if exhaustive:
        for state in exhaustive_search(lm, ids, n_tokens, max(width, 3), stop_ids):
            found = replace(found, exhaustive=state, done=(2 * n_tokens + state.length) / last)
            yield found
    yield replace(found, done=1.0)
