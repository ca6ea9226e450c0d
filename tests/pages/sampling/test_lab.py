"""What the lab is given and what is taken of what it tells."""

import re
from pathlib import Path

import numpy as np
import pytest

import lmcore
from lmcore.sampling import OFF, STAGES
from pages.live import sampling_lab
from pages.live.sampling_lab.labels import stage_helps, stage_titles
from pages.stages.sampling import knobs
from tests.pages.harness import opener, parts

run = opener("sampling")

FOLDER = Path(sampling_lab.__file__).parent


def test_the_lab_gets_the_logits_as_bytes_and_the_rest_apart() -> None:
    app = run(prompt="今天天气", position="0", temperature="0.5")
    data, settings, rest = parts(app, "sampling")
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
    told = {**{name: knobs.off(name) for name in knobs.NUMBERS}, "logit_bias": {"5": 1.5}, "order": list(STAGES)}
    told |= {"engine": "lmcore", "penalty_last_n": 3, "against": "vllm"}
    knobs.take({**told, "temperature": 0.8, "top_k": 7, "bars": 900, "log": True, "token": 12})
    assert (state["temperature"], state["top_k"], state["logit_bias"], state["order"]) == (0.8, 7, "5:1.5", None)
    assert (state["bars"], state["log_bars"], state["token"]) == (200, True, 12)


def test_the_scripts_know_the_stages_of_lmcore() -> None:
    source = (FOLDER / "reshape.js").read_text(encoding="utf-8")
    body = re.search(r"export const OFF = {(.*?)};", source, re.DOTALL).group(1)
    off = dict(re.findall(r"(\w+): ([^,\n]+),", body))
    assert tuple(off) == STAGES == tuple(stage_titles()) == tuple(stage_helps())
    for name in knobs.NUMBERS:
        assert float(off[name]) == knobs.off(name) == (OFF[name] or 0)
