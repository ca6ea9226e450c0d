"""A query and a key under RoPE, in blocks with norms, two bases, grouped heads and a scale of their own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lmcore import Model, ModelConfig, Trace
from lmcore.analysis.position.measures import rope_decay, rope_scores_by_difference
from lmcore.analysis.position.rope_meeting import rope_meeting, uneven_diagonals
from lmcore.config import RopeScaling
from lmcore.position import rope_frequencies

IDS = [1, 5, 2, 7, 3]


def config(**changes) -> ModelConfig:
    plain = {"vocab_size": 9, "d_model": 16, "n_layers": 2, "n_heads": 4, "context_length": 64, "init_std": 0.4}
    return ModelConfig(**plain | changes)


GEMMA = {
    "n_kv_heads": 2,
    "d_head": 8,
    "qk_norm": True,
    "rope_base": 1000.0,
    "rope_base_local": 50.0,
    "sliding_window": 3,
    "local_layers": (0,),
    "attention_scale": 0.3,
}


@pytest.mark.parametrize("changes", [{}, {"rope_layout": "interleaved"}, GEMMA])
@pytest.mark.parametrize("block", [0, 1])
def test_the_score_put_together_is_the_models(changes, block):
    torch.manual_seed(0)
    of = config(**changes)
    trace = Trace()
    Model(of)(torch.tensor(IDS), trace=trace)
    for head in range(4):
        met = rope_meeting(trace, of, block, head, 4, 2)
        assert met.by_difference(torch.tensor([2])).sum().item() == pytest.approx(met.score, abs=1e-4)
        assert met.at(torch.tensor([1004]), torch.tensor([1002])).item() == pytest.approx(met.score, abs=1e-3)
        assert met.score == trace[f"blocks.{block}.attn.scores"][head, 4, 2].item()
        kv_head = head // 2 if changes is GEMMA else head
        assert torch.equal(met.v, trace[f"blocks.{block}.attn.v"][kv_head, 2])
        np.testing.assert_allclose(met.q.norm(), met.q_turned.norm(), rtol=1e-5)


def test_local_blocks_turn_with_their_own_base():
    torch.manual_seed(0)
    trace = Trace()
    Model(config(**GEMMA))(torch.tensor(IDS), trace=trace)
    for block, base in ((0, 50.0), (1, 1000.0)):
        met = rope_meeting(trace, config(**GEMMA), block, 0, 1, 0)
        np.testing.assert_allclose(met.frequencies, base ** (-np.arange(4) / 4))


def test_a_block_that_rope_does_not_turn_has_no_meeting():
    with pytest.raises(ValueError, match="does not turn queries and keys in block 1"):
        rope_meeting(Trace(), config(unrotated_layers=(1,)), 1, 0, 1, 0)


def test_the_square_of_scores_is_even_along_its_diagonals():
    torch.manual_seed(0)
    trace = Trace()
    Model(config())(torch.tensor(IDS), trace=trace)
    met = rope_meeting(trace, config(), 1, 2, 4, 1)
    positions = torch.arange(20)
    square = met.at(positions, positions)
    assert uneven_diagonals(square) < 1e-4
    wanted = met.by_difference(positions[:, None].flatten() - 7).sum(-1)
    np.testing.assert_allclose(square[:, 7], wanted, atol=1e-4)
    assert uneven_diagonals(positions[:, None] * positions[None, :].double()) == 19 * 19  # 0 x 0 to 19 x 19


def test_decay_is_the_score_of_equal_pairs():
    for scaling in (None, RopeScaling(kind="linear", factor=3.0)):
        frequencies = rope_frequencies(16, 10_000.0, scaling)
        differences = torch.tensor([0, 1, 7, 300])
        parts = rope_scores_by_difference(torch.ones(16), torch.ones(16), differences, frequencies)
        wanted = parts.sum(-1) / parts.sum(-1)[0]
        torch.testing.assert_close(rope_decay(differences, frequencies), wanted, atol=1e-6, rtol=1e-6)
