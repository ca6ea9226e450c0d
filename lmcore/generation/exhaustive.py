"""Exhaustive search: the most probable continuations of all there are, with the proof that none is missing.

Of V tokens there are V ** n texts of n tokens, too many to look at. But a text is never more probable than its
beginning: once some complete texts are known, every beginning less probable than these is left, with all that follows
it. And there are few to go on from: the probabilities of all beginnings of one length sum to 1, so no more than 1 / p
of them can have a probability of p or more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch

from lmcore import distribution
from lmcore.generation.beam import beam_search, check_search
from lmcore.generation.hypothesis import Hypothesis, best
from lmcore.generation.together import logits_after
from lmcore.language_model import LanguageModel

_SEED_WIDTH = 8  # of the beam search that finds the first complete texts
_ROUNDING = 1e-4  # nats; the same text computed in another batch differs by less
_NUMBERS = 6_000_000  # logits in one pass


@dataclass(frozen=True)
class SearchStep:
    """Where an exhaustive search is.

    Attributes:
        length, n_tokens: the length of the beginnings now being gone on from, and that of the whole texts.
        examined: beginnings the model was asked about.
        waiting: beginnings of this length still to be asked about.
        found: the most probable complete texts met so far.
        done: whether they are proved to be the most probable of all.
    """

    length: int
    n_tokens: int
    examined: int
    waiting: int
    found: tuple[Hypothesis, ...]
    done: bool


def exhaustive_search(
    lm: LanguageModel, ids: Sequence[int], n_tokens: int, n_best: int = 5, stop_ids: Collection[int] = ()
) -> Iterator[SearchStep]:
    """Find the most probable continuations of n_tokens, or fewer where a stop token ends them.

    Args:
        lm: the language model.
        ids: the prompt, at least one token.
        n_tokens: the length of the continuations.
        n_best: how many to find.
        stop_ids: ids that end a text.

    Yields:
        A `SearchStep` after every pass of the model; the last one is done.

    Raises:
        ValueError: for an empty prompt, too little room in the context, or n_tokens or n_best below 1.
    """
    check_search(lm, ids, n_tokens)
    if n_best < 1:
        raise ValueError(f"n_best is {n_best}; look for at least 1 text.")
    ends, examined = frozenset(stop_ids), 0
    known = None
    for step in beam_search(lm, ids, max(_SEED_WIDTH, n_best), n_tokens, ends):
        known = step
        yield SearchStep(0, n_tokens, 0, 1, (), False)
    # What ended early is a complete text, what is shorter for another reason is none.
    seeds = [each for each in known.best if each.ended or len(each.ids) == n_tokens] if known else []
    bound = seeds[n_best - 1].log_prob if len(seeds) >= n_best else -float("inf")
    prompt = lm.new_cache(len(ids) + n_tokens)
    first = lm(list(ids), cache=prompt)[-1:]
    found: list[Hypothesis] = []
    level = [Hypothesis()]
    batch = max(_NUMBERS // (lm.config.vocab_size * 4), 1)
    for length in range(n_tokens):
        following: list[Hypothesis] = []
        for start in range(0, len(level), batch):
            group = level[start : start + batch]
            rows = prompt.select([0] * len(group))
            logits = logits_after(lm, ids, [each.ids for each in group], rows) if length else first
            examined += len(group)
            for each in _worth_it(group, logits, bound - _ROUNDING, ends):
                (found if each.ended or len(each.ids) == n_tokens else following).append(each)
            found = best(found, n_best)
            if len(found) == n_best:
                bound = max(bound, found[-1].log_prob)
            yield SearchStep(length, n_tokens, examined, len(level) - start - len(group), tuple(found), False)
        level = [each for each in best(following, len(following)) if each.log_prob >= bound - _ROUNDING]
    yield SearchStep(n_tokens, n_tokens, examined, 0, tuple(found), True)


def _worth_it(
    group: list[Hypothesis], logits: torch.Tensor, bound: float, ends: frozenset[int]
) -> Iterator[Hypothesis]:
    """Go on from a group by every token of the vocabulary; give those at least as probable as the bound."""
    log_probs = distribution.log_softmax(logits)  # [len(group), V]
    scores = log_probs + log_probs.new_tensor([[each.log_prob] for each in group])
    for row, token_id in (scores >= bound).nonzero().tolist():
        yield group[row].followed_by(token_id, float(log_probs[row, token_id]), token_id in ends)
