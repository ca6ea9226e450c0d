"""What the views share: which model shows an encoding, and the prompt's tokens for it."""

from __future__ import annotations

import lmcore
from pages.common import session


def model_with(encoding: str) -> str:
    """Return the chosen model's name when it has this position encoding, else the built-in model that has."""
    if session.language_model().config.position_encoding == encoding:
        return session.model_name()
    return next(
        name
        for name, config in lmcore.builtin.configs().items()
        if config.position_encoding == encoding and config.tie_embeddings
    )


def tokens_of(name: str) -> tuple[list[bytes], list[int]]:
    """Return the prompt in tokens of a model, as many as its context holds; none for an empty prompt."""
    lm = session.language_model(name)
    found = lm.tokenizer.encode(session.prompt()[: session.MAX_CHARACTERS])
    limit = lm.config.context_length
    return found.tokens[:limit], found.ids[:limit]
