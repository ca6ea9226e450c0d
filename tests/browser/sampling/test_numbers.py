"""The lab's scripts in a real browser: the same kept sets and probabilities as lmcore.sampling."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Error, Page

from lmcore.sampling import PRESETS, STAGES, History, Rules, SamplingSettings, preset, reshape
from lmcore.sampling.presets import Refused
from pages.live.sampling_lab import engines
from pages.live.sampling_lab.generated import KERNELS
from tests.browser.scripts import open_scripts

HISTORY = History(prompt=[0, 1, 1], generated=[2, 1])
VALUES: dict[str, list[Any]] = {
    "temperature": [0, 1e-40, 0.3, 0.8, 1.5, 1e3],
    "top_k": [1, 2, 3, 40, 10**6],
    "top_p": [0, 0.1, 0.5, 0.9, 0.99999],
    "min_p": [0.01, 0.1, 0.5, 1],
    "typical_p": [0, 0.2, 0.5, 0.9],
    "epsilon_cutoff": [3e-4, 0.05, 0.9],
    "eta_cutoff": [3e-4, 0.05],
    "top_n_sigma": [0.5, 1, 2],
    "repetition_penalty": [1.5, 0.7],
    "presence_penalty": [0.5, -1],
    "frequency_penalty": [0.5, -0.3],
    "logit_bias": [{1: 2.5, 0: -1}, {2: -math.inf, 0: 1}],
    "dynatemp_range": [0.5, 1.5],
    "smoothing_factor": [0.2, 1.5],
    "smoothing_curve": [1.7, 4.5],
    "top_h": [0.3, 0.8],
    "top_a": [0.2, 0.9],
    "min_k": [0.5, 3.0, 40.0],
    "p_less": [1, 2],
    "tfs_z": [0.2, 0.95],
    "dry_multiplier": [0.8],
    "dry_allowed_length": [0, 1],
    "xtc_probability": [0.3, 1],
    "xtc_threshold": [0.01, 0.3],
    "mirostat": [1, 2],
    "mirostat_tau": [1.5],
    "adaptive_target": [0.0, 0.3, 0.9],
}
RUN = """([name, settings, history]) => {
  const engine = lab.engines[name];
  const used = lab.under(engine, {...lab.OFF, order: engine.order, ...settings});
  const limit = lab.refusal(engine, used);
  if (limit) return { refused: limit.field };
  lab.history ??= history; // the same object each time: else nothing of the last result is taken over
  const result = lab.reshape(lab.ranked, used, lab.history, lab.last);
  lab.last = result;
  const probs = lab.probsById(result);
  const kept = Int32Array.from(result.final.ranks, (rank) => lab.ranked.ids[rank]).sort();
  const text = (array) => {
    const bytes = new Uint8Array(array.buffer);
    let out = "";
    for (let i = 0; i < bytes.length; i += 32768) out += String.fromCharCode(...bytes.subarray(i, i + 32768));
    return btoa(out);
  };
  return {
    kept: text(kept),
    probs: text(Float64Array.from(kept, (id) => probs[id])),
    steps: result.steps.map(({name, kept, removedMass}) => [name, kept, removedMass]),
    fate: text(Int8Array.from(lab.ranked.rankOf, (rank) => result.fate[rank])),
    bits: lab.entropyBits(result.final),
    removed: lab.totalRemovedMass(result),
  };
}"""


def grid(seed: int, combinations: int) -> list[dict[str, Any]]:
    """Each value alone, then random combinations of stages, every other one in an order of its own."""
    chosen = [{name: value} for name, values in VALUES.items() for value in values]
    source = random.Random(seed)
    for index in range(combinations):
        names = source.sample(list(VALUES), source.randint(2, 7))
        settings = {name: source.choice(VALUES[name]) for name in names}
        if index % 2:
            settings["order"] = source.sample(STAGES, len(STAGES))
        chosen.append(settings)
    return chosen


@pytest.fixture(scope="module")
def module_page(browser: Browser) -> Iterator[Page]:
    """A blank page with reshape.js in it."""
    context = browser.new_context()
    page = context.new_page()
    open_scripts(page)
    page.evaluate(
        """async () => {
          const modules = ["candidates", "nucleus", "reshape", "engines"].map((n) => import(`/sampling_lab/${n}.js`));
          globalThis.lab = Object.assign({}, ...(await Promise.all(modules)));
        }"""
    )
    page.evaluate("(engines) => (lab.engines = engines)", engines.table())
    yield page
    context.close()


def give(page: Page, logits: np.ndarray) -> None:
    kind = f"Float{8 * logits.itemsize}Array"
    page.evaluate(
        f"""(text) => {{
          const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
          lab.ranked = lab.rankVocabulary(new {kind}(bytes.buffer));
          lab.last = null;
        }}""",
        base64.b64encode(logits.tobytes()).decode(),
    )


def decoded(text: str, dtype: type) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def compare(page: Page, logits: np.ndarray, settings: dict[str, Any], engine: str = engines.OWN) -> None:
    """Hold the scripts' numbers to lmcore's, under lmcore's own rules or an engine's."""
    if engine == engines.OWN:
        chosen = SamplingSettings(**settings)
    else:
        if PRESETS[engine].penalty_window:  # nothing said is a window of 0, which some engines read as none
            settings = {"penalty_last_n": 10**6, **settings}
        try:
            chosen = preset(engine, **{**dict.fromkeys(PRESETS[engine].defaults), **settings})
        except Refused:  # where it refuses two values, either may be named first
            assert page.evaluate(RUN, [engine, settings, HISTORY._asdict()])["refused"] in settings
            return
    told = dict(settings)
    if "logit_bias" in told:
        told["logit_bias"] = {str(k): v if math.isfinite(v) else "-inf" for k, v in told["logit_bias"].items()}
    arguments = [engine, told, HISTORY._asdict()]
    try:
        expected = reshape(torch.from_numpy(logits), chosen, HISTORY)
    except ValueError:  # a ban of the only token a filter left
        with pytest.raises(Error, match="overflow"):
            page.evaluate(RUN, arguments)
        return
    found = page.evaluate(RUN, arguments)
    kept = decoded(found["kept"], np.int32)
    np.testing.assert_array_equal(kept, expected.kept_ids.numpy(), err_msg=str(settings))
    probs = expected.probs.numpy()[kept]
    np.testing.assert_allclose(decoded(found["probs"], np.float64), probs, rtol=0, atol=1e-9, err_msg=str(settings))
    np.testing.assert_array_equal(decoded(found["fate"], np.int8), expected.removed_by.numpy(), err_msg=str(settings))
    assert [(name, n) for name, n, _ in found["steps"]] == [(step.name, step.kept) for step in expected.steps]
    masses = [step.removed_mass for step in expected.steps]
    np.testing.assert_allclose([mass for _, _, mass in found["steps"]], masses, atol=1e-9, err_msg=str(settings))
    assert found["bits"] == pytest.approx(expected.entropy_bits, abs=1e-9)
    assert found["removed"] == pytest.approx(expected.removed_mass, abs=1e-9)


WORKED = np.array([2.3, 1.5, 3.8, 0.5, 1.2])
VOCABULARIES = {
    "worked": (WORKED, 250),
    "ties": (np.array([1, 2, 2, 2, 3, 2, -1, 3], dtype=np.float32), 250),
    "impossible": (np.array([0.5, -np.inf, 1.5, -0.0, 0.0, -np.inf], dtype=np.float32), 150),
    "equal": (np.zeros(10, dtype=np.float32), 100),
    "large": (np.array([1e30, -1e30, 5.0], dtype=np.float32), 50),
    "one": (np.array([-3.0], dtype=np.float32), 0),
    "50257": (np.random.default_rng(1).normal(0, 3, 50_257).astype(np.float32), 80),
    "262144": (np.random.default_rng(2).normal(0, 3, 262_144).astype(np.float32), 0),
}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_kept_tokens_are_the_same_and_probabilities_agree(module_page: Page, name: str) -> None:
    logits, combinations = VOCABULARIES[name]
    give(module_page, logits)
    compared = 0
    for settings in grid(len(logits), combinations):
        if is_comparable(name, logits, settings):
            compare(module_page, logits, settings)
            compared += 1
    assert compared > 25


def is_comparable(name: str, logits: np.ndarray, settings: dict[str, Any]) -> bool:
    """Ids outside the vocabulary are refused, 1e30 with edits can overflow, and adaptive-p leaves a tail all but equal.

    Which of ten thousand tokens comes first there is decided by the last digit of an exponential.
    """
    if "adaptive_target" in settings and len(logits) > 100 and len(settings) > 1:
        return False
    edits = "penalty" in str(settings) or "logit_bias" in settings
    return not edits or (len(logits) > 2 and name != "large")


@pytest.mark.parametrize("engine", PRESETS)
@pytest.mark.parametrize("name", [name for name in VOCABULARIES if name != "262144"])  # no rule depends on the size
def test_each_engines_rules_give_what_its_preset_gives(module_page: Page, name: str, engine: str) -> None:
    logits, combinations = VOCABULARIES[name]
    give(module_page, logits)
    compared = 0
    for settings in grid(len(logits) + 1, combinations // 3):
        settings.pop("order", None)
        refused = settings.get("temperature") == 0 and engine == "transformers"
        if is_comparable(name, logits, settings) and not refused:
            compare(module_page, logits, settings, engine)
            if "penalty" in str(settings) and PRESETS[engine].penalty_window:
                compare(module_page, logits, {**settings, "penalty_last_n": 2}, engine)
            compared += 1
    assert compared > 25


def test_the_engine_that_refuses_temperature_zero_refuses_it(module_page: Page) -> None:
    give(module_page, WORKED)
    with pytest.raises(Exception, match="zero_temperature"):
        module_page.evaluate(RUN, ["transformers", {"temperature": 0}, HISTORY._asdict()])


def test_the_rules_of_the_scripts_are_lmcores_own(module_page: Page) -> None:
    assert module_page.evaluate("lab.RULES") == dataclasses.asdict(Rules())


def test_a_reused_prefix_gives_the_same_as_a_fresh_run(module_page: Page) -> None:
    give(module_page, VOCABULARIES["ties"][0])
    for top_p, k, t in itertools.product([0.5, 0.9], [2, 0, 5], [1.5, 1, 0.5]):
        compare(
            module_page,
            VOCABULARIES["ties"][0],
            {"repetition_penalty": 1.3, "temperature": t, "top_k": k, "top_p": top_p},
        )


def test_a_result_stays_whole_while_the_next_one_is_made(module_page: Page) -> None:
    give(module_page, VOCABULARIES["worked"][0])
    changed = module_page.evaluate("""() => {
      const history = {prompt: [], generated: []};
      const numbers = ({final}) => JSON.stringify([...lab.probsById({ranked: lab.ranked, final}), final.total]);
      let last = null;
      return [1.5, 0.7, 1.1, 1, 0.4, 2].filter((temperature) => {
        const settings = {...lab.OFF, order: ["temperature", "top_p"], temperature, top_p: 0.95};
        const before = last && numbers(last);
        const next = lab.reshape(lab.ranked, settings, history, last);
        const isChanged = last !== null && numbers(last) !== before;
        last = next;
        return isChanged;
      });
    }""")
    assert changed == []


def test_negative_zero_and_zero_are_ranked_by_id(module_page: Page) -> None:
    give(module_page, np.array([0.0, -0.0, 1.0, -0.0, 0.0], dtype=np.float32))
    assert module_page.evaluate("Array.from(lab.ranked.ids)") == [2, 0, 1, 3, 4]


def test_charts_are_not_laid_out_before_there_is_something_to_draw(browser: Browser) -> None:
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    open_scripts(page)
    page.evaluate("import('/sampling_lab/curves.js').then(({ Curves }) => void new Curves(document.body, () => {}))")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    page.close()
    assert problems == []


def test_an_edit_that_leaves_no_token_is_an_error(module_page: Page) -> None:
    give(module_page, np.array([3e38], dtype=np.float32))
    with pytest.raises(Exception, match="overflow"):
        module_page.evaluate(
            "lab.reshape(lab.ranked, {...lab.OFF, order: Object.keys(lab.STAGES), logit_bias: {0: '-inf'}})"
        )


def test_the_stages_that_the_page_takes_for_the_browsers_are_those_it_has(module_page: Page) -> None:
    assert set(module_page.evaluate("Object.keys(lab.KERNELS)")) == KERNELS
