"""Drawing: one uniform a draw, the right frequencies, the chi-square test against scipy."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmcore.sampling import SamplingSettings, chi_square, draw, draw_many, draws, new_generator, reshape
from lmcore.sampling.draw import invert

PROBS = [0.1, 0.0, 0.4, 0.25, 0.0, 0.25, 0.0]


def test_a_draw_inverts_the_cumulative_distribution_in_id_order():
    uniforms = torch.rand(2000, dtype=torch.float64, generator=new_generator(3)).numpy()
    expected = np.searchsorted(np.cumsum(PROBS), uniforms, side="right")
    assert draw_many(PROBS, 2000, new_generator(3)).tolist() == expected.tolist()


def test_many_draws_are_one_draw_after_another():
    one, many = new_generator(5), new_generator(5)
    assert [draw(PROBS, one) for _ in range(50)] == draw_many(PROBS, 50, many).tolist()
    assert torch.equal(one.get_state(), many.get_state())


@pytest.mark.parametrize(
    "knobs", [{}, {"temperature": 0}, {"top_k": 1}, {"top_p": 0.9, "temperature": 0.8}, {"top_k": 2}]
)
def test_every_draw_takes_one_uniform_whatever_the_settings(knobs):
    generator, reference = new_generator(1), new_generator(1)
    draw(reshape(np.log([0.4, 0.3, 0.2, 0.1]), SamplingSettings(**knobs)), generator)
    torch.rand((), dtype=torch.float64, generator=reference)
    assert torch.equal(generator.get_state(), reference.get_state())


@pytest.mark.slow
@given(st.integers(0, 2**64 - 1), st.integers(1, 30))
def test_a_result_and_its_dense_probabilities_draw_the_same_tokens(seed, k):
    result = reshape(np.linspace(-3, 3, 25) ** 3 / 5, SamplingSettings(top_k=k, temperature=1.7))
    assert torch.equal(draw_many(result, 20, new_generator(seed)), draw_many(result.probs, 20, new_generator(seed)))


@pytest.mark.parametrize(("uniform", "token"), [(0.0, 0), (0.1, 2), (0.4999999, 2), (0.5, 3), (1 - 2**-53, 5)])
def test_the_ends_of_the_unit_interval_never_reach_an_impossible_token(uniform, token):
    probs = torch.tensor(PROBS, dtype=torch.float64)
    assert invert(probs, torch.tensor([uniform], dtype=torch.float64)).tolist() == [token]
    leading_zero = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    assert invert(leading_zero, torch.tensor([uniform], dtype=torch.float64)).tolist() == [1]


def test_underflowed_tokens_are_never_drawn():
    result = reshape([0.0, 1.0, 0.0], SamplingSettings(temperature=1e-40))
    assert set(draw_many(result, 500, new_generator(0)).tolist()) == {1}


def test_frequencies_fit_the_distribution_and_a_wrong_one_does_not():
    counts = draws(PROBS, 100_000, seed=0)
    assert counts.sum() == 100_000 and counts[[1, 4, 6]].sum() == 0
    assert chi_square(counts, PROBS).p_value > 0.01
    assert chi_square(counts, [0.11, 0.0, 0.39, 0.25, 0.0, 0.25, 0.0]).p_value < 1e-6


def test_p_values_of_true_draws_are_uniform():
    p_values = [chi_square(draws(PROBS, 2000, seed), PROBS).p_value for seed in range(200)]
    assert scipy.stats.kstest(p_values, "uniform").pvalue > 0.001


@pytest.mark.slow
@given(st.lists(st.integers(0, 500), min_size=2, max_size=20), st.data())
def test_chi_square_equals_scipy_where_nothing_is_pooled(counts, data):
    counts = [count + 1 for count in counts]
    weights = np.array(data.draw(st.lists(st.floats(0.5, 1), min_size=len(counts), max_size=len(counts))))
    probs = weights / weights.sum()
    expected = scipy.stats.chisquare(counts, probs * sum(counts))
    result = chi_square(counts, probs, min_expected=1e-9)
    assert result.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-9, abs=1e-14)
    assert result.dof == len(counts) - 1 == result.cells - 1


def test_small_cells_are_pooled_rarest_first():
    probs = [0.5, 0.02, 0.03, 0.41, 0.04]
    observed = [48, 1, 5, 43, 3]  # of 100: expected 50, 2, 3, 41, 4
    expected = scipy.stats.chisquare([48, 43, 9], [50, 41, 9])
    result = chi_square(observed, probs)
    assert (result.cells, result.dof) == (3, 2)
    assert result.statistic == pytest.approx(expected.statistic) and result.p_value == pytest.approx(expected.pvalue)


def test_a_pool_that_stays_too_small_takes_the_next_cell_in():
    result = chi_square([1, 48, 51], [0.01, 0.49, 0.5])  # expected 1 alone is below 5: pooled with 49
    expected = scipy.stats.chisquare([49, 51], [50, 50])
    assert result.cells == 2 and result.statistic == pytest.approx(expected.statistic)


def test_what_cannot_be_compared_says_so():
    assert chi_square([10, 0], [1.0, 0.0]) == (0.0, 0, 1.0, 1)
    assert chi_square([1, 1], [0.5, 0.5]) == (0.0, 0, 1.0, 1)  # two draws are too few to test
    impossible = chi_square([9, 1, 90], [0.1, 0.0, 0.9])
    assert impossible.statistic == math.inf and impossible.p_value == 0


def test_a_reshaped_result_can_be_drawn_from_and_tested():
    result = reshape(np.log([0.4, 0.3, 0.2, 0.1]), SamplingSettings(top_k=3))
    counts = draws(result, 5000, seed=2)
    assert counts[3] == 0 and len(counts) == 4
    assert chi_square(counts, result).cells == 3


def test_a_seed_left_open_differs_from_one_generator_to_the_next():
    assert new_generator().initial_seed() != new_generator().initial_seed()
    assert new_generator(2**64 - 1).initial_seed() == 2**64 - 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: new_generator(-1), "seed is -1"),
        (lambda: new_generator(2**64), "seed is 18446744073709551616"),
        (lambda: new_generator(1.5), "seed is 1.5"),
        (lambda: draw_many(PROBS, 0, new_generator(0)), "n is 0"),
        (lambda: draw([0.5, 0.6], new_generator(0)), "sums to 1.1"),
        (lambda: draw([math.nan, 1.0], new_generator(0)), "NaN"),
        (lambda: draw([[0.5, 0.5]], new_generator(0)), r"shape \[1, 2\]"),
        (lambda: chi_square([1, 2], PROBS), "shape"),
        (lambda: chi_square([-1, 2], [0.5, 0.5]), "observed holds -1"),
        (lambda: chi_square([0, 0], [0.5, 0.5]), "no draw at all"),
        (lambda: chi_square([1, 2], [0.5, 0.5], min_expected=0), "min_expected is 0"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
