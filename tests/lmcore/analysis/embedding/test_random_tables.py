"""Random tables against the distributions they are said to follow."""

import math

import pytest
import scipy.stats
import torch

from lmcore.analysis.embedding.random_tables import random_table, uniform_limit


def test_the_numbers_follow_the_distributions() -> None:
    normal = random_table(500, 64, "normal", seed=3).double().flatten().numpy()
    uniform = random_table(500, 64, "uniform", seed=3).double().flatten().numpy()
    limit = math.sqrt(3 / 64)
    assert scipy.stats.kstest(normal, scipy.stats.norm(scale=0.02).cdf).pvalue > 0.01
    assert scipy.stats.kstest(uniform, scipy.stats.uniform(-limit, 2 * limit).cdf).pvalue > 0.01
    assert abs(uniform).max() <= uniform_limit(64) == pytest.approx(limit)


def test_the_seed_decides_and_torchs_random_state_is_left_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first, again, other = (random_table(9, 4, "uniform", seed) for seed in (5, 5, 6))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert torch.equal(torch.rand(3), expected)


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(ValueError, match="'xavier'"):
        random_table(2, 2, "xavier", seed=0)
