"""Masking first, and drawing before masking: both against simulation and against logits at minus infinity."""

import numpy as np
import pytest
import torch

from lmcore.constraints import compare
from lmcore.sampling import History, SamplingSettings, draw_many, new_generator, reshape

Z = torch.tensor([2.3, 1.5, 3.8, 0.5, 1.2, 2.9], dtype=torch.float64)
ALLOWED = torch.tensor([True, True, False, True, False, True])
SETTINGS = [
    SamplingSettings(),
    SamplingSettings(temperature=0.7, top_k=3),
    SamplingSettings(top_p=0.8),
    SamplingSettings(min_p=0.3, repetition_penalty=1.4),
    SamplingSettings(temperature=0),
    SamplingSettings(xtc_probability=0.5, xtc_threshold=0.1),
]


def test_a_mask_is_minus_infinity_on_the_logits():
    history = History([0, 1], [2])
    for settings in [*SETTINGS, SamplingSettings(mirostat=2), SamplingSettings(top_n_sigma=1.0)]:
        masked = reshape(Z, settings, history, allowed=ALLOWED)
        same = reshape(torch.where(ALLOWED, Z, -torch.inf), settings, history)
        torch.testing.assert_close(masked.probs, same.probs, rtol=0, atol=0)
        torch.testing.assert_close(masked.initial_probs, torch.softmax(Z, 0))  # what the model itself says
        assert masked.removed.equal(masked.probs == 0)
        assert masked.removed_mass == pytest.approx(float(masked.initial_probs[masked.probs == 0].sum()))
        assert (masked.removed_by[~ALLOWED] == -2).all()
        assert dict(masked.next_state(0)) == dict(same.next_state(0))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_drawing_and_trying_again_is_what_a_simulation_draws(settings: SamplingSettings):
    history, n = History([0, 1], [2]), 200_000
    found = compare(Z, ALLOWED, settings, history)
    generator = new_generator(5)
    first = draw_many(reshape(Z, settings, history), n, generator)
    again = draw_many(reshape(torch.where(ALLOWED, Z, -torch.inf), settings, history), n, generator)
    drawn = torch.bincount(torch.where(ALLOWED[first], first, again), minlength=6) / n
    np.testing.assert_allclose(found.retried, drawn, atol=5 * 0.5 / n**0.5)
    assert found.retry_chance == pytest.approx(float((~ALLOWED[first]).double().mean()), abs=5 * 0.5 / n**0.5)
    assert float(found.retried.sum()) == pytest.approx(1, abs=1e-12)
    assert found.total_variation == pytest.approx(0.5 * float((found.masked.probs - found.retried).abs().sum()))
    assert found.removed_mass == pytest.approx(float(torch.softmax(Z, 0)[~ALLOWED].sum()))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_run_that_tries_again_draws_from_the_mixture(settings: SamplingSettings):
    history = History([0, 1], [2])
    result = reshape(Z, settings, history, allowed=ALLOWED, retries=True)
    found = compare(Z, ALLOWED, settings, history)
    torch.testing.assert_close(result.probs, found.retried, rtol=0, atol=1e-12)
    assert sum(way.weight for way in result.ways) == pytest.approx(1)
    assert sum(way.weight for way in result.ways if way.is_retry) == pytest.approx(found.retry_chance)
    assert not bool(result.probs[~ALLOWED].any())


def test_a_run_that_tries_again_refuses_a_state_and_needs_no_second_draw_where_all_is_allowed():
    with pytest.raises(ValueError, match="mirostat carries a state"):
        reshape(Z, SamplingSettings(mirostat=2), allowed=ALLOWED, retries=True)
    (way,) = reshape(Z, SamplingSettings(top_k=2), allowed=Z > 2, retries=True).ways
    assert (way.weight, way.is_retry) == (1, False)


def test_where_the_chain_removes_nothing_both_ways_are_one():
    assert compare(Z, ALLOWED, SamplingSettings(temperature=1.7)).total_variation == pytest.approx(0, abs=1e-15)
    assert compare(Z, ALLOWED, SamplingSettings(top_k=2)).total_variation > 0.01


def test_a_stage_with_a_state_is_not_compared():
    found = compare(Z, ALLOWED, SamplingSettings(mirostat=2))
    assert found.stateful == ("mirostat",)
    with pytest.raises(ValueError, match="mirostat carries a state that the first draw moves"):
        _ = found.total_variation


def test_a_mask_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"allowed is \[3\] of torch.bool; it must be \[6\] booleans"):
        reshape(Z, allowed=ALLOWED[:3])
    with pytest.raises(ValueError, match="allows no token that is possible"):
        reshape(Z, allowed=torch.zeros(6, dtype=torch.bool))
    with pytest.raises(ValueError, match="allows no token that is possible"):
        reshape([0.0, -torch.inf], allowed=torch.tensor([False, True]))
