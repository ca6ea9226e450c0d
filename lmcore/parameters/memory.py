"""Bytes: of a number in each dtype, and of the KV cache."""

from __future__ import annotations

from dataclasses import dataclass

from lmcore.config import ModelConfig
from lmcore.parameters.formula import product
from lmcore.parameters.published import layer_kinds, require_positions

BYTES_PER_NUMBER: dict[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "int8": 1}


def bytes_per_number(dtype: str) -> int:
    """Return the bytes of one number.

    Raises:
        ValueError: for a dtype that is not in BYTES_PER_NUMBER.
    """
    if dtype not in BYTES_PER_NUMBER:
        raise ValueError(f"dtype must be one of {', '.join(BYTES_PER_NUMBER)}, got {dtype!r}.")
    return BYTES_PER_NUMBER[dtype]


@dataclass(frozen=True)
class CacheRow:
    """What the cached keys, or values, of one kind of layer take: a product and its value in bytes."""

    name: str
    symbols: str
    formula: str
    bytes: int


def kv_cache_rows(config: ModelConfig, length: int, dtype: str = "float32") -> tuple[CacheRow, ...]:
    """Return the keys' and values' share of the KV cache of one sequence.

    A local layer keeps no more positions than its window.

    Args:
        config: a causal decoder's config.
        length: tokens in the cache.
        dtype: of the cached numbers, one of BYTES_PER_NUMBER.

    Raises:
        ValueError: for a length below 0 or above context_length, an unknown dtype, or a published
            model that is not a decoder.
    """
    if length < 0:
        raise ValueError(f"length must be at least 0, got {length}.")
    require_positions(config, length)
    width = bytes_per_number(dtype)
    rows = []
    for kind in layer_kinds(config):
        kept = length if kind.window is None else min(length, kind.window)
        symbols = f"{kind.symbol} * (n_kv_heads * d_head) * length * bytes_per_number"
        for name in "k", "v":
            row = product(symbols, config, length=kept, bytes_per_number=width)
            rows.append(CacheRow(f"blocks.attn.{name}{kind.suffix}", *row))
    return tuple(rows)


def kv_cache_bytes(config: ModelConfig, length: int, dtype: str = "float32") -> int:
    """Return the bytes of the KV cache of one sequence of `length` tokens; see kv_cache_rows.

    >>> config = ModelConfig(vocab_size=50257, d_model=768, n_layers=12, n_heads=12, context_length=1024)
    >>> kv_cache_bytes(config, 1024, "float16")  # 2 x 12 layers x 768 x 1024 tokens x 2 bytes
    37748736
    """
    return sum(row.bytes for row in kv_cache_rows(config, length, dtype))
