"""The tokenizers that come with published models: BPE with a splitting rule, or over characters with byte fallback."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from lmcore.tokenizer.byte_alphabet import BYTE_OF_CHARACTER, to_bytes
from lmcore.tokenizer.encoding import Encoding, character_offsets, utf8
from lmcore.tokenizer.merges import MergeStep, replay_words
from lmcore.tokenizer.token_bytes import TokenBytes
from lmcore.tokenizer.tokenizer import Tokenizer

_SPACE = "▁"  # U+2581, how SentencePiece writes a space
_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
_NORMALIZERS = {"NFC", "Replace", "Prepend"}
_SPLITTERS = {"ByteLevel", "Split", "Digits", "Metaspace"}
_BEGINNERS = {"ByteLevel", "TemplateProcessing"}
_MOST_SPARE = 1024


class PretrainedTokenizer(Tokenizer):
    """Text to ids and back with a published model's own rules.

    Two families are read. Byte-level BPE splits the text by a rule into words and merges bytes within each (GPT-2,
    LLaMA 3, Qwen, SmolLM). SentencePiece-style BPE writes spaces as ▁, merges characters, and spells a character that
    it does not have as its UTF-8 bytes, <0xE4> <0xBB> ... (LLaMA 2, Gemma).

    Encoding begins with the tokens that the model was trained to see first, often a <bos>; they are counted in
    `Encoding.n_added`, hold the bytes of their written form, and touch no character of the text. Tokens that a file
    puts after a text, an </s>, are left out: here a text is there to be gone on with.

    Args:
        library: the tokenizer as the `tokenizers` library's object; it is this tokenizer's own from now on.
        source: the name of the file it came from, for errors.
        vocab_size: the rows of the model's table, where they are a few more than there are tokens, because models round
            their tables up, or a few less, because tokens were added later. The ids to spare are tokens without bytes;
            a token without a row is refused where a text has it.

    Raises:
        ValueError: the tokenizer has a part that is not read, or the table another size; the sentence names it.
    """

    def __init__(
        self, library: tokenizers.Tokenizer, source: str = "tokenizer.json", vocab_size: int | None = None
    ) -> None:
        """Read the library's object."""
        rules = {name: _steps(getattr(library, name)) for name in ("normalizer", "pre_tokenizer", "post_processor")}
        _require_known(library, rules, source)
        self.merges_bytes = any(step["type"] == "ByteLevel" for step in rules["pre_tokenizer"])
        written: dict[str, int] = library.get_vocab(with_added_tokens=True)
        added = library.get_added_tokens_decoder()
        size = len(written) if vocab_size is None else vocab_size
        highest, spare = max(written.values(), default=-1), 0 if vocab_size is None else _MOST_SPARE
        if abs(len(written) - size) > spare or highest >= size + spare:
            raise ValueError(
                f"{source} has {len(written)} tokens, the highest with the id {highest}; "
                f"the model's table has {size} rows: they do not belong together."
            )
        self.without_row = {token: token_id for token, token_id in written.items() if token_id >= size}
        """Tokens whose id lies behind the model's table."""
        tokens = [b""] * size
        for token, token_id in written.items():
            if token_id >= size:
                continue
            tokens[token_id] = token.encode() if token_id in added else self._to_bytes(token)
        self._bytes = TokenBytes(tokens)
        self.special_tokens = {token.content: i for i, token in added.items() if token.special and i < size}
        self.added_first = _added_first(rules["post_processor"])
        """The ids that every encoding begins with."""
        self._as_text = _set_up(library, special_as_text=True)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], vocab_size: int | None = None) -> PretrainedTokenizer:
        """Read a tokenizer.json.

        Args:
            path: the file.
            vocab_size: the rows of the model's table, as in the class.
        """
        source = Path(path).name
        try:
            library = tokenizers.Tokenizer.from_file(os.fspath(path))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"{source} is not read by the tokenizers library: {error}.") from None
        return cls(library, source, vocab_size)

    def encode(self, text: str, special_tokens: bool = False, add_first: bool = True) -> Encoding:
        """The text as tokens, after the tokens the model expects first; see `Tokenizer.encode`."""
        utf8(text)
        found = (self._as_control if special_tokens else self._as_text).encode(text, add_special_tokens=False)
        if beyond := next((i for i in found.ids if i >= len(self._bytes)), None):
            raise ValueError(
                f"the text has the token {self._as_text.id_to_token(beyond)!r}, whose id {beyond} has no row in the "
                f"model's table of {len(self._bytes)}; leave it out."
            )
        tokens = [self._bytes[token_id] for token_id in found.ids]
        offsets = _offsets(text, tokens)
        first = self.added_first if add_first else ()
        return Encoding(
            text,
            [*first, *found.ids],
            [*(self._bytes[token_id] for token_id in first), *tokens],
            [*((0, 0) for _ in first), *(_closed_up(found.offsets, len(text)) if offsets is None else offsets)],
            n_added=len(first),
        )

    @property
    def definition(self) -> str:
        """The content of a tokenizer.json, written anew: a large vocabulary is not kept twice."""
        return self._as_text.to_str()

    @cached_property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """The merges in rank order; a space is a space here, however the file writes it."""
        pairs = json.loads(self.definition)["model"]["merges"]
        halves = (pair.split(" ") if isinstance(pair, str) else pair for pair in pairs)
        return [(self._to_bytes(left), self._to_bytes(right)) for left, right in halves]

    def first_pieces(self, text: str) -> list[bytes]:
        """What merging a text starts from: its bytes, or its characters in a SentencePiece-style file."""
        utf8(text)
        return [piece for word in self._words(text) for piece in word]

    def _replay(self, text: str) -> list[MergeStep]:
        return replay_words(list(self._words(text)), self._ranks)

    def _words(self, text: str) -> Iterator[list[bytes]]:
        """Yield what merging starts from: for each word its bytes, or its characters in a SentencePiece-style file."""
        library = self._as_text
        if library.normalizer:
            text = library.normalizer.normalize_str(text)
        words = [word for word, _ in library.pre_tokenizer.pre_tokenize_str(text)] if library.pre_tokenizer else [text]
        for word in words:
            if self.merges_bytes:
                yield [bytes([BYTE_OF_CHARACTER[character]]) for character in word]
                continue
            pieces: list[bytes] = []
            for character in word:
                whole = self._to_bytes(character)
                known = library.token_to_id(character) is not None
                pieces += [whole] if known else [bytes([byte]) for byte in whole]
            yield pieces

    def _to_bytes(self, written: str) -> bytes:
        if self.merges_bytes:
            try:
                return to_bytes(written)
            except ValueError:  # a few files hold tokens that are no such spelling, unused or mislabelled
                return written.encode()
        if byte := _BYTE_TOKEN.fullmatch(written):
            return bytes.fromhex(byte[1])
        return written.replace(_SPACE, " ").encode()

    @cached_property
    def _as_control(self) -> tokenizers.Tokenizer:  # type: ignore[override]  # made when first asked for
        return _set_up(tokenizers.Tokenizer.from_str(self.definition), special_as_text=False)


def beginning(library: tokenizers.Tokenizer, first: str, source: str) -> tokenizers.processors.PostProcessor | None:
    """Return the rule that puts the token `first` before every text; "" is no rule.

    Raises:
        ValueError: when there is no such token.
    """
    if not first:
        return None
    token_id = library.token_to_id(first)
    if token_id is None:
        raise ValueError(f"{source}: texts are said to begin with {first!r}, which is no token.")
    return tokenizers.processors.TemplateProcessing(
        single=[first, "$A"], pair=[first, "$A", "$B"], special_tokens=[(first, token_id)]
    )


def _set_up(library: tokenizers.Tokenizer, special_as_text: bool) -> tokenizers.Tokenizer:
    library.encode_special_tokens = special_as_text
    library.no_truncation()
    library.no_padding()
    return library


def _require_known(library: tokenizers.Tokenizer, rules: Mapping[str, list[dict[str, Any]]], source: str) -> None:
    """Refuse, by name, a part that would change ids or text in a way not read here."""
    model = library.model
    if not isinstance(model, tokenizers.models.BPE):
        raise ValueError(f"{source}: model.type = {type(model).__name__!r} is not read; 'BPE' is.")
    unread: dict[str, object] = {
        f"model.{name}": getattr(model, name) for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix")
    }
    for part, known in (("normalizer", _NORMALIZERS), ("pre_tokenizer", _SPLITTERS), ("post_processor", _BEGINNERS)):
        unread[part] = next((step["type"] for step in rules[part] if step["type"] not in known), None)
    for name, value in unread.items():
        if value:
            raise ValueError(f"{source}: {name} = {value!r} is not read; ids or text would come out wrong.")


def _steps(rule: object) -> list[dict[str, Any]]:
    """The steps of a normalizer, pre-tokenizer or post-processor of the library, as its JSON has them."""
    return [] if rule is None else _flat(json.loads(rule.__getstate__()))  # type: ignore[attr-defined, arg-type]


def _flat(step: dict[str, Any]) -> list[dict[str, Any]]:
    if step["type"] != "Sequence":
        return [step]
    inner = next(value for name, value in step.items() if name != "type")
    return [part for each in inner for part in _flat(each)]


def _added_first(post_processor: list[dict[str, Any]]) -> tuple[int, ...]:
    """The ids a post-processor puts before a text."""
    first: list[int] = []
    for step in post_processor:
        if step["type"] == "TemplateProcessing":
            for piece in step["single"]:
                if "Sequence" in piece:
                    break
                first += step["special_tokens"][piece["SpecialToken"]["id"]]["ids"]
    return tuple(first)


def _offsets(text: str, tokens: list[bytes]) -> list[tuple[int, int]] | None:
    """The characters each token touches; None where the tokens' bytes are not the text's, and the library must say."""
    if not all(tokens):
        return None
    joined = b"".join(tokens)
    if joined == text.encode():
        return character_offsets(text, tokens)
    if joined == b" " + text.encode():  # LLaMA 2 puts a space before the first word
        return [(max(start - 1, 0), end - 1) for start, end in character_offsets(" " + text, tokens)]
    return None


def _closed_up(offsets: list[tuple[int, int]], end_of_text: int) -> list[tuple[int, int]]:
    """The library's offsets, where characters that were joined into one by normalising belong to its token.

    >>> _closed_up([(0, 1), (0, 1), (2, 6)], 6)
    [(0, 2), (0, 2), (2, 6)]
    """
    starts = sorted({start for start, _ in offsets} | {end_of_text})
    following = dict(zip(starts, starts[1:], strict=False))
    return [(start, max(end, following.get(start, end))) for start, end in offsets]
