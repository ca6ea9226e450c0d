"""Models by name: quantised weights, an 8-bit cache, both, and names that do not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lmcore
from lmcore.analysis.blocks.attention import attention_of_query
from lmcore.loading import model_name, quantised
from lmcore.quantisation import KINDS

IDS = [5, 17, 90, 3, 41, 7, 230, 11]


@pytest.fixture(scope="module")
def exact() -> lmcore.LanguageModel:
    return lmcore.load("small-world")


def test_a_name_and_a_model_in_memory_give_the_same(exact) -> None:
    for kind in KINDS:
        named, made = lmcore.load(f"small-world:{kind}"), quantised(exact, kind)
        assert named.name == made.name == f"small-world:{kind}"
        assert torch.equal(named(IDS), made(IDS)) and not torch.equal(named(IDS), exact(IDS)), kind
    assert torch.equal(quantised(exact, "bfloat16")(IDS), lmcore.load("small-world:bfloat16")(IDS))


def test_the_parts_of_a_name_come_in_any_order_and_once() -> None:
    assert lmcore.load("small-world:kv8:q4_0").name == "small-world:q4_0:kv8"
    assert model_name("a:b").bare == "a:b" and model_name("kv8").bare == "kv8"
    with pytest.raises(ValueError, match="'small-world:q4_0:q8_0' says twice what the weights are; give one of"):
        lmcore.load("small-world:q4_0:q8_0")
    with pytest.raises(ValueError, match="no model is called 'small-world:q3_k'.*After a name may stand one of.*q4_0"):
        lmcore.load("small-world:q3_k")
    with pytest.raises(ValueError, match=r"dtype = torch\.bfloat16 contradicts the name 'small-world:q4_0'"):
        lmcore.load("small-world:q4_0", torch.bfloat16)


def in_int8(x: np.ndarray) -> np.ndarray:
    """A vector of each head by its own largest magnitude, written with numpy."""
    scale = np.abs(x).max(-1, keepdims=True) / np.float32(127)
    return np.rint(x / scale).astype(np.float32) * scale


def test_an_8_bit_cache_gives_back_what_numpy_says_with_and_without_a_cache(exact) -> None:
    lm = lmcore.load("small-world:kv8")
    trace, plain = lmcore.Trace(), lmcore.Trace()
    logits = lm(IDS, trace=trace)
    exact(IDS, trace=plain)
    first = "blocks.0.attn"
    for ours, before in (("k_kept", "k_rotated"), ("v_kept", "v")):
        np.testing.assert_array_equal(trace[f"{first}.{before}"], plain[f"{first}.{before}"])
        np.testing.assert_array_equal(trace[f"{first}.{ours}"], in_int8(trace[f"{first}.{before}"].numpy()))
    q = trace[f"{first}.q_rotated"].numpy()
    scores = np.einsum("hqd,hkd->hqk", q, in_int8(trace[f"{first}.k_rotated"].numpy())) * lm.config.score_scale
    np.testing.assert_allclose(trace[f"{first}.scores"], scores, rtol=1e-4, atol=1e-4)
    worked = attention_of_query(trace, lm.config, 0, 1, 5)
    np.testing.assert_allclose(worked.z, trace[f"{first}.z"][1, 5], atol=1e-5)

    cache = lm.new_cache()
    steps = torch.cat([lm([token], cache=cache) for token in IDS])
    torch.testing.assert_close(steps, logits, rtol=0, atol=0.02)  # a last bit can move a number to the next code
    assert (steps - exact(IDS)).abs().max() > 2 * (steps - logits).abs().max()
    config = lm.config
    assert cache.nbytes == 2 * config.n_layers * config.n_kv_heads * (config.d_head + 4) * len(IDS)


def test_rows_of_an_8_bit_cache_can_be_chosen_and_taken_back() -> None:
    lm = lmcore.load("small-world:kv8")
    cache = lm.new_cache()
    lm(IDS, cache=cache)
    cache.truncate(4)
    both = cache.select([0, 0])
    logits = lm([[9, 8], [30, 31]], cache=both)
    for row, more in zip(logits, ([9, 8], [30, 31]), strict=True):
        torch.testing.assert_close(row, lm([*IDS[:4], *more])[-2:], rtol=0, atol=0.02)
