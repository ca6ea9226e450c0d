"""The tokenizer of the small world."""

from lmcore.corpus.world import END_OF_TEXT, small_world
from lmcore.tokenizer import Tokenizer

VOCAB_SIZE = 1_600
"""Enough for every word of the grammar to be one token."""


def build_tokenizer(vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """Train the tokenizer on the words of the small world; the same result every time."""
    return Tokenizer.train(small_world().word_counts(10_000).elements(), vocab_size, (END_OF_TEXT,))
