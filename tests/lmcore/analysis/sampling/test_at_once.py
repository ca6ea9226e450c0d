"""All positions of a text together, against the chain at each of them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmcore.analysis.sampling.at_once import at_once
from lmcore.analysis.sampling.through import TextLogits
from lmcore.sampling import PRESETS, STAGES, History, SamplingSettings, preset, reshape

# Few distinct values on a coarse grid make ties and exact boundaries common.
GRID = st.integers(-12, 12).map(lambda z: z / 4)
LEVEL = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.999])
VALUES = {
    "temperature": st.sampled_from([0.0, 0.5, 0.8, 1.7]),
    "dynatemp_range": st.sampled_from([0.3, 0.9]),
    "top_n_sigma": st.sampled_from([0.5, 1.0, 2.0]),
    "top_h": LEVEL,
    "top_k": st.integers(1, 14),
    "top_p": LEVEL,
    "min_p": LEVEL,
    "typical_p": LEVEL,
    "epsilon_cutoff": st.sampled_from([0.01, 0.1, 0.25]),
    "eta_cutoff": st.sampled_from([0.01, 0.1, 0.5]),
    "top_a": LEVEL,
    "p_less": st.sampled_from([1, 2]),
    "repetition_penalty": st.sampled_from([0.8, 1.3]),
    "presence_penalty": st.sampled_from([-0.5, 0.5]),
    "frequency_penalty": st.sampled_from([-0.5, 0.25]),
    "dry_multiplier": st.sampled_from([0.5]),
    "smoothing_factor": st.sampled_from([0.1, 0.5]),
    "logit_bias": st.sampled_from([{0: 1.0, 3: -math.inf}, {1: -0.5}]),
}


@st.composite
def texts(draw):
    rows, size = draw(st.integers(2, 6)), draw(st.integers(4, 16))
    logits = [[draw(GRID) for _ in range(size)] for _ in range(rows)]
    ids = draw(st.lists(st.integers(0, size - 1), min_size=rows, max_size=rows))
    return TextLogits.of(torch.tensor(logits), ids)


@st.composite
def any_settings(draw):
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=5))
    values = {name: draw(VALUES[name]) for name in names}
    engine = draw(st.sampled_from(["lmcore", *PRESETS]))
    if engine != "lmcore":
        try:
            return preset(engine, **values)
        except ValueError:
            pass  # this engine refuses one of them
    return SamplingSettings(**values, order=draw(st.permutations(list(STAGES))))


@pytest.mark.slow
@given(texts(), any_settings())
def test_what_is_certain_is_what_the_chain_gives(text, settings):
    try:
        found = at_once(text, settings)
    except ValueError:
        return  # a bias left no token
    if found is None:
        return
    for place in found.certain.nonzero().squeeze(1).tolist():
        result = reshape(text.logits[place], settings, History(prompt=text.ids[: place + 1]))
        token = text.ids[place + 1]
        p = float(result.probs[token])
        assert int(found.candidates[place]) == result.candidates
        assert float(found.bits[place]) == pytest.approx(-math.log2(p) if p else math.inf, abs=1e-9)
        assert float(found.entropy_bits[place]) == pytest.approx(result.entropy_bits, abs=1e-9)
        assert float(found.removed_mass[place]) == pytest.approx(result.removed_mass, abs=1e-9)


@pytest.fixture(scope="module")
def wide():
    """A vocabulary with a heavy head and a long tail, as a model's."""
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(12, 5000, generator=generator) * 3
    logits += torch.where(torch.rand(12, 5000, generator=generator) < 2e-3, 6.0, 0.0)
    ids = logits.topk(50).indices[torch.arange(12), torch.randint(50, (12,), generator=generator)].roll(1)
    return TextLogits.of(logits, ids.tolist())


@pytest.mark.parametrize(
    "settings",
    [
        SamplingSettings(temperature=0.8),
        SamplingSettings(temperature=1.5, top_p=0.95),
        SamplingSettings(typical_p=0.9),
        SamplingSettings(epsilon_cutoff=3e-4, min_p=0.01),
        SamplingSettings(dynatemp_range=0.5, top_a=0.2),
        SamplingSettings(p_less=2, temperature=1.5),
        SamplingSettings(top_n_sigma=2, top_h=0.5),
        preset("llama.cpp", repetition_penalty=1.2, dry_multiplier=0.8),
        preset("sglang", top_k=50, top_p=0.9),
    ],
    ids=str,
)
def test_little_is_left_to_the_chain(wide, settings):
    found = at_once(wide, settings)
    assert found is not None and bool(found.certain.all())
    for place in (0, 7):
        result = reshape(wide.logits[place], settings, History(prompt=wide.ids[: place + 1]))
        assert int(found.candidates[place]) == result.candidates
        assert float(found.entropy_bits[place]) == pytest.approx(result.entropy_bits, abs=1e-9)


@pytest.mark.parametrize("settings", [SamplingSettings(mirostat=2), SamplingSettings(xtc_probability=0.5)], ids=str)
def test_state_and_chance_are_run_a_position_at_a_time(wide, settings):
    assert at_once(wide, settings) is None
