"""Text to ids and back: byte-level BPE with bytes, character offsets and merges to look at."""

from lmcore.tokenizer.encoding import Encoding
from lmcore.tokenizer.merges import MergeStep
from lmcore.tokenizer.pretrained import PretrainedTokenizer
from lmcore.tokenizer.text_stream import TextStream
from lmcore.tokenizer.tokenizer import REPLAY_LIMIT, Tokenizer

__all__ = ["REPLAY_LIMIT", "Encoding", "MergeStep", "PretrainedTokenizer", "TextStream", "Tokenizer"]
