"""Attention by distance, counted entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lmcore.analysis.position.attention_distance import attention_by_distance, even_attention_by_distance, mean_distance


def causal_pattern(n: int, *leading: int) -> torch.Tensor:
    scores = torch.randn(*leading, n, n, generator=torch.Generator().manual_seed(0))
    return scores.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf).softmax(-1)


def test_weights_are_averaged_along_the_diagonals():
    pattern = causal_pattern(6, 2, 3)
    found = attention_by_distance(pattern)
    assert found.shape == (2, 3, 6)
    for distance in range(6):
        entries = [pattern[1, 2, query, query - distance].item() for query in range(distance, 6)]
        assert found[1, 2, distance].item() == pytest.approx(np.mean(entries))


def test_all_weight_is_counted():
    pattern = causal_pattern(7)
    n_queries = 7 - np.arange(7)  # that have a key at each distance
    assert (attention_by_distance(pattern).numpy() * n_queries).sum() == pytest.approx(7, abs=1e-6)


def test_even_attention_is_the_harmonic_tail():
    found = even_attention_by_distance(5)
    assert found[2].item() == pytest.approx((1 / 3 + 1 / 4 + 1 / 5) / 3)


def test_mean_distance_weighs_distances():
    pattern = causal_pattern(5, 2)
    wanted = [
        sum(pattern[head, q, k].item() * (q - k) for q in range(5) for k in range(q + 1)) / 5 for head in range(2)
    ]
    np.testing.assert_allclose(mean_distance(pattern), wanted, atol=1e-6)


def test_one_token_looks_at_itself():
    assert attention_by_distance(torch.ones(4, 1, 1)).tolist() == [[1.0]] * 4
