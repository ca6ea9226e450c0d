"""Stages with a memory, with chance, or of a shape of their own: worked numbers, computed apart in float64."""

import dataclasses

import numpy as np
import pytest

from lmcore.sampling import SamplingSettings, chi_square, draws, preset, reshape
from lmcore.sampling.stages.dry import matches

from . import oracles

Z = oracles.WORKED
GREEDY = [0, 0, 1, 0, 0]


def probs(history=(), logits=Z, state=None, **knobs):
    return reshape(logits, SamplingSettings(**knobs), history, state).probs.numpy()


def close(found, expected):
    np.testing.assert_allclose(found, expected, atol=6e-5)


REPEATED = [0, 4, 3, 2, 0, 1, 3, 2, 0]  # 很 差 真 不错 很 好 真 不错 很


@pytest.mark.parametrize(
    ("breakers", "expected"),
    [
        ((), [0.1642, 0.0182, 0.7358, 0.0271, 0.0547]),  # 好 followed 真 不错 很: lowered by 0.8 * 1.75
        ((3,), oracles.softmax(np.array(Z) - [0, 0.8, 0, 0, 0])),  # two tokens follow the breaker
        ((2,), oracles.softmax(Z)),  # one does
        ((1,), oracles.softmax(Z)),  # a breaker is never lowered
    ],
)
def test_dry(breakers, expected):
    close(probs(REPEATED, dry_multiplier=0.8, dry_sequence_breakers=breakers), expected)


def test_dry_says_where_the_stretch_stood():
    assert matches(REPEATED, 2) == [(1, 3, 4)]
    (step,) = reshape(Z, SamplingSettings(dry_multiplier=0.8), REPEATED).steps
    assert step.note == "the latest 3 tokens came before; tokens lowered: 1"
    assert matches(REPEATED[:2], 2) == [] and matches([], 2) == []


def test_dry_finds_the_longest_stretch_for_each_token():
    tokens = np.random.default_rng(0).integers(0, 3, 60).tolist()
    longest = {}
    for place in range(len(tokens) - 1):
        length = 0
        while length <= place and tokens[place - length] == tokens[len(tokens) - 1 - length]:
            length += 1
        if length >= 2:
            longest[tokens[place + 1]] = max(length, longest.get(tokens[place + 1], 0))
    assert {match.token_id: match.length for match in matches(tokens, 2)} == longest


def test_dry_looks_no_further_than_its_window():
    close(probs(REPEATED, dry_multiplier=0.8, dry_penalty_last_n=4), oracles.softmax(Z))


def test_xtc_is_a_mixture_of_two_branches():
    result = reshape(Z, SamplingSettings(xtc_probability=0.5))
    acts, not_ = result.ways
    assert acts.weight == not_.weight == 0.5
    close(acts.final.dense().numpy(), [0.5135, 0.2307, 0, 0.0849, 0.1709])
    close(not_.final.dense().numpy(), oracles.softmax(Z))
    close(result.probs.numpy(), [0.3345, 0.1503, 0.3485, 0.0553, 0.1113])
    assert chi_square(draws(result, 20_000, seed=3), result).p_value > 1e-3


def test_xtc_before_and_after_the_temperature():
    close(
        reshape(Z, preset("llama.cpp", temperature=1.5, top_k=0, top_p=1, min_p=0, xtc_probability=1)).probs.numpy(),
        [0.4223, 0.2477, 0, 0.1272, 0.2028],
    )
    kobold = preset("koboldcpp", temperature=1.5, top_k=0, top_p=1, xtc_probability=1, xtc_threshold=0.1)
    close(reshape(Z, kobold).probs.numpy(), [0, 0.4288, 0, 0.2201, 0.3511])


def test_xtc_needs_two_tokens_above_the_threshold():
    result = reshape(Z, SamplingSettings(xtc_probability=0.5, xtc_threshold=0.4))
    assert len(result.ways) == 1 and result.candidates == 5 and "fewer than two" in result.steps[0].note


@pytest.mark.parametrize(
    ("version", "expected", "next_mu"),
    [
        (2, [0.1824, 0, 0.8176, 0, 0], {2: 3.1209, 0: 2.9045}),
        (1, [0.1686, 0.0758, 0.7556, 0, 0], {2: 3.1096, 0: 2.8932, 1: 2.7778}),
    ],
)
def test_mirostat(version, expected, next_mu):
    result = reshape(Z, SamplingSettings(mirostat=version, mirostat_tau=1.5))
    close(result.probs.numpy(), expected)
    for token, mu in next_mu.items():
        assert result.next_state(token)["mirostat"] == pytest.approx(mu, abs=6e-5)
    assert result.next_state(3) == {"mirostat": 3.0}  # a token that could not be drawn says nothing


def test_mirostat_keeps_the_surprise_of_a_text_near_its_target():
    logits = np.random.default_rng(1).normal(0, 2, 300)
    settings, state, surprise = SamplingSettings(mirostat=2, mirostat_tau=3.0), None, []
    for seed in range(300):
        result = reshape(logits, settings, state=state)
        token = int(draws(result, 1, seed).argmax())
        surprise.append(-np.log2(result.probs[token].item()))
        state = result.next_state(token)
    assert np.mean(surprise[50:]) == pytest.approx(3, abs=0.15)


def test_adaptive_p():
    settings = SamplingSettings(adaptive_target=0.3)
    first = reshape(Z, settings)
    close(first.probs.numpy(), [0.7422, 0.1271, 0.0019, 0.0451, 0.0838])
    for token, total, expected in (
        (0, 2.8555, [0.7538, 0.1213, 0.0037, 0.0421, 0.0792]),
        (2, 3.3971, [0.6978, 0.1466, 0.0003, 0.0557, 0.0996]),
    ):
        state = first.next_state(token)
        assert state["adaptive_p"] == pytest.approx((total, 10), abs=6e-5)
        close(reshape(Z, settings, state=state).probs.numpy(), expected)


def test_dynamic_temperature():
    result = reshape(Z, SamplingSettings(dynatemp_range=0.5))
    close(result.probs.numpy(), [0.1685, 0.0817, 0.6545, 0.0331, 0.0623])
    assert result.steps[0].note.values["temperature"] == pytest.approx(1.1054, abs=6e-5)
    assert reshape(Z, SamplingSettings(dynatemp_range=0.5, top_k=1, order=("top_k", "temperature"))).candidates == 1


@pytest.mark.parametrize(
    ("logits", "knobs", "expected"),
    [
        (Z, {"top_n_sigma": 1}, GREEDY),
        (Z, {"top_n_sigma": 2}, [0.1824, 0, 0.8176, 0, 0]),
        (Z, {"min_k": 3}, GREEDY),
        (Z, {"temperature": 3, "min_k": 3}, [0.3775, 0, 0.6225, 0, 0]),
        ([3.6, 3.1, 3.8, 0.5, 1.2], {"min_k": 3}, [0.3536, 0.2145, 0.4319, 0, 0]),
        (Z, {"p_less": 1}, GREEDY),
        (Z, {"temperature": 1.5, "p_less": 1}, GREEDY),
        (Z, {"p_less": 2}, GREEDY),
        (Z, {"temperature": 1.5, "p_less": 2}, [0.2689, 0, 0.7311, 0, 0]),
    ],
)
def test_shapes(logits, knobs, expected):
    close(probs(logits=logits, **knobs), expected)


def test_top_n_sigma_of_a_loader_that_divides_by_one_less():
    close(reshape(Z, preset("text-generation-webui", top_p=1, top_n_sigma=2)).probs, [0.1686, 0.0758, 0.7556, 0, 0])


def test_top_a_and_quadratic_as_their_formulas_say():
    p = oracles.softmax(Z)
    close(probs(top_a=0.15), oracles.softmax(oracles.masked(Z, np.flatnonzero(p >= 0.15 * p.max() ** 2))))
    z, d = np.array(Z), np.array(Z) - max(Z)
    close(probs(smoothing_factor=0.3), oracles.softmax(-0.3 * d**2))
    close(probs(smoothing_factor=0.3, smoothing_curve=2), oracles.softmax(-0.15 * d**2 + 0.15 * d**3))
    close(probs(smoothing_factor=0.3, temperature=2), oracles.softmax(-0.3 * (d / 2) ** 2))
    assert len(z) == 5


def test_tail_free_keeps_what_stands_before_the_flat_tail():
    p = np.sort(oracles.softmax(Z))[::-1]
    bend = np.abs(np.diff(p, 2))
    count = int(np.argmax(np.cumsum(bend / bend.sum()) > 0.95))
    kept = oracles.by_probability(Z)[: max(count, 1)]
    close(probs(tfs_z=0.95), oracles.softmax(oracles.masked(Z, kept)))


def test_the_same_seed_and_state_give_the_same_text_and_settings_say_what_is_on():
    settings = SamplingSettings(mirostat=2, mirostat_tau=1.5, mirostat_eta=0.2, seed=1)
    assert dataclasses.replace(settings, seed=1) == settings
    (step,) = reshape(Z, settings).steps
    assert step.settings == {"mirostat": 2, "mirostat_tau": 1.5, "mirostat_eta": 0.2}
