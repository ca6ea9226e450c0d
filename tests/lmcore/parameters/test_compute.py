"""Compute against what torch counts, in our model and in transformers' models on the meta device."""

from __future__ import annotations

import inspect

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from lmcore.config import ModelConfig
from lmcore.kv_cache import KVCache
from lmcore.model import Model
from lmcore.parameters import PRESETS, compute, count
from tests.lmcore.parameters.peers import PEERS, small_configs


def test_llama_7b_head_and_mlp() -> None:
    counted = compute(PRESETS["llama-7b"])
    head = next(row for row in counted.rows if row.name == "head")
    assert (head.macs, head.flops) == (131_072_000, 262_144_000)
    assert counted.group_macs["mlp"] == 32 * 135_266_304
    assert 2 * counted.group_macs["mlp"] // 32 == 270_532_608
    assert counted.flops == 2 * counted.macs


@pytest.mark.slow
@given(small_configs(), st.integers(0, 4), st.integers(1, 2))
def test_macs_are_those_that_torch_counts_in_our_model(config: ModelConfig, past: int, new: int) -> None:
    model, cache = Model(config), KVCache(config)
    ids = torch.zeros(past + new, dtype=torch.long)
    with torch.no_grad():
        if past:
            model(ids[:past], cache=cache)
        with FlopCounterMode(display=False) as counter:
            model(ids[past:], cache=cache)
    assert compute(config, past, new).flops == counter.get_total_flops()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["llama-7b", "llama-3.2-1b", "qwen3-0.6b", "gemma-3-1b"])
def test_prefill_and_decode_are_what_torch_counts_in_transformers(name: str) -> None:
    n_prompt = 600  # longer than Gemma's window
    with torch.device("meta"), torch.no_grad():
        peer = PEERS[name]().eval()
        ids = torch.zeros(1, n_prompt + 1, dtype=torch.long)
        with FlopCounterMode(display=False) as prefill:
            cache = peer(ids[:, :n_prompt], use_cache=True).past_key_values
        argument = "cache" if "cache" in inspect.signature(peer.forward).parameters else "past_key_values"
        with FlopCounterMode(display=False) as decode:
            peer(ids[:, n_prompt:], **{argument: cache})
    assert compute(PRESETS[name], new_tokens=n_prompt).flops == prefill.get_total_flops()
    assert compute(PRESETS[name], past_tokens=n_prompt).flops == decode.get_total_flops()


@given(small_configs(), st.integers(0, 3), st.integers(1, 3))
def test_tokens_one_by_one_cost_the_unmasked_pairs(config: ModelConfig, past: int, new: int) -> None:
    """What a cache decodes token by token is what a prefill computes that skips the masked pairs."""
    together = compute(config, past, new, skip_masked=True)
    one_by_one = [compute(config, past + i) for i in range(new)]
    assert together.macs == sum(step.macs for step in one_by_one)
    assert together.macs_per_token * new == pytest.approx(together.macs)
    assert together.flops_per_token == 2 * together.macs_per_token


@pytest.mark.parametrize(("past", "new"), [(0, 3), (0, 700), (500, 100), (511, 1), (512, 1), (600, 50)])
def test_unmasked_pairs_of_local_layers(past: int, new: int) -> None:
    config = PRESETS["gemma-3-270m"]
    rows = {row.name: row.macs for row in compute(config, past, new, skip_masked=True).rows}
    seen = [(key, query) for query in range(past, past + new) for key in range(query + 1)]
    n_local = sum(query - key < 512 for key, query in seen)
    assert rows["blocks.attn.scores (local)"] == rows["blocks.attn.z (local)"] == 15 * 4 * 256 * n_local
    assert rows["blocks.attn.scores (global)"] == 3 * 4 * 256 * len(seen)


def test_last_logits_only_leaves_one_head_product() -> None:
    config = PRESETS["gpt2"]
    everywhere, last = compute(config, 0, 10), compute(config, 0, 10, last_logits_only=True)
    assert everywhere.macs - last.macs == 9 * 38_597_376
    assert last.rows[-1].formula == "1 x 768 x 50257"


def test_tying_saves_parameters_and_no_compute() -> None:
    config = PRESETS["gpt2"]
    untied = ModelConfig.from_dict(
        {field: getattr(config, field) for field in ModelConfig.__dataclass_fields__} | {"tie_embeddings": False}
    )
    assert count(untied).total > count(config).total
    assert compute(untied, 5).macs == compute(config, 5).macs


@pytest.mark.parametrize(
    ("name", "past", "new", "message"),
    [
        ("gpt2", -1, 1, "past_tokens must be at least 0, got -1"),
        ("gpt2", 0, 0, "new_tokens must be at least 1, got 0"),
        ("gpt2", 1000, 25, "1025 positions .* context_length = 1024"),
        ("bert-base", 0, 1, "BERT base .* 'encoder'"),
    ],
)
def test_impossible_passes_are_refused(name: str, past: int, new: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compute(PRESETS[name], past, new)
