"""The tokens that can follow a text under a constraint.

A token is allowed where its bytes, after the text's, can still be completed to a text that the constraint allows as a
whole; it may end in the middle of a character. A token that ends the text is allowed where the text fits as it
stands, and no other control token ever is.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lmcore.constraints.constraint import Constraint, ConstraintRefused
from lmcore.constraints.vocabulary import vocabulary_of
from lmcore.tokenizer import Tokenizer

if TYPE_CHECKING:
    from llguidance import LLMatcher

_FUEL = 2_000_000  # what reading a text at once may cost the library, a seventh of a second at most


class Masks:
    """A constraint over a tokenizer's vocabulary; threads can share it.

    It remembers the text asked for last, so that a text that grows, or goes back, is not read from its start again.

    Args:
        constraint: what the text has to be.
        tokenizer: whose tokens are drawn.
        end_ids: the tokens that end a text, at least one.

    Raises:
        ConstraintRefused: the constraint cannot be read, no text fits it, or no token ends a text that is complete.

    >>> import lmcore
    >>> lm = lmcore.load("small-world")
    >>> masks = Masks(Constraint("choices", "tea\\ntoast"), lm.tokenizer, lm.end_tokens)
    >>> [lm.tokenizer.token_bytes(i) for i in masks.allowed([]).nonzero().flatten().tolist()]
    [b't']
    """

    def __init__(self, constraint: Constraint, tokenizer: Tokenizer, end_ids: Sequence[int]) -> None:
        if not end_ids:
            sentence = (
                "The model has no token that ends a text; under a constraint nothing could follow a complete one."
            )
            raise ConstraintRefused("stuck", sentence)
        self.constraint = constraint
        self._end_ids = frozenset(end_ids)
        self._begin = functools.partial(_matcher, constraint, tokenizer, tuple(end_ids))
        self._matcher = self._begin()
        self._vocab_size = tokenizer.vocab_size
        self._ids: list[int] = []  # what the matcher has read
        self._latest: tuple[tuple[int, ...], Tensor] | None = None  # the text asked for last, and its mask
        self._lock = threading.Lock()
        self.allowed(())

    def allowed(self, ids: Sequence[int]) -> Tensor:
        """Return a mask [vocab_size] of booleans: the tokens that can follow; after its end only another end token.

        Never change it in place.

        Args:
            ids: the text so far, without the prompt.

        Raises:
            ConstraintRefused: the text so far does not fit, or the grammar is too large to go on.
        """
        with self._lock:
            if self._latest is None or self._latest[0] != tuple(ids):
                self._latest = tuple(ids), self._mask(ids)
            return self._latest[1]

    def _mask(self, ids: Sequence[int]) -> Tensor:
        if self._read(ids):
            mask = torch.zeros(self._vocab_size, dtype=torch.bool)
            mask[list(self._end_ids)] = True
            return mask
        bits = np.zeros((self._vocab_size + 31) // 32, dtype=np.int32)
        self._matcher.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)
        self._check()
        return torch.from_numpy(np.unpackbits(bits.view(np.uint8), bitorder="little")[: self._vocab_size]).bool()

    def is_met(self, ids: Sequence[int]) -> bool:
        """Whether a text fits as it stands, so that it may end there.

        Raises:
            ConstraintRefused: it does not fit, and nothing that follows could change that.
        """
        with self._lock:
            self._read(ids)
            return bool(self._matcher.is_accepting())

    def _read(self, ids: Sequence[int]) -> bool:
        """Bring the matcher to a text, from the beginning it shares with the text before; return whether it has ended.

        The matcher is not told of the end token, nor of a token that does not fit: there is no way back from an error.
        """
        n = next((place for place, token_id in enumerate(ids) if token_id in self._end_ids), len(ids))
        if n < len(ids) - 1:
            raise ConstraintRefused("left", f"The text ended with token {n + 1}; a constraint allows nothing after it.")
        common = 0
        while common < min(n, len(self._ids)) and ids[common] == self._ids[common]:
            common += 1
        if len(self._ids) > common and not self._matcher.rollback(len(self._ids) - common):
            self._matcher.reset()
            common = 0
        self._ids = list(ids[:common])
        for place in range(common, n):
            if self._matcher.validate_tokens([ids[place]]) < 1:
                self._check()
                self._refuse(place)
            self._matcher.consume_token(ids[place])
            self._check()
            self._ids.append(ids[place])
        if n < len(ids) and not self._matcher.is_accepting():
            self._refuse(n)
        return n < len(ids)

    def _refuse(self, place: int) -> None:
        sentence = f"The text so far does not fit the constraint from token {place + 1} on: go back before it."
        raise ConstraintRefused("left", sentence)

    def _check(self) -> None:
        if self._matcher.is_error():
            detail = _first_line(self._matcher.get_error())
            self._matcher = self._begin()  # from an error there is no way back
            self._ids = []
            if detail.startswith("NoExtension"):
                raise self.constraint.refuse("no text of this vocabulary's tokens fits it")
            raise ConstraintRefused("stuck", f"The constraint cannot be followed any further: {detail}.", detail)


def _matcher(constraint: Constraint, tokenizer: Tokenizer, end_ids: Sequence[int]) -> LLMatcher:
    from llguidance import LLMatcher, LLParserLimits

    grammar = constraint.grammar()
    limits = LLParserLimits(verbose_errors=False, step_lexer_fuel=_FUEL)
    matcher = LLMatcher(vocabulary_of(tokenizer, end_ids), grammar, log_level=0, limits=limits)
    if matcher.is_error():
        raise constraint.refuse(_reason(matcher.get_error()))
    return matcher


def _reason(message: str) -> str:
    """Return the part of the library's message that is about the reader's text, not about the grammar around it.

    >>> _reason('at 2(8): invalid regex "(" (in regex): parse error:\\n  (\\n  ^\\nerror: unclosed group\\n  1 |')
    'unclosed group'
    >>> _reason('at 2(8): failed to compile JSON schema: Unimplemented keys: ["not"]\\n   1 | %json')
    'Unimplemented keys: ["not"]'
    """
    for mark in ("\nerror: ", "failed to compile JSON schema: ", "): "):
        if mark in message:
            return _first_line(message.split(mark, 1)[1])
    return _first_line(message)


def _first_line(message: str) -> str:
    return message.strip().split("\n", 1)[0].strip().rstrip(".")[:300]
