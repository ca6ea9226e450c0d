"""Memory of parameters and of the KV cache, against the numbers' own sizes and our cache."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmcore.config import ModelConfig
from lmcore.kv_cache import KVCache
from lmcore.parameters import BYTES_PER_NUMBER, PRESETS, count, kv_cache_bytes
from tests.lmcore.parameters.peers import small_configs


def test_memory_of_the_parameters() -> None:
    counted = count(PRESETS["llama-7b"])
    for dtype, width in BYTES_PER_NUMBER.items():
        assert width == torch.empty((), dtype=getattr(torch, dtype)).element_size()
        assert counted.memory_bytes(dtype) == width * 6_738_415_616


@given(small_configs(), st.integers(1, 6))
def test_kv_cache_bytes_are_those_of_our_cache(config: ModelConfig, length: int) -> None:
    new = torch.zeros(config.n_kv_heads, length, config.d_head)
    held = [tensor.nbytes for layer in KVCache(config) for tensor in layer.extend(0, new, new)]
    assert kv_cache_bytes(config, length) == sum(held)


def test_local_layers_keep_their_window_only() -> None:
    config = PRESETS["gemma-3-1b"]
    one_position = 2 * 256 * 2  # keys and values of one head of 256, two bytes each
    assert kv_cache_bytes(config, 400, "bfloat16") == 26 * 400 * one_position
    assert kv_cache_bytes(config, 2000, "bfloat16") == (4 * 2000 + 22 * 512) * one_position


def test_grouped_heads_shrink_the_cache() -> None:
    assert kv_cache_bytes(PRESETS["llama-2-7b"], 4096, "float16") == 2**31
    assert kv_cache_bytes(PRESETS["llama-3-8b"], 4096, "float16") == 2**29


@pytest.mark.parametrize(
    ("name", "length", "dtype", "message"),
    [
        ("gpt2", -1, "float32", "length must be at least 0, got -1"),
        ("gpt2", 1025, "float32", "1025 positions .* context_length = 1024"),
        ("gpt2", 10, "int4", "dtype must be .* got 'int4'"),
        ("bert-base", 10, "float32", "BERT base .* 'encoder'"),
        ("t5-small", 10, "float32", "T5 v1.0 small .* 'encoder-decoder'"),
    ],
)
def test_impossible_caches_are_refused(name: str, length: int, dtype: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kv_cache_bytes(PRESETS[name], length, dtype)


def test_unknown_dtype_is_refused_for_parameters() -> None:
    with pytest.raises(ValueError, match="got 'float8'"):
        count(PRESETS["gpt2"]).memory_bytes("float8")
