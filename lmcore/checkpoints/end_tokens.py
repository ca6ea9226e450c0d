"""Which tokens end a generation, as a model's files say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_ENDS = frozenset(
    (
        *("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>"),
        *("<|endoftext|>", "<end_of_turn>", "<eos>", "</s>", "<EOT>", "<end_of_utterance>", "<｜end▁of▁sentence｜>"),
    )
)
"""Control tokens that end a text or a turn, by their common spelling."""


def from_configs(configs: Iterable[Mapping[str, Any]], vocab_size: int) -> tuple[int, ...]:
    """Return the end tokens of a folder: `eos_token_id`, a number or a list, of the first config that has one.

    Args:
        configs: generation_config.json before config.json, the order in which transformers looks.
        vocab_size: the model's; other ids are left out.

    >>> from_configs([{}, {"eos_token_id": [5, 2, 99]}, {"eos_token_id": 1}], vocab_size=10)
    (5, 2)
    """
    for config in configs:
        given = config.get("eos_token_id")
        ids = given if isinstance(given, list) else [given]
        if found := _valid(ids, vocab_size):
            return found
    return ()


def from_gguf(metadata: Mapping[str, Any], special_tokens: Mapping[str, int]) -> tuple[int, ...]:
    """Return the end tokens of a GGUF file: those its fields name, and control tokens spelled like an end.

    A file names the end of a text, of a turn and of a message (eos, eot, eom). Many name the first alone, so llama.cpp
    recognises the others by their spelling.

    >>> from_gguf({"tokenizer.ggml.eos_token_id": 2}, {"<|im_start|>": 1, "<|im_end|>": 2, "<|endoftext|>": 0})
    (2, 0)
    """
    named = (metadata.get(f"tokenizer.ggml.{kind}_token_id") for kind in ("eos", "eot", "eom"))
    vocab_size = len(metadata.get("tokenizer.ggml.tokens") or special_tokens)
    spelled = (token_id for token, token_id in special_tokens.items() if token in _ENDS)
    return _valid((*named, *spelled), vocab_size)


def _valid(ids: Iterable[Any], vocab_size: int) -> tuple[int, ...]:
    """Return those that are ids, each once."""
    return tuple(dict.fromkeys(i for i in ids if type(i) is int and 0 <= i < vocab_size))
