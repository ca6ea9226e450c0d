"""The llama.cpp preset against llama.cpp's own sampler chain, through llama-cpp-python.

The package is looked for here, then in the environment of the tests' own server (tests/engines/llama_cpp.py). It runs
in a process of its own either way.
"""

import importlib.util
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lmcore.sampling import PRESETS, History, SamplingSettings, preset, reshape
from tests.engines.llama_cpp import NAME
from tests.engines.servers import python_of

from . import oracles

pytestmark = pytest.mark.slow

LEAST = (0, 3, 36)  # the version of llama-cpp-python that the preset describes
KNOBS = PRESETS["llama.cpp"].knobs
OFF = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


def python_with_it() -> Path | None:
    """Return a Python that has llama-cpp-python."""
    if importlib.util.find_spec("llama_cpp"):
        return Path(sys.executable)
    server = python_of(NAME)
    return server if any(server.parent.parent.glob("lib/python*/site-packages/llama_cpp")) else None


class Chain:
    """llama.cpp's chain in its default order, in another process."""

    def __init__(self, python: Path) -> None:
        program = Path(__file__).with_name("llama_chain.py")
        self._process = subprocess.Popen([python, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self._answer()

    def __call__(self, logits, settings: SamplingSettings, history=()):
        """Kept ids, ascending, and their probabilities."""
        ((ids, probs, _drawn),) = self.draws(logits, settings, history, 1)
        return ids, probs

    def draws(self, logits, settings: SamplingSettings, history=(), n=1):
        """For each of n draws from the same logits: kept ids, ascending, their probabilities, and the id drawn."""
        knobs = {name: getattr(settings, name) for name in KNOBS if name != "logit_bias"}
        knobs["seed"] = settings.seed or 0
        knobs["penalty_last_n"] = settings.penalty_last_n or 0
        knobs["dry_penalty_last_n"] = settings.dry_penalty_last_n or 0
        self._process.stdin.write(json.dumps([[float(logit) for logit in logits], knobs, list(history), n]) + "\n")
        self._process.stdin.flush()
        found = []
        for left, drawn in self._answer():
            possible = [(token, logit) for token, logit in left if logit > -np.inf]  # greedy and sigma leave some
            ids = [token for token, _ in possible]
            found.append((ids, oracles.softmax([logit for _, logit in possible]), drawn))
        return found

    def _answer(self):
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@pytest.fixture(scope="module")
def theirs():
    python = python_with_it()
    if python is None:
        pytest.skip("llama-cpp-python is not installed: python -m tests.engines.llama_cpp install")
    chain = Chain(python)
    if tuple(map(int, chain.version.split("."))) < LEAST:
        chain.close()
        pytest.skip(f"llama-cpp-python is {chain.version}; the preset describes {'.'.join(map(str, LEAST))} and later")
    yield chain
    chain.close()


def assert_equal(theirs, logits, knobs, history=()):
    settings = preset("llama.cpp", **{**OFF, **knobs})
    ids, probs = theirs(logits, settings, history)
    result = reshape(logits, settings, History(prompt=history))
    assert result.kept_ids.tolist() == ids, knobs
    np.testing.assert_allclose(result.probs[ids].numpy(), probs, atol=2e-5)


@pytest.mark.parametrize("size", [5, 1000])
@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_kept_sets_and_probabilities_over_a_grid(theirs, size, spread):
    logits = torch.randn(size, generator=torch.Generator().manual_seed(size)) * spread
    for t, k, p, rest in itertools.product(
        (0.0, 0.31, 1.0, 1.7),
        (0, 1, 3, 40, 5000),
        (0.0, 0.3107, 0.9503, 1.0),
        ({}, {"min_p": 0.0513}, {"typical_p": 0.6107}, {"top_n_sigma": 1.37}),
    ):
        assert_equal(theirs, logits, {"temperature": t, "top_k": k, "top_p": p, **rest})


def test_the_worked_example_under_defaults(theirs):
    settings = preset("llama.cpp")
    ids, probs = theirs(oracles.WORKED, settings)
    result = reshape(oracles.WORKED, settings)
    assert result.kept_ids.tolist() == ids
    np.testing.assert_allclose(result.probs[ids].numpy(), probs, atol=1e-6)


@pytest.mark.parametrize(
    "knobs",
    [
        {"repetition_penalty": 1.3},
        {"repetition_penalty": 0.8, "frequency_penalty": 0.4},
        {"presence_penalty": 0.7, "frequency_penalty": -0.2, "penalty_last_n": 3},
        {"repetition_penalty": 1.5, "penalty_last_n": 0},
    ],
)
def test_penalties_over_a_window(theirs, knobs):
    logits = torch.randn(30, generator=torch.Generator().manual_seed(1)) * 2
    assert_equal(theirs, logits, knobs, history=[3, 7, 3, 9, 9, 9, 11])
    assert_equal(theirs, logits, knobs, history=[5] + [6] * 64)


def test_exactly_k_of_tied_tokens(theirs):
    for k in (1, 2, 3, 4):
        settings = preset("llama.cpp", **{**OFF, "top_k": k})
        assert len(theirs([1, 2, 2, 2, 3], settings)[0]) == reshape([1, 2, 2, 2, 3], settings).candidates == k


def test_a_typical_sum_exactly_at_p_goes_on(theirs):
    settings = preset("llama.cpp", **{**OFF, "typical_p": 0.5})
    assert len(theirs([0.0] * 4, settings)[0]) == reshape([0.0] * 4, settings).candidates == 3


def test_dry_lowers_what_would_repeat(theirs):
    rng = np.random.default_rng(2)
    logits = torch.randn(12, generator=torch.Generator().manual_seed(3)) * 2
    for window, allowed, base in itertools.product((0, 5, 64), (0, 1, 2, 4), (1.0, 1.75, 4.0)):
        for history in ([], [1], rng.integers(0, 3, 40).tolist(), [1, 2, 3, 4] * 30, [7] * 100):
            knobs = {"dry_multiplier": 0.8, "dry_base": base, "dry_allowed_length": allowed}
            assert_equal(theirs, logits, {**knobs, "dry_penalty_last_n": window}, history)


def test_dynamic_temperature_over_a_grid(theirs):
    for spread, t, reach, exponent in itertools.product((0.01, 1.0, 6.0), (0.7, 1.5), (0.3, 1.0), (0.5, 1.0, 2.0)):
        logits = torch.randn(200, generator=torch.Generator().manual_seed(4)) * spread
        knobs = {"temperature": t, "dynatemp_range": reach, "dynatemp_exponent": exponent}
        assert_equal(theirs, logits, knobs)
        assert_equal(theirs, logits, {**knobs, "top_k": 7})
        assert_equal(theirs, logits, {**knobs, "top_k": 1})


def test_xtc_takes_one_of_our_two_ways_with_its_weight(theirs):
    logits = torch.randn(50, generator=torch.Generator().manual_seed(5)) * 2
    for threshold, share in itertools.product((0.01, 0.1, 0.4, 0.6), (0.3, 1.0)):
        knobs = {**OFF, "xtc_probability": share, "xtc_threshold": threshold}
        ways = reshape(logits, preset("llama.cpp", **knobs)).ways
        times = dict.fromkeys(range(len(ways)), 0)
        for ids, probs, _drawn in theirs.draws(logits, preset("llama.cpp", **knobs, seed=6), n=300):
            (place,) = (n for n, way in enumerate(ways) if way.final.token_ids.tolist() == ids)
            times[place] += 1
            np.testing.assert_allclose(ways[place].final.probs.numpy(), probs, atol=2e-5)
        expected = [way.weight * 300 for way in ways]
        # Four standard deviations of a binomial.
        assert all(abs(times[n] - mean) <= 4 * np.sqrt(300 * 0.25) for n, mean in enumerate(expected)), times


@pytest.mark.parametrize("knobs", [{"mirostat": 1}, {"mirostat": 2}, {"adaptive_target": 0.3}])
def test_what_steers_has_the_same_state_at_each_token(theirs, knobs):
    logits = torch.randn(400, generator=torch.Generator().manual_seed(7)) * 2
    for more in ({}, {"mirostat_tau": 2.0, "mirostat_eta": 0.4, "adaptive_decay": 0.5, "temperature": 1.3}):
        family = next(iter(knobs)).split("_")[0]
        mine = {name: value for name, value in more.items() if name.startswith((family, "temperature"))}
        chosen = preset("llama.cpp", **{**OFF, **knobs, **mine, "seed": 8})
        state = None
        for ids, probs, drawn in theirs.draws(logits, chosen, n=25):
            result = reshape(logits, chosen, state=state)
            assert result.kept_ids.tolist() == ids
            np.testing.assert_allclose(result.probs[ids].numpy(), probs, atol=2e-5)
            state = result.next_state(drawn)
