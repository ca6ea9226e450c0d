"""Each stage against numpy in float64, under lmcore's own rules."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmcore.sampling import STAGES, History, Rules, SamplingSettings, reshape

from . import oracles

# Distinct logits and off-the-grid levels: at an exact boundary the rounding of the two sides decides, and the rules
# for boundaries and ties have tests of their own below.
LOGITS = st.lists(st.integers(-8_000_000, 8_000_000).map(lambda z: z / 1e6), min_size=1, max_size=30, unique=True)
LEVEL = st.floats(0.011, 0.989).map(lambda x: x + 1 / 3e7)

FILTERS = {
    "top_p": (LEVEL, oracles.top_p),
    "min_p": (LEVEL, oracles.min_p),
    "typical_p": (LEVEL, oracles.typical_p),
    "epsilon_cutoff": (LEVEL, oracles.epsilon),
    "eta_cutoff": (LEVEL, oracles.eta),
    "top_n_sigma": (st.floats(0.1, 3), oracles.top_n_sigma),
    "top_k": (st.integers(1, 35), oracles.top_k),
}


@pytest.mark.parametrize("name", FILTERS)
@given(data=st.data())
def test_filter_keeps_what_numpy_keeps(name, data):
    levels, oracle = FILTERS[name]
    logits, level = data.draw(LOGITS), data.draw(levels)
    kept = oracle(logits, level)
    result = reshape(logits, SamplingSettings(**{name: level}))
    assert set(result.kept_ids.tolist()) == kept
    np.testing.assert_allclose(result.probs.numpy(), oracles.softmax(oracles.masked(logits, kept)), atol=1e-14)


@given(LOGITS, st.floats(0.05, 20))
def test_temperature_divides(logits, t):
    result = reshape(logits, SamplingSettings(temperature=t))
    np.testing.assert_allclose(result.probs.numpy(), oracles.softmax(np.array(logits) / t), atol=1e-14)


@given(st.data())
def test_a_chain_in_any_order_equals_the_oracles_one_after_another(data):
    logits = np.array(data.draw(LOGITS))
    names = data.draw(st.permutations([*FILTERS, "temperature"]))[: data.draw(st.integers(1, 8))]
    heats = st.floats(0.3, 3).filter(lambda t: t != 1)  # 1 is off, and no step
    values = {n: data.draw(heats if n == "temperature" else FILTERS[n][0]) for n in names}
    result = reshape(logits, SamplingSettings(**values, order=tuple(names)))
    for name, step in zip(names, result.steps, strict=True):
        if name == "temperature":
            logits = logits / values[name]
        else:
            logits = oracles.masked(logits, FILTERS[name][1](logits, values[name]))
        assert step.name == name
        assert set(step.kept_ids.tolist()) == set(np.flatnonzero(np.isfinite(logits)).tolist())
        np.testing.assert_allclose(step.probs.numpy(), oracles.softmax(logits), atol=1e-13)
    np.testing.assert_allclose(result.probs.numpy(), oracles.softmax(logits), atol=1e-13)


@pytest.mark.parametrize("name", ["top_p", "typical_p"])
@pytest.mark.parametrize("shape", ["gaussian", "flat", "zipf", "quantised", "one far above"])
def test_large_vocabularies_take_the_bucketed_path_and_agree_with_a_sort(name, shape):
    generator = torch.Generator().manual_seed(5)
    noise = torch.randn(20_000, generator=generator)
    ranks = torch.arange(1.0, 20_001)
    logits = {
        "gaussian": noise * 3,
        "flat": noise * 1e-3,
        "zipf": -ranks.log(),
        "quantised": (noise * 3).bfloat16().float(),  # many ties, as a half-precision model gives
        "one far above": torch.cat([noise[1:], torch.tensor([1e30])]),
    }[shape]
    log_probs = torch.log_softmax(logits.double(), 0).numpy()
    probs = np.exp(log_probs)
    entropy = -(probs[probs > 0] * log_probs[probs > 0]).sum()
    key = -log_probs if name == "top_p" else np.abs(-log_probs - entropy)
    order = np.argsort(key, kind="stable")
    shares = np.cumsum(probs[order])
    for level in (0.05, 0.5, 0.9, 0.9999):
        kept = np.sort(order[: np.searchsorted(shares, level) + 1])
        result = reshape(logits, SamplingSettings(**{name: level}))
        assert np.array_equal(result.kept_ids.numpy(), kept), level


def test_top_p_with_a_whole_model_sized_vocabulary_counts_in_float64():
    # Gaussian logits as in the published case: a float32 cumulative sum stops thousands of tokens early.
    logits = torch.randn(151_936, generator=torch.Generator().manual_seed(0)) * 3
    probs = np.sort(oracles.softmax(logits.numpy()))[::-1]
    right = np.searchsorted(np.cumsum(probs), 0.99999) + 1
    wrong = torch.searchsorted(torch.softmax(logits, 0).sort(descending=True).values.cumsum(0), 0.99999) + 1
    assert abs(int(wrong) - right) > 100  # float32 would show here
    assert reshape(logits, SamplingSettings(top_p=0.99999)).candidates == right


@given(LOGITS, st.data())
def test_kept_sets_nest_as_a_knob_loosens(logits, data):
    for name, levels in (("top_k", st.integers(1, 35)), ("top_p", st.floats(0, 1)), ("typical_p", st.floats(0, 1))):
        tight, loose = sorted((data.draw(levels), data.draw(levels)))
        kept = [set(reshape(logits, SamplingSettings(**{name: v})).kept_ids.tolist()) for v in (tight, loose)]
        assert kept[0] <= kept[1]
    tight, loose = sorted((data.draw(st.floats(0, 1)), data.draw(st.floats(0, 1))), reverse=True)
    kept = [set(reshape(logits, SamplingSettings(min_p=v)).kept_ids.tolist()) for v in (tight, loose)]
    assert kept[0] <= kept[1]


@pytest.mark.slow
@given(st.lists(st.floats(-50, 50), min_size=1, max_size=40), st.data())
def test_probabilities_sum_to_one_and_are_zero_outside_the_kept_set(logits, data):
    values = {
        "temperature": data.draw(st.sampled_from([0.0, 1e-40, 0.3, 1.0, 7.0])),
        "top_k": data.draw(st.none() | st.integers(1, 50)),
        "top_p": data.draw(st.floats(0, 1)),
        "min_p": data.draw(st.floats(0, 1)),
        "typical_p": data.draw(st.floats(0, 1)),
        "epsilon_cutoff": data.draw(st.floats(0, 0.99)),
        "eta_cutoff": data.draw(st.floats(0, 0.99)),
        "top_n_sigma": data.draw(st.none() | st.floats(0, 5)),
    }
    result = reshape(logits, SamplingSettings(**values, order=tuple(data.draw(st.permutations(STAGES)))))
    assert result.candidates >= 1
    assert result.probs.sum().item() == pytest.approx(1, abs=1e-12)
    outside = torch.ones(len(logits), dtype=torch.bool)
    outside[result.kept_ids] = False
    assert (result.probs[outside] == 0).all()


# Boundaries and ties


@pytest.mark.parametrize("n", [1, 3, 10, 49, 128, 1000, 5000])
def test_equal_logits_keep_exactly_k_of_n_at_p_of_k_over_n(n):
    for k in sorted({1, n // 7 or 1, n // 3 or 1, n - 1 or 1}):
        result = reshape([0.25] * n, SamplingSettings(top_p=k / n))
        assert result.kept_ids.tolist() == list(range(k if k < n else n))


@given(st.lists(st.integers(0, 3), min_size=2, max_size=40), st.integers(1, 45))
def test_ties_at_the_kth(values, k):
    exact = reshape(values, SamplingSettings(top_k=k))
    assert set(exact.kept_ids.tolist()) == oracles.top_k(values, k)
    every = reshape(values, SamplingSettings(top_k=k, rules=Rules(top_k_ties="all")))
    kth = sorted(values, reverse=True)[min(k, len(values)) - 1]
    assert every.kept_ids.tolist() == [i for i, v in enumerate(values) if v >= kth]


def test_ties_at_the_top_p_boundary_follow_the_rule():
    lowest = reshape([0, 0, 0, 0], SamplingSettings(top_p=0.5))
    highest = reshape([0, 0, 0, 0], SamplingSettings(top_p=0.5, rules=Rules(top_p_ties="highest")))
    assert lowest.kept_ids.tolist() == [0, 1] and highest.kept_ids.tolist() == [2, 3]
    many = torch.zeros(6000)
    assert reshape(many, SamplingSettings(top_p=0.5)).kept_ids.tolist() == list(range(3000))


def test_the_boundary_of_typical_follows_the_rule():
    # Four equal tokens: all equally typical, a quarter each.
    def kept(**rules):
        return reshape([0] * 4, SamplingSettings(typical_p=0.5, rules=Rules(**rules))).candidates

    assert kept() == 2  # the sum reaches 0.5 with the second
    assert kept(typical_boundary="exceed") == 3
    assert kept(typical_boundary="dropped") == 1
    assert kept(typical_ties="all") == 4


def test_min_p_one_keeps_the_maxima_and_equality_stays():
    assert reshape([2, 1, 2], SamplingSettings(min_p=1)).kept_ids.tolist() == [0, 2]
    assert reshape([0, -math.log(2)], SamplingSettings(min_p=math.exp(-math.log(2)))).candidates == 2


@pytest.mark.slow
@given(LOGITS, LEVEL, st.booleans())
def test_the_exllamav2_heap_equals_its_plain_description(logits, p, ranked):
    rules = Rules(top_p_boundary="crossing dropped")
    knobs = {"top_p": p, "rules": rules, "top_k": len(logits) if ranked else None}
    expected = oracles.exllamav2_top_p(logits, p, by_rank=ranked)
    assert set(reshape(logits, SamplingSettings(**knobs)).kept_ids.tolist()) == expected


def test_the_exllamav2_kept_set_has_a_hole_and_depends_on_the_order_of_arrival():
    logits = np.log([0.05, 0.15, 0.3, 0.5])
    rules = Rules(top_p_boundary="crossing dropped")
    assert reshape(logits, SamplingSettings(top_p=0.86, top_k=4, rules=rules)).kept_ids.tolist() == [0, 2, 3]
    assert reshape(logits, SamplingSettings(top_p=0.86, rules=rules)).kept_ids.tolist() == [2, 3]


# Edits of the logits


def test_repetition_penalty_divides_positive_and_multiplies_negative_logits_once():
    settings = SamplingSettings(repetition_penalty=1.5)
    result = reshape([3.0, -1.0, 0.0, 2.0], settings, history=[0, 0, 1, 2, 0])
    np.testing.assert_allclose(result.probs.numpy(), oracles.softmax([2.0, -1.5, 0.0, 2.0]), atol=1e-15)


def test_presence_and_frequency_penalties_subtract_by_count():
    result = reshape([1.0, 1.0, 1.0], SamplingSettings(presence_penalty=0.5, frequency_penalty=0.25), [0, 0, 0, 2])
    np.testing.assert_allclose(result.probs.numpy(), oracles.softmax([1 - 0.5 - 0.75, 1.0, 1 - 0.5 - 0.25]), atol=1e-15)
    rewarded = reshape([1.0, 1.0], SamplingSettings(presence_penalty=-2), [1])
    assert rewarded.probs[1] > rewarded.probs[0]


def test_penalties_after_the_temperature_see_the_divided_logits():
    settings = SamplingSettings(temperature=2, presence_penalty=1, order=("temperature", "presence_penalty"))
    result = reshape([3.0, 1.0], settings, [0])
    np.testing.assert_allclose(result.probs.numpy(), oracles.softmax([3 / 2 - 1, 1 / 2]), atol=1e-15)


def test_penalties_skip_tokens_that_an_earlier_filter_removed():
    settings = SamplingSettings(top_k=2, presence_penalty=1, order=("top_k", "presence_penalty"))
    result = reshape([0.0, 3.0, 1.0, 2.0], settings, [0, 3])
    np.testing.assert_allclose(result.probs.numpy(), oracles.softmax([-np.inf, 3, -np.inf, 1]), atol=1e-15)


def test_which_tokens_the_penalties_count():
    history = History(prompt=[0, 1], generated=[2])
    everything = reshape([0.0] * 4, SamplingSettings(presence_penalty=1), history)
    assert (everything.probs[:3] < everything.probs[3]).all()
    rules = Rules(additive_penalties_count="generated")
    settings = SamplingSettings(presence_penalty=1, frequency_penalty=1, rules=rules)
    generated = reshape([0.0] * 4, settings, history)
    assert generated.probs[0] == generated.probs[3] > generated.probs[2]
    repetition = reshape([1.0] * 4, SamplingSettings(repetition_penalty=2, rules=rules), history)
    assert (repetition.probs[:3] < repetition.probs[3]).all()  # the prompt counts here under every rule
    assert torch.equal(reshape([0.0] * 4, settings, [2]).probs, generated.probs)  # a plain sequence is generated


@pytest.mark.parametrize(
    ("last_n", "penalised"), [(None, {0, 1, 2}), (2, {1, 2}), (1, {2}), (0, set()), (9, {0, 1, 2})]
)
def test_the_window_of_the_penalties(last_n, penalised):
    settings = SamplingSettings(frequency_penalty=1, penalty_last_n=last_n)
    result = reshape([0.0] * 4, settings, History(prompt=[0, 1], generated=[2]))
    assert set((result.probs < result.probs.max()).nonzero().squeeze(1).tolist()) == penalised


def test_logit_bias_adds_and_bans():
    result = reshape([1.0, 1.0, 1.0], SamplingSettings(logit_bias={0: 1.5, 2: -math.inf}))
    np.testing.assert_allclose(result.probs.numpy(), oracles.softmax([2.5, 1.0, -np.inf]), atol=1e-15)
    assert result.steps[0].removed_ids.tolist() == [2]


@pytest.mark.parametrize(
    ("settings", "history", "message"),
    [
        (SamplingSettings(logit_bias={5: 1.0}), [], "logit_bias names token 5; ids of this vocabulary run to 4"),
        (SamplingSettings(repetition_penalty=2), [7], "history names token 7"),
        (SamplingSettings(presence_penalty=2), [-1], "history names token -1"),
        (SamplingSettings(logit_bias=dict.fromkeys(range(5), -math.inf)), [], "no token is left"),
        (SamplingSettings(repetition_penalty=1e-308), [2], "overflowed"),
    ],
)
def test_edits_that_cannot_be_are_refused(settings, history, message):
    with pytest.raises(ValueError, match=message):
        reshape(np.array(oracles.WORKED) * 100, settings, history)


@pytest.mark.parametrize("t", [1e-40, 1e-3, 1.0, 1e20, 1e40])
def test_a_nucleus_of_many_tokens_is_right_at_any_temperature(t):
    # Beyond 4,096 tokens the boundary is looked for in buckets; a score may then be far too small or large for float32.
    logits = torch.randn(6000, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    kept = set(reshape(logits, SamplingSettings(temperature=t, top_p=0.5)).kept_ids.tolist())
    weights = np.exp((logits.numpy() - logits.numpy().max()) / t)
    order = oracles.by_probability(logits.tolist())
    n = int(np.searchsorted(np.cumsum(weights[order]) / weights.sum(), 0.5)) + 1
    assert kept == set(order[:n])
