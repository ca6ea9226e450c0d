"""Several continuations of one prompt under the same settings, all drawn side by side as one batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from lmcore import distribution
from lmcore.generation.together import logits_after
from lmcore.language_model import LanguageModel
from lmcore.sampling import History, SamplingSettings, State, draw, new_generator, reshape

MAX_SEED = 2**64


@dataclass(frozen=True)
class Continuation:
    """One text after the prompt.

    Attributes:
        seed: its own; `generate` with this seed draws the same text.
        ids: the tokens.
        log_probs: ln P of each under the model itself, at temperature 1.
        ended: whether the last one is a stop token.
        state: what stages such as mirostat carry on to the next token.
    """

    seed: int
    ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    ended: bool = False
    state: State = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Continuations:
    """What has been drawn after some steps.

    Attributes:
        texts: the continuations, of any length up to `step`.
        step, n_tokens: tokens drawn at most, of how many.
    """

    texts: tuple[Continuation, ...]
    step: int
    n_tokens: int


def continuations(
    lm: LanguageModel,
    ids: Sequence[int],
    settings: SamplingSettings,
    n: int,
    n_tokens: int,
    stop_ids: Collection[int] = (),
) -> Iterator[Continuations]:
    """Draw n continuations, the first with the settings' seed, the next with the seed after it, and so on.

    All of them take a token in one pass of the model; a text that has ended takes no further part.

    Args:
        lm: the language model.
        ids: the prompt, at least one token.
        settings: how to draw, with a seed.
        n: how many texts.
        n_tokens: the most tokens of each.
        stop_ids: ids that end a text.

    Yields:
        The texts after each token.

    Raises:
        ValueError: for an empty prompt, no seed, n or n_tokens below 1, or too little room in the context.
    """
    limit = lm.config.context_length
    if settings.seed is None:
        raise ValueError("seed is None; give one, so that every text can be drawn again.")
    if n < 1 or n_tokens < 1:
        raise ValueError(f"n is {n} and n_tokens {n_tokens}; both must be at least 1.")
    if not 1 <= len(ids) <= limit - n_tokens:
        raise ValueError(f"{len(ids)} tokens and {n_tokens} more do not fit into context_length = {limit}.")
    ends = frozenset(stop_ids)
    texts = [Continuation((settings.seed + i) % MAX_SEED) for i in range(n)]
    generators = [new_generator(text.seed) for text in texts]
    cache = lm.new_cache(len(ids) + n_tokens)
    logits = lm(list(ids), cache=cache)[-1:].expand(n, -1)
    alive = list(range(n))
    cache = cache.select([0] * n)
    for step in range(1, n_tokens + 1):
        for row, i in enumerate(alive):
            texts[i] = _drawn(texts[i], logits[row], settings, ids, generators[i], ends)
        yield Continuations(tuple(texts), step, n_tokens)
        going_on = [row for row, i in enumerate(alive) if not texts[i].ended]
        if not going_on or step == n_tokens:
            return
        if len(going_on) < len(alive):
            alive, cache = [alive[row] for row in going_on], cache.select(going_on)
        logits = logits_after(lm, ids, [texts[i].ids for i in alive], cache)


def _drawn(
    text: Continuation,
    logits: torch.Tensor,
    settings: SamplingSettings,
    prompt: Sequence[int],
    generator: torch.Generator,
    ends: frozenset[int],
) -> Continuation:
    result = reshape(logits, settings, History(prompt, text.ids), text.state)
    token_id = draw(result, generator)
    log_prob = -float(distribution.loss_nats(logits, token_id))
    log_probs = (*text.log_probs, log_prob)
    state = result.next_state(token_id)
    return replace(text, ids=(*text.ids, token_id), log_probs=log_probs, ended=token_id in ends, state=state)
