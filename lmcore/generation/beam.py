"""Beam search: at every step the few most probable beginnings are kept, and all of them are gone on from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from lmcore import distribution
from lmcore.generation.hypothesis import Hypothesis, best
from lmcore.generation.together import logits_after
from lmcore.language_model import LanguageModel


@dataclass(frozen=True)
class BeamStep:
    """Where a beam search is after a step.

    Attributes:
        step, n_tokens: steps done, of how many.
        kept: the beginnings it goes on from, at most `width`, the most probable first.
        dropped: the most probable of those it gave up at this step, at most `width`.
        finished: those that ended at a stop token, the most probable first.
        width: how many are kept.
    """

    step: int
    n_tokens: int
    kept: tuple[Hypothesis, ...]
    dropped: tuple[Hypothesis, ...]
    finished: tuple[Hypothesis, ...]
    width: int

    @property
    def best(self) -> tuple[Hypothesis, ...]:
        """The most probable of all it has, finished or not, at most `width`."""
        return tuple(best([*self.finished, *self.kept], self.width))


def beam_search(
    lm: LanguageModel, ids: Sequence[int], width: int, n_tokens: int, stop_ids: Collection[int] = ()
) -> Iterator[BeamStep]:
    """Look for the most probable continuation of a prompt; a width of 1 is greedy decoding.

    Scores are sums of ln P without a penalty or reward for length, so a text that ends early competes as it is. Of
    the candidates of a step, one that ends with a stop token is finished when it is among the `width` most probable,
    as in Hugging Face transformers' `generate`.

    Args:
        lm: the language model.
        ids: the prompt, at least one token.
        width: how many beginnings are kept, 1 or more.
        n_tokens: the most tokens to add.
        stop_ids: ids that end a text.

    Yields:
        A `BeamStep` after each token. The search ends early when nothing is left to go on from, or nothing that
        could still overtake the finished ones.

    Raises:
        ValueError: for an empty prompt, too little room in the context, or width or n_tokens below 1.
    """
    check_search(lm, ids, n_tokens)
    if width < 1:
        raise ValueError(f"width is {width}; keep at least 1 beginning.")
    ends = frozenset(stop_ids)
    cache = lm.new_cache(len(ids) + n_tokens)
    logits = lm(list(ids), cache=cache)[-1:]
    kept, finished = [Hypothesis()], list[Hypothesis]()
    for step in range(1, n_tokens + 1):
        log_probs = distribution.log_softmax(logits)  # [len(kept), V]
        scores = log_probs + log_probs.new_tensor([[each.log_prob] for each in kept])
        # Each beginning can be followed by every stop token: with so many candidates, `width` of them go on.
        order = distribution.top(scores.flatten(), (1 + max(len(ends), 1)) * width).ids.tolist()
        rows, running, dropped = [], list[Hypothesis](), list[Hypothesis]()
        for place, (row, token_id) in enumerate(divmod(each, lm.config.vocab_size) for each in order):
            found = kept[row].followed_by(token_id, float(log_probs[row, token_id]), token_id in ends)
            if found.ended and place < width:
                finished.append(found)
            elif not found.ended and len(running) < width:
                running.append(found)
                rows.append(row)
            else:
                dropped.append(found)
        kept = running
        finished = best(finished, width)
        yield BeamStep(step, n_tokens, tuple(kept), tuple(dropped[:width]), tuple(finished), width)
        overtaken = len(finished) == width and kept and kept[0].log_prob < finished[-1].log_prob
        if not kept or overtaken or step == n_tokens:
            return
        cache = cache.select(rows)
        logits = logits_after(lm, ids, [each.ids for each in kept], cache)


def check_search(lm: LanguageModel, ids: Sequence[int], n_tokens: int) -> None:
    """Refuse a search that cannot be done.

    Raises:
        ValueError: for an empty prompt, too little room in the context, or n_tokens below 1.
    """
    if not ids:
        raise ValueError("ids is empty; a search continues a prompt of at least one token.")
    if n_tokens < 1:
        raise ValueError(f"n_tokens is {n_tokens}; look at least 1 token ahead.")
    limit = lm.config.context_length
    if len(ids) + n_tokens > limit:
        raise ValueError(f"{len(ids)} tokens and {n_tokens} more do not fit into context_length = {limit}.")
