"""The small world: a grammar in Chinese and English whose every probability is known exactly."""

from lmcore.corpus.truth import Truth
from lmcore.corpus.vocabulary import build_tokenizer
from lmcore.corpus.windows import HELD_OUT_SEED, windows
from lmcore.corpus.world import END_OF_TEXT, SmallWorld, small_world

__all__ = ["END_OF_TEXT", "HELD_OUT_SEED", "SmallWorld", "Truth", "build_tokenizer", "small_world", "windows"]
