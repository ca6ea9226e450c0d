"""The training text of a trial: the small world's endless text, or the reader's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lmcore.corpus import HELD_OUT_SEED, windows
from lmcore.tokenizer import Tokenizer

WINDOW = 64  # tokens of context in a training window, at most
HELD_OUT_WINDOWS = 16
MAX_CHARACTERS = 20_000
MIN_TOKENS = 100
MAX_CHARACTER_TOKENS = 1000
_HELD_OUT = 0.1  # of a text of one's own


class TrialText(Protocol):
    """The interface of a training text: batches to train on, and windows kept apart."""

    def batches(self, seed: int, batch_size: int) -> Iterator[Tensor]:
        """Yield ids [batch_size, W + 1] without end; the same seed gives the same."""

    def held_out(self) -> Tensor:
        """Return windows that no training sees, ids [B, W + 1]."""


class SmallWorldText:
    """The small world: new text at every step, never the same twice.

    Args:
        tokenizer: the built-in models' own, or another with its special token.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def batches(self, seed: int, batch_size: int) -> Iterator[Tensor]:
        """Yield batches of windows drawn anew."""
        return map(torch.from_numpy, windows(seed, batch_size, WINDOW, self._tokenizer))

    def held_out(self) -> Tensor:
        """Return windows of a seed that training does not use."""
        return torch.from_numpy(next(windows(HELD_OUT_SEED, HELD_OUT_WINDOWS, WINDOW, self._tokenizer)))


class OwnText:
    """A text of the reader's own: windows from anywhere in its first nine tenths; the last tenth is held out.

    Args:
        text: at most MAX_CHARACTERS characters and at least MIN_TOKENS tokens.
        tokenizer: whose ids the model learns.

    Attributes:
        ids: the text's ids.
        window: tokens of context in a window: WINDOW, or fewer in a short text.

    Raises:
        ValueError: for a text that is too short or too long, saying by how much.
    """

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"the text has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read: shorten it.")
        self.ids = torch.tensor(tokenizer.encode(text).ids, dtype=torch.long)
        if len(self.ids) < MIN_TOKENS:
            raise ValueError(f"the text has {len(self.ids)} tokens; at least {MIN_TOKENS} are needed: add more.")
        n_held_out = max(int(_HELD_OUT * len(self.ids)), MIN_TOKENS // 3)
        self._train, self._held_out = self.ids[:-n_held_out], self.ids[-n_held_out:]
        self.window = min(WINDOW, n_held_out - 1)

    def batches(self, seed: int, batch_size: int) -> Iterator[Tensor]:
        """Yield batches of windows that begin anywhere in the part for training."""
        rng, within = np.random.default_rng(seed), self._train.unfold(0, self.window + 1, 1)
        while True:
            yield within[torch.from_numpy(rng.integers(len(within), size=batch_size))]

    def held_out(self) -> Tensor:
        """Return up to HELD_OUT_WINDOWS windows, side by side, of the part kept apart."""
        return self._held_out.unfold(0, self.window + 1, self.window)[:HELD_OUT_WINDOWS]


def character_tokenizer(text: str) -> Tokenizer:
    """Return a tokenizer that makes one token of every character of `text`; others fall apart into bytes.

    It is byte-level BPE whose merges end at a character's last byte. Of more than MAX_CHARACTER_TOKENS different
    characters the most frequent get a token.

    >>> tokenizer = character_tokenizer("今天 day")
    >>> tokenizer.decode_bytes(tokenizer.encode("天 y").ids).decode(), len(tokenizer.encode("天 y").ids)
    ('天 y', 3)
    """
    characters = [character for character, _count in Counter(text).most_common(MAX_CHARACTER_TOKENS)]
    smallest = 257  # the special token and the bytes
    return Tokenizer.train(characters, smallest + sum(len(character.encode()) - 1 for character in characters))
