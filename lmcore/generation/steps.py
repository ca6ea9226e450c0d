"""Autoregressive generation: draw, append, repeat, one step at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lmcore.constraints import Constraint, Masks
from lmcore.kv_cache import KVCache
from lmcore.language_model import LanguageModel, as_ids
from lmcore.sampling import History, Reshaped, SamplingSettings, State, draw, new_generator, reshape


@dataclass(frozen=True, eq=False)
class GenerationStep:
    """One drawn token and the distribution it was drawn from.

    Attributes:
        position: where the token stands, counted from 0 at the start of the prompt.
        token_id: the token drawn.
        token: its bytes; not always whole characters (`lmcore.tokenizer.TextStream` joins them).
        logits: [vocab_size] float32, as the model gave them.
        result: how the settings reshaped them; `result.probs[token_id]` is the chance the token had.
    """

    position: int
    token_id: int
    token: bytes
    logits: Tensor
    result: Reshaped

    @property
    def prob(self) -> float:
        """The probability the token was drawn with."""
        return float(self.result.probs[self.token_id])


def generate(
    lm: LanguageModel,
    ids: Sequence[int],
    settings: SamplingSettings | None = None,
    *,
    max_new_tokens: int,
    stop_ids: Collection[int] = (),
    generator: torch.Generator | None = None,
    use_cache: bool = True,
    prompt_length: int | None = None,
    constraint: Constraint | None = None,
) -> Iterator[GenerationStep]:
    """Continue a prompt token by token; stop early by no longer asking.

    The iterator ends after `max_new_tokens`, after a token of `stop_ids` (which is yielded), or
    when the context is full. Each step takes exactly one number from the generator, so that the
    same seed gives the same text whatever was looked at in between.

    Args:
        lm: the language model.
        ids: the prompt, at least one token.
        settings: how to reshape and draw; None draws from the plain softmax.
        max_new_tokens: the most tokens to draw.
        stop_ids: ids that end the text.
        generator: the source of randomness; None makes one from `settings.seed`.
        use_cache: keep keys and values; without it every step runs the whole text again, to the same logits.
        prompt_length: how many of `ids` count as prompt for the penalties; None means all of them.
        constraint: what the text after `ids` has to be; what it does not allow leaves before the sampler's first stage,
            or after a draw (`Constraint.retries`).

    Returns:
        An iterator of steps.

    Raises:
        TypeError: for text in place of ids.
        ValueError: for an empty prompt, ids out of range, a prompt that leaves no room, max_new_tokens below 1, or a
            constraint that cannot be read.
    """
    given = as_ids(ids)
    if given.ndim != 1:
        raise ValueError(
            f"ids has shape {list(given.shape)}; generation continues one prompt: give its ids in one list."
        )
    prompt: list[int] = given.tolist()
    settings = SamplingSettings() if settings is None else settings
    limit = lm.config.context_length
    if isinstance(max_new_tokens, bool) or not isinstance(max_new_tokens, int) or max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be a whole number of at least 1, got {max_new_tokens!r}.")
    if not prompt:
        raise ValueError("ids is empty; generation continues a prompt of at least one token.")
    if len(prompt) > limit:
        raise ValueError(f"the prompt's {len(prompt)} tokens are more than context_length = {limit}; shorten it.")
    generator = new_generator(settings.seed) if generator is None else generator
    first_generated = len(prompt) if prompt_length is None else prompt_length
    cache = lm.new_cache(min(limit, len(prompt) + max_new_tokens)) if use_cache else None
    masks = None if constraint is None else Masks(constraint, lm.tokenizer, lm.end_tokens)
    retries = constraint is not None and constraint.retries
    ends = frozenset(stop_ids)
    return _steps(lm, prompt, settings, max_new_tokens, ends, generator, cache, first_generated, masks, retries)


def _steps(
    lm: LanguageModel,
    ids: list[int],
    settings: SamplingSettings,
    max_new_tokens: int,
    stop_ids: frozenset[int],
    generator: torch.Generator,
    cache: KVCache | None,
    first_generated: int,
    masks: Masks | None,
    retries: bool,
) -> Iterator[GenerationStep]:
    """Yield the steps; `ids` grows with each."""
    given = len(ids)
    state: State = {}  # what stages such as mirostat carry from token to token
    for _ in range(max_new_tokens):
        if cache is not None and lm.config.turns_anew(cache.length, len(ids)):
            cache.truncate(0)
        new = ids if cache is None else ids[cache.length :]
        logits = lm(new, cache=cache)[-1]
        allowed = None if masks is None else masks.allowed(ids[given:])
        history = History(ids[:first_generated], ids[first_generated:])
        result = reshape(logits, settings, history, state, allowed, retries)
        token_id = draw(result, generator)
        state = result.next_state(token_id)
        yield GenerationStep(len(ids), token_id, lm.tokenizer.token_bytes(token_id), logits, result)
        ids.append(token_id)
        is_whole = masks is not None and token_id in lm.end_tokens  # a constraint allows nothing after the end
        if is_whole or token_id in stop_ids or len(ids) > lm.config.context_length:
            return
