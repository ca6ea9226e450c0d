"""Boundaries given in decimals, which binary numbers miss by their last digits."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from lmcore.sampling import Rules, SamplingSettings, reshape


def cases(n, seed):
    """Probabilities in hundredths that sum to 1, and a top_p that some of them, most probable first, sum to exactly."""
    source = np.random.default_rng(seed)
    for _ in range(n):
        size = int(source.integers(3, 8))
        cuts = np.sort(source.choice(np.arange(1, 100), size - 1, replace=False))
        parts = np.diff([0, *cuts, 100])
        falling = np.sort(parts)[::-1]
        count = int(source.integers(1, size))
        yield [Fraction(int(part), 100) for part in parts], Fraction(int(falling[:count].sum()), 100), count


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_top_p_keeps_what_the_decimals_say(dtype):
    wrong = exact_wrong = 0
    for probs, top_p, count in cases(4000, seed=5):
        logits = torch.tensor([float(p) for p in probs], dtype=torch.float64).log().to(dtype)
        wrong += reshape(logits, SamplingSettings(top_p=float(top_p))).candidates != count
        exact = SamplingSettings(top_p=float(top_p), rules=Rules(boundary_ulps=0))
        exact_wrong += reshape(logits, exact).candidates != count
    assert wrong == 0
    assert exact_wrong > 400  # what an engine's arithmetic gives


def test_the_case_that_was_reported():
    for dtype in (torch.float64, torch.float32):
        logits = torch.tensor([0.3, 0.1, 0.1, 0.5], dtype=dtype).log()
        assert reshape(logits, SamplingSettings(top_p=0.8)).kept_ids.tolist() == [0, 3]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_thresholds_in_decimals_too(dtype):
    source = np.random.default_rng(1)
    for _ in range(1000):
        parts = source.choice(np.arange(1, 60), 4, replace=False)
        probs = torch.tensor(parts / parts.sum(), dtype=torch.float64)
        logits = torch.tensor(parts, dtype=torch.float64).log().to(dtype)
        one = int(source.integers(4))
        at_least = set(np.flatnonzero(parts >= parts[one]).tolist())
        by_ratio = SamplingSettings(min_p=float(parts[one] / parts.max()))
        assert set(reshape(logits, by_ratio).kept_ids.tolist()) == at_least
        if probs[one] < 1:
            by_share = SamplingSettings(epsilon_cutoff=float(probs[one]))
            assert set(reshape(logits, by_share).kept_ids.tolist()) == at_least


def test_a_long_flat_tail_is_cut_where_the_exact_sum_says():
    logits = torch.randn(20_000, generator=torch.Generator().manual_seed(0))
    for top_p in (0.9, 0.9999, 0.99999):
        own, exact = (
            reshape(logits, SamplingSettings(top_p=top_p, rules=rules)).candidates
            for rules in (Rules(), Rules(boundary_ulps=0))
        )
        assert own == exact
