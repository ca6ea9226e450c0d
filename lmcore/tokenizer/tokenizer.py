"""A byte-level BPE tokenizer: any text to ids and back, exactly."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from lmcore.tokenizer.byte_alphabet import to_bytes
from lmcore.tokenizer.encoding import Encoding, character_offsets, utf8
from lmcore.tokenizer.merges import MergeStep, replay

REPLAY_LIMIT = 2_000
"""The most characters whose merges are replayed one at a time."""

_SEPARATOR = "\ue000"  # a private-use character: no word has it


class Tokenizer:
    """Text to ids and back with byte-level BPE.

    There is no normaliser and no rule that splits the text into words first, so every text, whatever its language,
    control characters or spaces, comes back byte for byte.

    Args:
        definition: A tokenizer file's content (the `tokenizers` library's JSON).

    Raises:
        ValueError: The definition is not such a tokenizer; the sentence says which part is not.
    """

    merges_bytes = True
    """Whether merging starts from bytes; where it does not, it starts from characters."""
    added_first: tuple[int, ...] = ()
    """The ids that every encoding begins with: none here."""

    def __init__(self, definition: str) -> None:
        """Read the definition."""
        merges, vocabulary, self.special_tokens = _parse(definition)
        self._merges = merges
        tokens = [b""] * len(vocabulary)
        for written, token_id in vocabulary.items():
            tokens[token_id] = written.encode() if written in self.special_tokens else to_bytes(written)
        self._bytes: Sequence[bytes] = tokens
        self._definition = definition
        # Whether special strings become control tokens is a switch on the library's object. Two objects, set once,
        # need no switching, so threads can share this tokenizer.
        self._as_text = tokenizers.Tokenizer.from_str(definition)
        self._as_text.encode_special_tokens = True
        self._as_control = tokenizers.Tokenizer.from_str(definition)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "Tokenizer":
        """Read a tokenizer.json."""
        return cls(Path(path).read_text(encoding="utf-8"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a tokenizer.json that `from_file`, or the `tokenizers` library, reads."""
        Path(path).write_text(self.definition, encoding="utf-8")

    @classmethod
    def train(
        cls, words: Iterable[str], vocab_size: int, special_tokens: Sequence[str] = ("<|endoftext|>",)
    ) -> "Tokenizer":
        """Learn merges from words that are already separated.

        No merge crosses from one word into the next, and the characters are made whole before characters are joined to
        words, so that no merge holds half a character and the beginning of another. Encoding never sees the words: it
        applies the merges to plain text.

        Args:
            words: The words, repeated as often as they occur. An English word carries its leading space.
            vocab_size: How many tokens at most: the special tokens, the 256 bytes, and one for each merge.
            special_tokens: Control tokens; they get the first ids.

        Raises:
            ValueError: vocab_size leaves no room for the bytes and special tokens, or a word holds half of a
                surrogate pair, or U+E000, which separates words internally.
        """
        smallest = 256 + len(special_tokens)
        if vocab_size < smallest:
            raise ValueError(
                f"vocab_size is {vocab_size}; it must be {smallest} or more, for the 256 bytes and "
                f"{len(special_tokens)} special tokens."
            )
        counts = Counter(words)
        for word in counts:
            utf8(word)
        if (bad := next((word for word in counts if _SEPARATOR in word), None)) is not None:
            raise ValueError(f"the word {bad!r} holds U+E000, which separates words internally; remove it.")
        # A character counted more often than all words together has its bytes merged before any two characters are.
        heavy = sum(counts.values()) + 1
        characters = sorted({character for word in counts for character in word if len(character.encode()) > 1})
        lines = [(_SEPARATOR + word) * count for word, count in sorted(counts.items())]
        lines += [(_SEPARATOR + character) * heavy for character in characters]

        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        learner = tokenizers.Tokenizer(models.BPE())
        learner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(_SEPARATOR, "removed"), byte_level])
        learner.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size,
            min_frequency=1,
            special_tokens=list(special_tokens),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        learner.train_from_iterator(lines, trainer)
        learner.pre_tokenizer = byte_level
        return cls(learner.to_str(pretty=True) + "\n")

    @property
    def kind(self) -> str:
        """How pieces are found, in the field's words: "BPE", or "BPE, bytes for unknown characters" for instance."""
        model = self._as_text.model
        falls_back = getattr(model, "byte_fallback", False)
        return type(model).__name__ + (", bytes for unknown characters" if falls_back else "")

    @property
    def definition(self) -> str:
        """The tokenizer file's content."""
        return self._definition

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """The merges in the order in which training learned them: the index is the rank."""
        return self._merges

    @cached_property
    def _ranks(self) -> dict[tuple[bytes, bytes], int]:
        return {pair: rank for rank, pair in enumerate(self.merges)}

    @property
    def vocab_size(self) -> int:
        """The number of tokens; ids are 0 .. vocab_size - 1."""
        return len(self._bytes)

    def encode(self, text: str, special_tokens: bool = False, add_first: bool = True) -> Encoding:
        """The text as tokens.

        Args:
            text: Any text.
            special_tokens: False: a special string such as <|endoftext|> in the text is text like any other.
                True: it becomes the control token.
            add_first: Whether the tokens that the model expects first are put in front. A chat template writes them
                itself.

        Raises:
            ValueError: The text holds a lone surrogate (half of a UTF-16 pair), which has no UTF-8.
        """
        utf8(text)
        ids = (self._as_control if special_tokens else self._as_text).encode(text).ids
        tokens = [self._bytes[token_id] for token_id in ids]
        return Encoding(text, ids, tokens, character_offsets(text, tokens))

    def encode_ids(self, text: str, special_tokens: bool = False) -> np.ndarray:
        """The ids that `encode` gives, alone and much sooner: for texts of megabytes."""
        utf8(text)
        (found,) = (self._as_control if special_tokens else self._as_text).encode_batch_fast(
            [text], add_special_tokens=False
        )
        return np.array([*self.added_first, *found.ids], dtype=np.int64)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of the tokens, joined; exact for every sequence of ids. A special token gives its written form."""
        ids = list(ids)
        for extreme in (min(ids), max(ids)) if ids else ():
            self.token_bytes(extreme)  # refuses one out of range
        return b"".join(map(self._bytes.__getitem__, ids))

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the tokens; bytes that are not whole characters become U+FFFD (`decode_bytes` keeps them)."""
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes of one token; ValueError if the id is not in [0, vocab_size)."""
        if not 0 <= token_id < self.vocab_size:
            raise ValueError(f"id {token_id} is not a token; this tokenizer has ids 0 to {self.vocab_size - 1}.")
        return self._bytes[token_id]

    def replay(self, text: str) -> list[MergeStep]:
        """The merges that turn the text's bytes into its tokens, one step a merge; see `merges.replay`.

        Raises:
            ValueError: The text is longer than REPLAY_LIMIT characters, or has half of a surrogate pair.
        """
        utf8(text)
        if len(text) > REPLAY_LIMIT:
            raise ValueError(
                f"the text has {len(text)} characters; merges are replayed for at most {REPLAY_LIMIT}: "
                "take a part of it."
            )
        return self._replay(text)

    def first_pieces(self, text: str) -> list[bytes]:
        """What merging a text starts from: here its single bytes."""
        return [bytes([byte]) for byte in utf8(text)]

    def _replay(self, text: str) -> list[MergeStep]:
        return replay(text.encode(), self._ranks)


def _parse(definition: str) -> tuple[list[tuple[bytes, bytes]], dict[str, int], dict[str, int]]:
    """The merges, the vocabulary and the special tokens of a definition, or a ValueError naming what is not read."""
    try:
        fields = json.loads(definition)
        model = fields["model"]
        merges, vocabulary, kind = model["merges"], dict(model["vocab"]), model["type"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"this is not a tokenizer.json with a BPE model ({type(error).__name__}: {error}).") from None
    splitter = fields.get("pre_tokenizer") or {}
    unread = {
        "model.type": (kind, kind == "BPE"),
        "model.ignore_merges": (model.get("ignore_merges"), not model.get("ignore_merges")),
        "normalizer": (fields.get("normalizer"), fields.get("normalizer") is None),
        "pre_tokenizer": (
            splitter,
            splitter.get("type") == "ByteLevel" and not splitter["use_regex"] and not splitter["add_prefix_space"],
        ),
    }
    for field, (value, read) in unread.items():
        if not read:
            raise ValueError(
                f"{field} is {value!r}; this tokenizer reads byte-level BPE without normalizer, regex or prefix space."
            )
    special = {}
    for token in fields.get("added_tokens", ()):
        vocabulary[token["content"]] = token["id"]
        special[token["content"]] = token["id"]
    pairs = [tuple(to_bytes(half) for half in (pair.split(" ") if isinstance(pair, str) else pair)) for pair in merges]
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError(f"model.vocab has {len(vocabulary)} tokens, but their ids are not 0 to {len(vocabulary) - 1}.")
    return [(left, right) for left, right in pairs], vocabulary, special
