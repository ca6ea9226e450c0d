"""What the lab is given and what is taken of what it tells."""

import json
import re

import numpy as np
import pytest

import lmcore
from lmcore.sampling import OFF, STAGES
from lmcore.sampling.stages.dry import matches
from pages.live import sampling_lab
from pages.live.part import scripts
from pages.live.sampling_lab import pack
from pages.live.sampling_lab.labels import stage_titles
from pages.stages.sampling import knobs
from tests.pages.harness import opener, parts, told

run = opener("sampling")


def test_the_lab_gets_the_logits_as_bytes_and_the_rest_apart() -> None:
    app = run(prompt="今天天气", position="0", temperature="0.5")
    data, settings, _result, rest = parts(app, "sampling")
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode("今天天气").ids
    logits = lm(ids)[0].numpy()
    assert data == logits.tobytes() and len(data) == 4 * lm.config.vocab_size
    assert settings["temperature"] == 0.5 and settings["order"] == list(STAGES)
    assert rest["history"] == {"prompt": ids[:1], "generated": []}
    assert len(rest["ids"]) == len(rest["texts"]) <= sampling_lab.N_TEXTS + 1
    assert set(np.argsort(-logits)[:200]) <= set(rest["ids"])


@pytest.mark.parametrize(
    "told", [None, 3, {}, {"temperature": -1}, {name: "x" for name in STAGES}, {"order": ["nothing"], "bars": 3}]
)
def test_what_does_not_fit_is_not_taken(told: object, monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, object] = {}
    monkeypatch.setattr(knobs.st, "session_state", state)
    knobs.take(told)
    assert state == {}


def test_what_fits_is_taken_as_the_address_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, object] = {}
    monkeypatch.setattr(knobs.st, "session_state", state)
    told = {**{name: knobs.off(name) for name in knobs.numbers()}, "logit_bias": {"5": 1.5}, "order": list(STAGES)}
    told |= {"engine": "lmcore", "penalty_last_n": 3, "against": "vllm", "message": ["lab", 4]}
    knobs.take({**told, "temperature": 0.8, "top_k": 7, "bars": 900, "log": True, "token": 12})
    assert (state["temperature"], state["top_k"], state["logit_bias"], state["order"]) == (0.8, 7, "5:1.5", None)
    assert (state["bars"], state["log_bars"], state["token"]) == (200, True, 12)
    assert (
        state["penalty_last_n"] == 3 and state["dry_multiplier"] is None
    )  # what is rare and off is not in the address
    assert state["sampling.answers"] == ["lab", 4]


def test_a_bias_keeps_every_digit() -> None:
    bias = {1: 1 / 3, 2: -2.0, 3: 1e-7, 4: float("-inf")}
    assert knobs.bias_of(knobs.bias_text(bias)) == bias


def test_the_scripts_know_the_stages_of_lmcore() -> None:
    written = scripts()["sampling_lab/declared.js"].decode()
    tables = dict(re.findall(r"export const (\w+) = (.*?);\n", written, re.DOTALL))
    off, stages = json.loads(tables["OFF"]), json.loads(tables["STAGES"])
    assert tuple(stages) == STAGES == tuple(stage_titles())
    assert off.keys() == OFF.keys() and (off["top_k"], off["top_p"], off["logit_bias"]) == (0, 1, {})


def test_a_result_is_packed_with_its_steps_its_probabilities_and_who_removed_what() -> None:
    settings = lmcore.SamplingSettings(temperature=0.9, dry_multiplier=0.8, xtc_probability=0.5)
    result = lmcore.reshape([2.3, 1.5, 3.8, 0.5, 1.2], settings, [0, 4, 3, 2, 0, 1, 3, 2, 0])
    packed = pack(result)
    start = 8 + int.from_bytes(packed[:8], "little")
    head = json.loads(packed[8:start])
    np.testing.assert_array_equal(np.frombuffer(packed[start : start + 8 * 5]), result.probs.numpy())
    np.testing.assert_array_equal(np.frombuffer(packed[start + 8 * 5 :], np.int8), result.removed_by.numpy())
    assert [step["name"] for step in head["steps"]] == ["dry", "temperature", "xtc"] and head["ways"] == [0.5, 0.5]


def test_nothing_is_sent_that_the_browser_computes_itself() -> None:
    app = run(prompt="今天天气", temperature="0.9", top_a="0.2", dry_multiplier="0.8", mirostat="2")
    result, rest = parts(app, "sampling")[2:]
    assert result["text"] == "" and rest["result"] is None
    assert "dry_multiplier=0.8" in app.code[-1].value


def test_what_looks_further_is_shown_below_the_lab() -> None:
    prompt = "The king is in the garden. The king is in the"
    app = run(prompt=prompt, dry_multiplier="0.8", xtc_probability="0.5", xtc_threshold="0.01", mirostat="2")
    (text,) = parts(app, "generated_text")
    lowered = [token for token in text["tokens"] if token["kind"] == "taken"]
    assert [token["token"] for token in lowered] == ["␣garden"] and lowered[0]["caption"].startswith("−")
    (match,) = matches(lmcore.load("small-world").tokenizer.encode(prompt).ids, 2)
    assert sum(token["kind"] == "drawn" for token in text["tokens"]) == 2 * match.length  # the latest, and before
    branches, following = (frame.value for frame in app.dataframe[:2])
    assert list(branches.columns)[1:] == ["50.00 %: XTC acts", "50.00 %: XTC does nothing", "mixture, drawn from"]
    assert list(following.columns)[-1] == "Mirostat" and "Mirostat 10.0000" in told(app)
