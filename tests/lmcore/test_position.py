"""Position encodings against independent formulas and transformers' own code."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.t5.modeling_t5 import T5Attention

from lmcore import Model, ModelConfig
from lmcore.config import RopeScaling
from lmcore.position import (
    alibi_slopes,
    make_rotation,
    query_key_distance,
    relative_bucket,
    rope_frequencies,
    sinusoidal_table,
)


@pytest.mark.parametrize("d_model", [1, 2, 7, 64])
def test_sinusoids_entry_by_entry(d_model):
    table = sinusoidal_table(50, d_model)
    for position in (0, 1, 49):
        for column in range(d_model):
            angle = position / 10_000 ** ((column - column % 2) / d_model)
            wanted = math.cos(angle) if column % 2 else math.sin(angle)
            assert table[position, column].item() == pytest.approx(wanted, abs=1e-6)


@given(st.sampled_from(["half_split", "interleaved"]), st.integers(0, 300), st.integers(0, 300), st.integers(1, 300))
def test_rope_scores_depend_on_the_difference_only(layout, query, key, shift):
    q, k = torch.randn(2, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def score(query_position, key_position):
        rotation = make_rotation(torch.tensor([query_position, key_position]), rope_frequencies(8, 100.0), layout)
        rotated = rotation(torch.stack([q, k]))
        return (rotated[0] @ rotated[1]).item()

    assert score(query, key) == pytest.approx(score(query + shift, key + shift), abs=1e-4)


@pytest.mark.parametrize(
    ("layout", "pair_of"), [("half_split", lambda i: (i, i + 4)), ("interleaved", lambda i: (2 * i, 2 * i + 1))]
)
def test_rope_is_a_complex_product_on_its_pairs(layout, pair_of):
    x = np.random.default_rng(0).normal(size=8)
    rotated = make_rotation(torch.tensor([13]), rope_frequencies(8), layout)(torch.from_numpy(x)[None])[0].numpy()
    for i in range(4):
        a, b = pair_of(i)
        wanted = (x[a] + 1j * x[b]) * np.exp(1j * 13 * 10_000.0 ** (-2 * i / 8))
        assert rotated[a] == pytest.approx(wanted.real, abs=1e-6)
        assert rotated[b] == pytest.approx(wanted.imag, abs=1e-6)


def test_rope_tables_tell_all_positions_apart():
    rotation = make_rotation(torch.arange(2048), rope_frequencies(64))
    assert len(torch.unique(torch.cat([rotation.cos, rotation.signed_sin], -1), dim=0)) == 2048
    assert rope_frequencies(64)[0] == 1.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_model_in_half_precision_still_tells_all_positions_apart(dtype):
    config = ModelConfig(vocab_size=5, d_model=64, n_layers=1, n_heads=1, context_length=2048)
    rotation = Model(config).to(dtype).position.rotation(0, 2048)
    assert rotation.cos.dtype == rotation.signed_sin.dtype == torch.float32
    assert len(torch.unique(torch.cat([rotation.cos, rotation.signed_sin], -1), dim=0)) == 2048
    halved = torch.cat([rotation.cos, rotation.signed_sin], -1).to(dtype)
    # What such tables would do: the slow pairs' cosines fall together.
    assert len(torch.unique(halved[:, 31:32], dim=0)) < 300


@pytest.mark.parametrize(
    ("scaling", "theirs"),
    [
        (RopeScaling(kind="linear", factor=8.0), {"rope_type": "linear", "factor": 8.0}),
        (
            RopeScaling(kind="llama3", factor=32.0, original_context_length=512),
            {
                "rope_type": "llama3",
                "factor": 32.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 512,
            },
        ),
        (
            RopeScaling(kind="yarn", factor=4.0, original_context_length=128),
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
        ),
        (
            RopeScaling(
                kind="yarn",
                factor=40.0,
                low_frequency_factor=2.0,
                high_frequency_factor=16.0,
                original_context_length=4096,
            ),
            {
                "rope_type": "yarn",
                "factor": 40.0,
                "beta_slow": 2,
                "beta_fast": 16,
                "original_max_position_embeddings": 4096,
            },
        ),
    ],
)
def test_scaled_frequencies_equal_transformers(scaling, theirs):
    config = LlamaConfig(
        hidden_size=128,
        num_attention_heads=2,
        max_position_embeddings=4096,
        rope_parameters={"rope_theta": 500_000.0} | theirs,
    )
    theirs = LlamaRotaryEmbedding(config)
    torch.testing.assert_close(rope_frequencies(64, 500_000.0, scaling).float(), theirs.inv_freq)
    assert scaling.attention_factor == pytest.approx(theirs.attention_scaling)


@pytest.mark.parametrize("factor", [1.0, 2.0, 7.5])
def test_ntk_frequencies_equal_transformers_dynamic_ones_at_that_length(factor):
    config = LlamaConfig(
        hidden_size=128,
        num_attention_heads=2,
        max_position_embeddings=1000,
        rope_parameters={"rope_theta": 10_000.0, "rope_type": "dynamic", "factor": 1.0},
    )
    wanted, _ = ROPE_INIT_FUNCTIONS["dynamic"](config, seq_len=int(1000 * factor))
    ours = rope_frequencies(64, 10_000.0, RopeScaling(kind="ntk", factor=factor))
    torch.testing.assert_close(ours.float(), wanted)
    plain = rope_frequencies(64)
    assert ours[0] == plain[0]
    assert ours[-1].item() == pytest.approx(plain[-1].item() / factor)


@pytest.mark.parametrize("kind", ["linear", "ntk", "yarn", "llama3"])
def test_a_single_pair_and_a_tiny_context_have_finite_frequencies(kind):
    for d_head in (2, 4):
        scaling = RopeScaling(kind=kind, factor=4.0, original_context_length=1)
        found = rope_frequencies(d_head, 10_000.0, scaling)
        assert ((found > 0) & (found <= 1)).all()


@pytest.mark.parametrize(
    ("n_heads", "slopes"),
    [
        (1, [2**-8]),
        (8, [2**-i for i in range(1, 9)]),
        (6, [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]),
        (12, [2**-i for i in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
    ],
)
def test_alibi_slopes(n_heads, slopes):
    assert alibi_slopes(n_heads).tolist() == pytest.approx(slopes)


@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (16, 40), (2, 8), (8, 4)])
def test_relative_buckets_equal_t5(n_buckets, max_distance):
    distance = torch.arange(300)
    if max_distance <= n_buckets // 2:  # T5 divides by log(1) = 0 here; ours gives each distance its bucket
        wanted = [min(d, n_buckets - 1) for d in range(300)]
        assert relative_bucket(distance, n_buckets, max_distance).tolist() == wanted
        return
    theirs = T5Attention._relative_position_bucket(
        -distance, bidirectional=False, num_buckets=n_buckets, max_distance=max_distance
    )
    assert torch.equal(relative_bucket(distance, n_buckets, max_distance), theirs)


def test_distance_is_query_minus_key():
    assert query_key_distance(2, 2).tolist() == [[2, 1, 0, -1], [3, 2, 1, 0]]
