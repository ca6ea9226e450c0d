"""Ways to split a text that can be compared: characters, bytes, a model's tokenizer, any tokenizer.json."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import tokenizers
from tokenizers import models

from lmcore.tokenizer.cuts import Cuts, byte_of_character, cuts_of_lengths
from lmcore.tokenizer.encoding import utf8
from lmcore.tokenizer.tokenizer import Tokenizer
from lmcore.tokenizer.unigram import Segmented, Unigram, words_of


class Vocabulary(Protocol):
    """The interface of a vocabulary."""

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""

    def cut(self, text: str, special_tokens: bool = False) -> Cuts:
        """Return the text's tokens; special strings in it are text, or control tokens where there are any.

        Raises:
            ValueError: the text holds half of a surrogate pair.
        """

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of one token."""

    def read(self, text: str) -> str:
        """Return the text after normalisation."""


class Characters:
    """Every Unicode character is a token, its code point the id; surrogates are none, so V = 1,112,064.

    >>> Characters().cut("a好").ids.tolist()
    [97, 22909]
    """

    vocab_size = 0x110000 - 0x800

    def cut(self, text: str, special_tokens: bool = False) -> Cuts:
        """Return one token per character."""
        lengths = np.diff(byte_of_character(text))
        ids = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        return cuts_of_lengths(ids, lengths, ids.tobytes().decode("utf-32-le"))

    def token_bytes(self, token_id: int) -> bytes:
        """Return the character's UTF-8."""
        return chr(token_id).encode()

    def read(self, text: str) -> str:
        """Return the text: nothing is normalised."""
        return text


class Bytes:
    """Every byte of the UTF-8 is a token: V = 256 and no text is too strange, but the sequences are long.

    >>> Bytes().cut("a好").ids.tolist()
    [97, 229, 165, 189]
    """

    vocab_size = 256

    def cut(self, text: str, special_tokens: bool = False) -> Cuts:
        """Return one token per byte."""
        ids = np.frombuffer(utf8(text), dtype=np.uint8)
        return cuts_of_lengths(ids, np.ones(len(ids), dtype=np.int64), ids.tobytes().decode())

    def token_bytes(self, token_id: int) -> bytes:
        """Return the byte."""
        return bytes([token_id])

    def read(self, text: str) -> str:
        """Return the text: nothing is normalised."""
        return text


class OfTokenizer:
    """A model's tokenizer as a vocabulary.

    Args:
        tokenizer: one that reads byte-level BPE or a SentencePiece-style file.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.vocab_size = tokenizer.vocab_size

    @cached_property
    def _lengths(self) -> np.ndarray:
        lengths = (len(self.tokenizer.token_bytes(token_id)) for token_id in range(self.vocab_size))
        return np.fromiter(lengths, dtype=np.int64, count=self.vocab_size)

    def cut(self, text: str, special_tokens: bool = False) -> Cuts:
        """Return the text's tokens, after those the model expects in front."""
        ids, n_added = self.tokenizer.encode_ids(text, special_tokens), len(self.tokenizer.added_first)
        back = self.tokenizer.decode_bytes(ids[n_added:].tolist())
        if back == text.encode():
            lengths = self._lengths[ids]
            lengths[:n_added] = 0
            return cuts_of_lengths(ids, lengths, text, n_added)
        offsets = self.tokenizer.encode(text, special_tokens).offsets  # the text was changed: slower, and right
        spans = byte_of_character(text)[np.array(offsets, dtype=np.int64).reshape(-1, 2)]
        return Cuts(ids, spans[:, 0], spans[:, 1], back.decode("utf-8", errors="replace"), n_added)

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes of one token."""
        return self.tokenizer.token_bytes(token_id)

    def read(self, text: str) -> str:
        """Return the text as its tokens have it."""
        return self.cut(text).decoded


class OfLibrary:
    """Whatever the `tokenizers` library reads, normalisers and unknown tokens included: it may lose a part of the text.

    A token's bytes here are how the file writes it ("##ing", "▁the").

    Args:
        library: the library's object; it is this vocabulary's own from now on.
    """

    def __init__(self, library: tokenizers.Tokenizer) -> None:
        library.encode_special_tokens = True
        library.no_truncation()
        library.no_padding()
        self._library = library
        self.vocab_size = library.get_vocab_size(with_added_tokens=True)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> OfLibrary:
        """Read a tokenizer.json of any kind.

        Raises:
            ValueError: when the library does not read it.
        """
        try:
            return cls(tokenizers.Tokenizer.from_file(os.fspath(path)))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"{Path(path).name} is not read by the tokenizers library: {error}.") from None

    def cut(self, text: str, special_tokens: bool = False) -> Cuts:
        """Return the text's tokens, without those that a model's input would have around them."""
        places = byte_of_character(text)
        library = self._as_control if special_tokens else self._library
        found = library.encode(text, add_special_tokens=False)
        spans = places[np.array(found.offsets, dtype=np.int64).reshape(-1, 2)]
        ids = np.array(found.ids, dtype=np.int64)
        return Cuts(ids, spans[:, 0], spans[:, 1], self._library.decode(found.ids, skip_special_tokens=False))

    @cached_property
    def _as_control(self) -> tokenizers.Tokenizer:
        library = tokenizers.Tokenizer.from_str(self._library.to_str())
        library.encode_special_tokens = False
        return library

    @cached_property
    def scored(self) -> Unigram | None:
        """The scored pieces, where the vocabulary has scores."""
        return Unigram.of_library(self._library) if isinstance(self._library.model, models.Unigram) else None

    def segment(self, text: str, n: int) -> Segmented:
        """Return the n most probable ways to cut a text; `cut` gives the first.

        Raises:
            ValueError: when the vocabulary has no scores.
        """
        if self.scored is None:
            kind = type(self._library.model).__name__
            raise ValueError(f"the model is {kind!r}, without scores; 'Unigram' has them.")
        return self.scored.segment(words_of(self._library, text), n)

    def token_bytes(self, token_id: int) -> bytes:
        """Return how the file writes the token."""
        return (self._library.id_to_token(token_id) or "").encode()

    def read(self, text: str) -> str:
        """Return the text as the file's normaliser leaves it."""
        utf8(text)
        normalizer = self._library.normalizer
        return text if normalizer is None else normalizer.normalize_str(text)
