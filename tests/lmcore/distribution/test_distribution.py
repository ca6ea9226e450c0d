"""lmcore.distribution against numpy in float64 and scipy."""

import math

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lmcore import distribution
from lmcore.distribution.order import _topk

LOGITS = hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(-50, 50))
FEW_VALUES = hnp.arrays(np.float32, st.integers(2, 300), elements=st.integers(0, 6).map(float))  # many ties


def random_probs(*shape):
    generator = np.random.default_rng(0)
    return generator.dirichlet(np.ones(shape[-1]), shape[:-1])


@pytest.mark.slow
@given(LOGITS)
def test_softmax_and_log_softmax_equal_scipy(logits):
    np.testing.assert_allclose(distribution.softmax(logits).numpy(), scipy.special.softmax(logits), atol=1e-15)
    np.testing.assert_allclose(
        distribution.log_softmax(logits).numpy(), scipy.special.log_softmax(logits), rtol=1e-13, atol=1e-13
    )


def test_softmax_of_each_row_is_float64_whatever_the_input():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.int64):
        logits = torch.tensor([[1, 2, 3], [4, 4, 4]], dtype=dtype)
        probs = distribution.softmax(logits)
        assert probs.dtype == torch.float64
        np.testing.assert_allclose(probs.numpy(), scipy.special.softmax(logits.double().numpy(), axis=-1), atol=1e-15)


def test_softmax_of_huge_logits_does_not_overflow():
    assert distribution.softmax([1e30, 1e30, -1e30]).tolist() == [0.5, 0.5, 0.0]
    assert distribution.softmax([1e308, -math.inf]).tolist() == [1.0, 0.0]


def test_a_list_keeps_its_float64_digits():
    # Read as float32 the two logits would be equal.
    first, second = distribution.softmax([1.0, 1.0 + 1e-12]).tolist()
    assert second > first


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 3, 7)])
def test_entropy_and_divergences_equal_scipy(shape):
    p, q = random_probs(*shape), random_probs(*shape)[..., ::-1].copy()
    np.testing.assert_allclose(distribution.entropy_bits(p).numpy(), scipy.stats.entropy(p, base=2, axis=-1))
    np.testing.assert_allclose(
        distribution.effective_vocabulary(p).numpy(), 2 ** scipy.stats.entropy(p, base=2, axis=-1)
    )
    np.testing.assert_allclose(distribution.kl_bits(p, q).numpy(), scipy.stats.entropy(p, q, base=2, axis=-1))
    np.testing.assert_allclose(distribution.total_variation(p, q).numpy(), np.abs(p - q).sum(-1) / 2)


def test_entropy_of_a_certain_token_is_zero_and_not_minus_zero():
    assert math.copysign(1, distribution.entropy_bits([0.0, 1.0, 0.0]).item()) == 1
    assert distribution.entropy_bits([0.0, 1.0, 0.0]).item() == 0


def test_kl_is_infinite_only_where_q_rules_out_what_p_allows():
    assert distribution.kl_bits([0.5, 0.5], [1.0, 0.0]).item() == math.inf
    assert distribution.kl_bits([1.0, 0.0], [0.5, 0.5]).item() == 1.0


def test_surprisal_loss_and_perplexity_equal_cross_entropy():
    logits, ids = torch.randn(4, 9, generator=torch.Generator().manual_seed(0)), torch.tensor([0, 8, 3, 3])
    expected = torch.nn.functional.cross_entropy(logits.double(), ids, reduction="none")
    torch.testing.assert_close(distribution.loss_nats(logits, ids), expected)
    torch.testing.assert_close(distribution.surprisal_bits(logits, ids), expected / math.log(2))
    torch.testing.assert_close(distribution.perplexity(logits, ids), expected.mean().exp())


def test_surprisal_of_a_token_whose_probability_underflows():
    assert distribution.surprisal_bits([0.0, -1000.0], 1).item() == pytest.approx(1000 / math.log(2))


@pytest.mark.slow
@given(FEW_VALUES, st.data())
def test_top_and_rank_put_the_lower_id_first(values, data):
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))
    n = data.draw(st.integers(1, len(values) + 2))
    top = distribution.top(values, n)
    assert top.ids.tolist() == order[:n]
    assert top.values.tolist() == [values[i] for i in order[:n]]
    token = data.draw(st.integers(0, len(values) - 1))
    assert distribution.rank(values, token) == 1 + order.index(token)


@pytest.mark.slow
@given(FEW_VALUES, st.data())
def test_largest_equals_a_sort_under_both_tie_rules(values, data):
    k = data.draw(st.integers(1, len(values) - 1))
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))
    tensor = torch.from_numpy(values)
    assert distribution.largest(tensor, k).tolist() == sorted(order[:k])
    kth = values[order[k - 1]]
    assert distribution.largest(tensor, k, "all").tolist() == [i for i, v in enumerate(values) if v >= kth]


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(8, 4000), st.booleans(), st.integers(0, 9))
def test_topk_in_a_grid_finds_the_same_values_as_torch(k, n, tied, seed):
    # Sizes are chosen so that the grid is used, has left-over values, and its columns tie.
    generator = torch.Generator().manual_seed(seed)
    n = max(n, k)
    values = torch.randint(0, 5, (n,), generator=generator).float() if tied else torch.randn(n, generator=generator)
    best, positions = _topk(values, k)
    assert torch.equal(best, torch.topk(values, k).values)
    assert torch.equal(values[positions], best)
    assert len(set(positions.tolist())) == k


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distribution.softmax([]), "empty"),
        (lambda: distribution.softmax(3.0), "empty"),
        (lambda: distribution.softmax([1.0, math.nan]), r"NaN at index \[1\]"),
        (lambda: distribution.softmax([[1.0, 2.0], [math.nan, math.inf]]), r"NaN at index \[1, 0\]"),
        (lambda: distribution.softmax([1.0, math.inf]), r"\+inf at index \[1\]"),
        (lambda: distribution.softmax([[0.0, 0.0], [-math.inf, -math.inf]]), "-inf for every token"),
        (lambda: distribution.softmax(["a"]), "other than numbers"),
        (lambda: distribution.softmax(torch.tensor([True, False])), "dtype torch.bool"),
        (lambda: distribution.entropy_bits([0.5, 0.6]), "sums to 1.1"),
        (lambda: distribution.entropy_bits([1.5, -0.5]), "holds -0.5"),
        (lambda: distribution.entropy_bits([math.nan, 1.0]), "NaN"),
        (lambda: distribution.entropy_bits([]), "empty"),
        (lambda: distribution.total_variation([0.5, 0.5], [1.0]), "same shape"),
        (lambda: distribution.kl_bits([1.0], [0.9]), "q sums to 0.9"),
        (lambda: distribution.surprisal_bits([0.0, 0.0], 2), "token_ids holds 2"),
        (lambda: distribution.surprisal_bits([0.0, 0.0], -1), "token_ids holds -1"),
        (lambda: distribution.surprisal_bits([0.0, 0.0], [0, 1]), "one token for each position"),
        (lambda: distribution.perplexity(torch.zeros(0, 3), torch.zeros(0)), "at least one token"),
        (lambda: distribution.top([0.5, 0.5], 0), "n is 0"),
        (lambda: distribution.top([[0.5, 0.5]], 1), r"shape \[1, 2\]"),
        (lambda: distribution.top([math.nan], 1), "NaN"),
        (lambda: distribution.rank([0.5, 0.5], 2), "token_id is 2"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
