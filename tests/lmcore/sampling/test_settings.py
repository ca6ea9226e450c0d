"""SamplingSettings and Rules: what is allowed, what is refused and how, what is on."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from lmcore.sampling import OFF, STAGES, Rules, SamplingSettings


def test_nothing_is_on_unless_it_was_asked_for():
    assert SamplingSettings().active == ()
    assert all(getattr(SamplingSettings(), stage) == off for stage, off in OFF.items())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", math.inf),
        ("temperature", math.nan),
        ("temperature", "1"),
        ("temperature", None),
        ("temperature", True),
        ("top_k", -1),
        ("top_k", 1.5),
        ("top_k", 50.0),
        ("top_k", True),
        ("top_p", -0.01),
        ("top_p", 1.01),
        ("top_p", math.nan),
        ("min_p", -0.01),
        ("min_p", 1.01),
        ("typical_p", -0.01),
        ("typical_p", 1.01),
        ("epsilon_cutoff", -0.01),
        ("epsilon_cutoff", 1.0),
        ("eta_cutoff", -0.01),
        ("eta_cutoff", 1.0),
        ("top_n_sigma", -1.0),
        ("top_n_sigma", math.inf),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", -1.0),
        ("repetition_penalty", math.inf),
        ("presence_penalty", math.inf),
        ("presence_penalty", math.nan),
        ("frequency_penalty", -math.inf),
        ("penalty_last_n", -1),
        ("penalty_last_n", 0.5),
        ("seed", -1),
        ("seed", 1.0),
        ("seed", 2**64),
        ("logit_bias", {0: math.nan}),
        ("logit_bias", {0: math.inf}),
        ("logit_bias", {-1: 1.0}),
        ("logit_bias", {"a": 1.0}),
        ("logit_bias", {0: "much"}),
        ("logit_bias", ((0, 1.0), (0, 2.0))),
        ("logit_bias", 3),
        ("order", ("temperature", "temperature")),
        ("order", ("heat",)),
        ("order", "temperature"),
        ("order", 3),
        ("rules", None),
    ],
)
def test_what_is_out_of_range_is_refused_by_name_and_value(field, value):
    with pytest.raises(ValueError, match=field) as error:
        SamplingSettings(**{field: value})
    told = value if not isinstance(value, (dict, tuple)) else next(iter(value))
    assert repr(told) in str(error.value) or str(told) in str(error.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [("top_k_ties", "some"), ("zero_temperature", 0), ("top_p_boundary", "kept"), ("greedy_below", -1.0)],
)
def test_unknown_rules_are_refused(field, value):
    with pytest.raises(ValueError, match=field):
        Rules(**{field: value})


def test_the_ends_of_each_range_are_allowed():
    SamplingSettings(temperature=0, top_p=0, min_p=1, typical_p=0, epsilon_cutoff=0.999, eta_cutoff=0.999, seed=0)
    SamplingSettings(top_k=1, top_n_sigma=1e-9, repetition_penalty=1e-9, presence_penalty=-1e9, seed=2**64 - 1)
    SamplingSettings(logit_bias={0: -math.inf, 1: -1e9}, penalty_last_n=0)


def test_numbers_of_numpy_are_numbers():
    settings = SamplingSettings(top_k=np.int64(5), temperature=np.float32(0.5), logit_bias={np.int32(2): np.float64(1)})
    assert settings == SamplingSettings(top_k=5, temperature=0.5, logit_bias={2: 1.0})


def test_off_has_one_form_so_that_equal_settings_are_equal():
    assert SamplingSettings(top_k=0, top_n_sigma=0, logit_bias={}) == SamplingSettings()
    one, two = SamplingSettings(logit_bias={7: 1, 3: -2}), SamplingSettings(logit_bias=((3, -2.0), (7, 1.0)))
    assert one == two and hash(one) == hash(two)


def test_settings_survive_replace_and_pickle():
    settings = SamplingSettings(temperature=0.8, top_k=50, logit_bias={3: 1.0}, seed=4)
    assert replace(settings, seed=4) == settings
    assert replace(settings, top_k=None).active == ("logit_bias", "temperature")
    assert pickle.loads(pickle.dumps(settings)) == settings


def test_active_stages_come_in_the_order_given():
    settings = SamplingSettings(temperature=0.8, top_k=5, top_p=0.9, order=("top_p", "temperature", "top_k"))
    assert settings.active == ("top_p", "temperature", "top_k")
    assert SamplingSettings(order=list(reversed(STAGES))).order == tuple(reversed(STAGES))


def test_an_active_setting_without_its_stage_is_refused():
    with pytest.raises(ValueError, match="top_k is 50 but order has no stage 'top_k'"):
        SamplingSettings(top_k=50, order=("temperature",))
    SamplingSettings(top_k=None, order=("temperature",))


def test_temperature_zero_is_greedy_or_an_error_by_the_rule():
    assert SamplingSettings(temperature=0).active == ("temperature",)
    with pytest.raises(ValueError, match="temperature is 0"):
        SamplingSettings(temperature=0, rules=Rules(zero_temperature="error"))
