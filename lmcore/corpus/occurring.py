"""Which tokens of a vocabulary the small world ever uses."""

from __future__ import annotations

from functools import lru_cache

from lmcore.corpus.world import END_OF_TEXT, small_world
from lmcore.tokenizer import Tokenizer


@lru_cache(maxsize=4)
def occurring_tokens(tokenizer: Tokenizer) -> tuple[int, ...]:
    """Return the ids of all tokens that some text of the small world has, ascending.

    The others are single bytes, and pieces that only led to longer ones while the tokenizer was made: no text
    brings the model to look them up, so training moves their rows by the tied head and by weight decay alone.
    """
    words = {word for text_words in small_world().words.values() for word in text_words}
    used = {token for word in words for token in tokenizer.encode(word).ids}
    return tuple(sorted(used | {tokenizer.special_tokens[END_OF_TEXT]}))
