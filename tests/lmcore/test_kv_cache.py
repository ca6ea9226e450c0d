"""The KV cache grows with the text, whatever the context of the model."""

from __future__ import annotations

import pytest
import torch

import lmcore
from lmcore.kv_cache import KVCache
from lmcore.parameters import kv_cache_bytes


@pytest.fixture(scope="module")
def lm() -> lmcore.LanguageModel:
    """A model of long context whose cache would fill 1.2 GB for the whole of it."""
    torch.manual_seed(3)
    tokenizer = lmcore.builtin.tokenizer()
    config = lmcore.ModelConfig(
        vocab_size=tokenizer.vocab_size, d_model=16, n_layers=2, n_heads=2, d_head=1152, context_length=65_536
    )
    return lmcore.LanguageModel("long", lmcore.Model(config), tokenizer)


def test_it_takes_no_memory_before_the_first_token_and_at_most_twice_that_of_its_tokens(lm) -> None:
    cache = lm.new_cache()
    assert (cache.capacity, cache.nbytes, cache.reserved_nbytes) == (65_536, 0, 0)
    ids = list(range(1, 101))
    for length, piece in ((40, ids[:40]), (41, ids[40:41]), (100, ids[41:])):
        logits = lm(piece, cache=cache)
        assert cache.nbytes == kv_cache_bytes(lm.config, length)
        assert cache.nbytes <= cache.reserved_nbytes < 2 * cache.nbytes
        torch.testing.assert_close(logits[-1], lm(ids[:length])[-1], rtol=1e-4, atol=1e-4)


def test_it_takes_no_more_than_its_capacity(lm) -> None:
    cache = lm.new_cache(capacity=33)
    lm(list(range(33)), cache=cache)
    assert cache.reserved_nbytes == cache.nbytes
    with pytest.raises(ValueError, match="34 tokens are more than the cache's capacity of 33"):
        lm([1], cache=cache)


def test_tokens_taken_back_leave_those_before_them_when_it_grows(lm) -> None:
    cache = lm.new_cache()
    lm(list(range(16)), cache=cache)
    cache.truncate(10)
    other = list(range(50, 75))
    torch.testing.assert_close(lm(other, cache=cache)[-1], lm([*range(10), *other])[-1], rtol=1e-4, atol=1e-4)


def test_selected_rows_grow_each_by_itself(lm) -> None:
    cache = lm.new_cache()
    lm([1, 2, 3], cache=cache)
    both = cache.select([0, 0])
    logits = lm(torch.tensor([range(100, 120), range(200, 220)]), cache=both)
    for row, start in zip(logits, (100, 200), strict=True):
        torch.testing.assert_close(row[-1], lm([1, 2, 3, *range(start, start + 20)])[-1], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(lm([4], cache=cache)[-1], lm([1, 2, 3, 4])[-1], rtol=1e-4, atol=1e-4)


def test_it_goes_on_in_another_mode_than_it_began(lm) -> None:
    cache = KVCache(lm.config)
    with torch.inference_mode():
        lm.model(torch.tensor([1, 2]), cache=cache)
    with torch.no_grad():
        logits = lm.model(torch.tensor([3]), cache=cache)
    torch.testing.assert_close(logits[-1], lm([1, 2, 3])[-1], rtol=1e-4, atol=1e-4)
