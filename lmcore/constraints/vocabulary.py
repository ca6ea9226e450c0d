"""A tokenizer as the grammar library reads it: the bytes of every token, and which of them end a text."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmcore.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLTokenizer

_made: weakref.WeakKeyDictionary[Tokenizer, dict[tuple[int, ...], LLTokenizer]] = weakref.WeakKeyDictionary()
_making = threading.Lock()


class _Wrapped:
    """What `llguidance.TokenizerWrapper` asks of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer, end_ids: Sequence[int]) -> None:
        self.tokens: Sequence[bytes] = [tokenizer.token_bytes(token_id) for token_id in range(tokenizer.vocab_size)]
        self.special_token_ids = sorted({*tokenizer.special_tokens.values(), *end_ids})
        self.bos_token_id = None
        self.eos_token_id = end_ids[0]
        self._tokenizer = weakref.ref(tokenizer)  # else what is made of a tokenizer would keep it in memory

    def __call__(self, text: str) -> list[int]:
        tokenizer = self._tokenizer()
        return [] if tokenizer is None else tokenizer.encode(text, add_first=False).ids


def vocabulary_of(tokenizer: Tokenizer, end_ids: Sequence[int]) -> LLTokenizer:
    """Return the library's view of a tokenizer, made once for each: a quarter of a second for 49,152 tokens.

    Args:
        tokenizer: whose tokens a mask is over.
        end_ids: the tokens that end a text, at least one.
    """
    from llguidance import LLTokenizer, TokenizerWrapper

    with _making:
        known = _made.setdefault(tokenizer, {})
        if (key := tuple(end_ids)) not in known:
            wrapped = TokenizerWrapper(_Wrapped(tokenizer, end_ids))
            known[key] = LLTokenizer(wrapped, eos_token=list(end_ids))
            wrapped.tokens = wrapped._gtokenizer.tokens = ()  # they are copied: 262,144 of them take 20 MB
        return known[key]
