"""The tokenizers that come with published models: BPE with a splitting rule, or over characters with byte fallback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import tokenizers

from lmcore.tokenizer.byte_alphabet import BYTE_OF_CHARACTER, to_bytes
from lmcore.tokenizer.encoding import Encoding, character_offsets
from lmcore.tokenizer.merges import MergeStep, replay_words
from lmcore.tokenizer.tokenizer import Tokenizer

_SPACE = "▁"  # U+2581, how SentencePiece writes a space
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
_NORMALIZERS = {"NFC", "Replace", "Prepend"}
_SPLITTERS = {"ByteLevel", "Split", "Digits", "Metaspace"}


class PretrainedTokenizer(Tokenizer):
    """Text to ids and back with a published model's own rules.

    Two families are read. Byte-level BPE splits the text by a rule into words and merges bytes within each (GPT-2,
    LLaMA 3, Qwen, SmolLM). SentencePiece-style BPE writes spaces as ▁, merges characters, and spells a character that
    it does not have as its UTF-8 bytes, <0xE4> <0xBB> ... (LLaMA 2, Gemma).

    Encoding begins with the tokens that the model was trained to see first, often a <bos>; they are counted in
    `Encoding.n_added`, hold the bytes of their written form, and touch no character of the text.

    Args:
        definition: a tokenizer file's content (the `tokenizers` library's JSON).
        source: the file's name, for errors.

    Raises:
        ValueError: the definition has a part that is not read; the sentence names it and the file.
    """

    def __init__(self, definition: str, source: str = "tokenizer.json") -> None:
        """Read the definition."""
        fields = _read(definition, source)
        self._byte_level = "ByteLevel" in {part["type"] for part in _parts(fields.get("pre_tokenizer"))}
        written: dict[str, int] = dict(fields["model"]["vocab"])
        added = {token["content"]: token for token in fields.get("added_tokens") or ()}
        written |= {content: token["id"] for content, token in added.items()}
        if sorted(written.values()) != list(range(len(written))):
            raise ValueError(f"{source}: model.vocab has {len(written)} tokens, but their ids are not 0 to {len(written) - 1}.")
        self.special_tokens = {content: token["id"] for content, token in added.items() if token["special"]}
        self._bytes = [b""] * len(written)
        for token, token_id in written.items():
            self._bytes[token_id] = token.encode() if token in added else self._to_bytes(token)
        self.added_first = _added_first(fields.get("post_processor"), self.special_tokens, source)
        """The ids that every encoding begins with."""
        try:
            self._as_text = _library_object(definition, special_as_text=True)
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"{source} is not read by the tokenizers library: {error}.") from None

    def encode(self, text: str, special_tokens: bool = False) -> Encoding:
        """The text as tokens, after the tokens the model expects first; see `Tokenizer.encode`."""
        self._check(text)
        found = (self._as_text if not special_tokens else self._as_control).encode(text, add_special_tokens=False)
        tokens = [self._bytes[token_id] for token_id in found.ids]
        offsets = _offsets(text, tokens)
        first = self.added_first
        return Encoding(
            text,
            [*first, *found.ids],
            [*(self._bytes[token_id] for token_id in first), *tokens],
            [*((0, 0) for _ in first), *(found.offsets if offsets is None else offsets)],
            n_added=len(first),
        )

    @cached_property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """The merges in rank order; a space is a space here, however the file writes it."""
        pairs = json.loads(self.definition)["model"]["merges"]
        halves = (pair.split(" ") if isinstance(pair, str) else pair for pair in pairs)
        return [(self._to_bytes(left), self._to_bytes(right)) for left, right in halves]

    def _replay(self, text: str) -> list[MergeStep]:
        return replay_words(list(self._words(text)), self._ranks)

    def _words(self, text: str) -> Iterator[list[bytes]]:
        """Yield what merging starts from: for each word its bytes, or its characters in a SentencePiece-style file."""
        library = self._as_text
        normal = library.normalizer.normalize_str(text) if library.normalizer else text
        words = [word for word, _ in library.pre_tokenizer.pre_tokenize_str(normal)] if library.pre_tokenizer else [normal]
        for word in words:
            if self._byte_level:
                yield [bytes([BYTE_OF_CHARACTER[character]]) for character in word]
            else:
                known = [(self._to_bytes(character), library.token_to_id(character)) for character in word]
                yield [piece for whole, token_id in known for piece in ([whole] if token_id is not None else map(_byte, whole))]

    def _to_bytes(self, written: str) -> bytes:
        if self._byte_level:
            # A few files hold tokens that are no byte-level spelling (unused or mislabelled); no text reaches them.
            return to_bytes(written) if BYTE_OF_CHARACTER.keys() >= set(written) else written.encode()
        if byte := _BYTE_TOKEN.fullmatch(written):
            return bytes.fromhex(byte[1])
        return written.replace(_SPACE, " ").encode()

    @property
    def definition(self) -> str:
        """The tokenizer file's content, written anew: a large vocabulary is not kept twice."""
        return self._as_text.to_str()

    @cached_property
    def _as_control(self) -> tokenizers.Tokenizer:
        return _library_object(self.definition, special_as_text=False)


def _library_object(definition: str, special_as_text: bool) -> tokenizers.Tokenizer:
    made = tokenizers.Tokenizer.from_str(definition)
    made.encode_special_tokens = special_as_text
    made.no_truncation()
    made.no_padding()
    return made


def _byte(value: int) -> bytes:
    return bytes([value])


def _read(definition: str, source: str) -> dict[str, Any]:
    """The fields of a definition, every part of it known to be read right."""
    try:
        fields = json.loads(definition)
        model, kind = fields["model"], fields["model"]["type"]
        if not isinstance(model["vocab"], Mapping) or not isinstance(model["merges"], list):
            raise TypeError("model.vocab is no table or model.merges no list")
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{source} is not a tokenizer.json with a BPE model ({type(error).__name__}: {error}).") from None
    unread = {"model.type": kind if kind != "BPE" else None}
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        unread[f"model.{name}"] = model.get(name)
    for part, known in (("normalizer", _NORMALIZERS), ("pre_tokenizer", _SPLITTERS)):
        unread[part] = next((step["type"] for step in _parts(fields.get(part)) if step["type"] not in known), None)
    for name, value in unread.items():
        if value:
            raise ValueError(f"{source}: {name} = {value!r} is not read; its ids or its text would come out wrong.")
    return fields


def _parts(rule: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """The steps of a normalizer, pre-tokenizer or post-processor, a sequence being its steps."""
    if not rule:
        return []
    if rule["type"] != "Sequence":
        return [rule]
    steps = next(value for name, value in rule.items() if name != "type")
    return [part for step in steps for part in _parts(step)]


def _added_first(rule: Mapping[str, Any] | None, special_tokens: Mapping[str, int], source: str) -> tuple[int, ...]:
    """The ids a post-processor puts before a text."""
    first: list[int] = []
    for part in _parts(rule):
        if part["type"] == "TemplateProcessing":
            for piece in part["single"]:
                if "Sequence" in piece:
                    break
                first += part["special_tokens"][piece["SpecialToken"]["id"]]["ids"]
        elif part["type"] != "ByteLevel":
            raise ValueError(f"{source}: post_processor = {part['type']!r} is not read.")
    return tuple(first)


def _offsets(text: str, tokens: list[bytes]) -> list[tuple[int, int]] | None:
    """The characters each token touches; None where the tokens' bytes are not the text's, and the library must say."""
    joined = b"".join(tokens)
    if not all(tokens):
        return None
    if joined == text.encode():
        return character_offsets(text, tokens)
    if joined == b" " + text.encode():  # LLaMA 2 puts a space before the first word
        return [(max(start - 1, 0), end - 1) for start, end in character_offsets(" " + text, tokens)]
    return None
