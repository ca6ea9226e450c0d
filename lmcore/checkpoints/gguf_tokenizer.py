"""The tokenizer that a GGUF file describes.

A GGUF file lists tokens, their kinds, and merges or scores; how text is split before merging is
only named (`tokenizer.ggml.pre`) and has to be known: see gguf_splitting.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from lmcore.checkpoints.gguf_splitting import DEFAULT, SPLITTINGS, Splitting
from lmcore.tokenizer import PretrainedTokenizer
from lmcore.tokenizer.pretrained import beginning

_CONTROL, _USER_DEFINED = 3, 4  # of tokenizer.ggml.token_type
_SPACE = "▁"


def tokenizer_from(metadata: Mapping[str, Any], filename: str) -> PretrainedTokenizer:
    """Return the tokenizer of a GGUF file.

    Raises:
        ValueError: for a kind of tokenizer that is not read or a broken list, naming file and field.
    """
    fields = _Fields(metadata, filename)
    kind = fields.get("model", str)
    if kind not in ("gpt2", "llama"):
        raise ValueError(f"{filename}: tokenizer.ggml.model = {kind!r} is not read; 'gpt2' and 'llama' are.")
    splitting = _splitting(fields, metadata.get("general.architecture")) if kind == "gpt2" else None
    try:
        library = _sentence_piece(fields) if splitting is None else _byte_level(fields, splitting)
    except ValueError:
        raise
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"{filename}: tokenizer.ggml.* is not read by the tokenizers library: {error}.") from None
    library.add_tokens(_added_tokens(fields))
    library.post_processor = beginning(
        library, _first(fields, default=splitting is None or splitting.adds_first), filename
    )
    return PretrainedTokenizer(library, filename, vocab_size=len(fields.tokens))


class _Fields:
    """The `tokenizer.ggml.*` fields of a file, with their types checked."""

    def __init__(self, metadata: Mapping[str, Any], filename: str) -> None:
        self.filename = filename
        self._metadata = metadata
        self.tokens: list[str] = self.items("tokens", str)
        if len(set(self.tokens)) != len(self.tokens):
            self.refuse("tokens", "lists a token twice")

    def get(self, name: str, kind: type, default: Any = None) -> Any:
        value = self._metadata.get(f"tokenizer.ggml.{name}", default)
        if value is not default and (not isinstance(value, kind) or isinstance(value, bool) != (kind is bool)):
            self.refuse(name, f"is {value!r:.60}")
        return value

    def items(self, name: str, kind: type) -> list[Any]:
        values = self.get(name, list)
        if values is None or not all(isinstance(value, kind) for value in values):
            self.refuse(name, f"must be a list of {kind.__name__}")
        return values

    def token_id(self, name: str) -> int | None:
        value = self.get(name, int)
        if value is not None and not 0 <= value < len(self.tokens):
            self.refuse(name, f"is {value}, but there are {len(self.tokens)} tokens")
        return value

    def each_token(self, name: str, kind: type) -> list[Any]:
        values = self.items(name, kind)
        if len(values) != len(self.tokens):
            self.refuse(name, f"has {len(values)} entries for {len(self.tokens)} tokens")
        return values

    def refuse(self, name: str, what: str) -> NoReturn:
        raise ValueError(f"{self.filename}: tokenizer.ggml.{name} {what}.")


def names_no_splitting(metadata: Mapping[str, Any]) -> bool:
    """Whether a file does not say how its text is split: llama.cpp's default is taken, and ids may be wrong."""
    byte_level = metadata.get("tokenizer.ggml.model") == "gpt2" and metadata.get("general.architecture") != "gpt2"
    return byte_level and not metadata.get("tokenizer.ggml.pre")


def _splitting(fields: _Fields, architecture: object) -> Splitting:
    """Return the rule that the file names; old files name none, of which GPT-2's can mean one rule only."""
    pre = fields.get("pre", str) or ("gpt-2" if architecture == "gpt2" else DEFAULT)
    if pre not in SPLITTINGS:
        fields.refuse("pre", f"= {pre!r} is not known; known are {', '.join(SPLITTINGS)}")
    return SPLITTINGS[pre]()


def _byte_level(fields: _Fields, splitting: Splitting) -> Tokenizer:
    merges = [tuple(merge.split(" ")) for merge in fields.items("merges", str)]
    if wrong := next((merge for merge in merges if len(merge) != 2), None):
        fields.refuse("merges", f"has {' '.join(wrong)!r}, which is no pair")
    library = Tokenizer(models.BPE(vocab=_ids(fields.tokens), merges=merges, ignore_merges=splitting.whole_words))
    library.normalizer = normalizers.NFC() if fields.get("pre", str) == "qwen2" else None
    library.pre_tokenizer = pre_tokenizers.Sequence(splitting.steps())
    library.decoder = decoders.ByteLevel()
    return library


def _sentence_piece(fields: _Fields) -> Tokenizer:
    # Gemma's files spell runs of spaces as spaces, and their scores do not order the merges: the ids do.
    gemma = fields.get("pre", str) == "default" and "<bos>" in fields.tokens
    tokens = [_SPACE * len(token) if token and not token.strip(" ") else token for token in fields.tokens]
    scores = [-index for index in range(len(tokens))] if gemma else fields.each_token("scores", float)
    unknown = fields.token_id("unknown_token_id")
    library = Tokenizer(
        models.BPE(
            vocab=_ids(tokens),
            merges=merges_from_scores(tokens, scores),
            fuse_unk=True,
            byte_fallback=True,
            unk_token=None if unknown is None else tokens[unknown],
        )
    )
    steps: list[Any] = [normalizers.Replace(" ", _SPACE)]
    if fields.get("add_space_prefix", bool, True):
        steps.insert(0, normalizers.Prepend(_SPACE))
    library.normalizer = normalizers.Sequence(steps)
    library.decoder = decoders.Sequence([decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    return library


def merges_from_scores(tokens: Sequence[str], scores: Sequence[float]) -> list[tuple[str, str]]:
    """Return the merges, best first, of a vocabulary that gives each token a score.

    SentencePiece joins the two neighbours whose union has the highest score. So every split of a
    token into two tokens is a merge with that token's score; equal scores put the longer left half first.

    >>> merges_from_scores(["a", "b", "ab", "aba"], [0, 0, -2, -1])
    [('ab', 'a'), ('a', 'b')]
    """
    known = set(tokens)
    merges = []
    for token, _ in sorted(zip(tokens, scores, strict=True), key=lambda pair: -pair[1]):
        for cut in range(len(token) - 1, 0, -1):
            if (left := token[:cut]) in known and (right := token[cut:]) in known:
                merges.append((left, right))
    return merges


def _ids(tokens: Sequence[str]) -> dict[str, int]:
    return {token: index for index, token in enumerate(tokens)}


def _added_tokens(fields: _Fields) -> list[AddedToken]:
    """Control tokens, and those that are taken whole wherever the text has them."""
    kinds = zip(fields.tokens, fields.each_token("token_type", int), strict=True)
    return [
        AddedToken(token, special=kind == _CONTROL, normalized=False)
        for token, kind in kinds
        if kind == _CONTROL or (kind == _USER_DEFINED and token.strip(" "))
    ]


def _first(fields: _Fields, default: bool) -> str:
    """The token that the file puts before a text, "" for none."""
    if not fields.get("add_bos_token", bool, default):
        return ""
    bos = fields.token_id("bos_token_id")
    if bos is None:
        fields.refuse("bos_token_id", "is missing, but add_bos_token asks for it")
    return fields.tokens[bos]
