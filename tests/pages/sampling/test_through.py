"""The settings at every position on the sampling page: the lab's and the pinned ones, over the prompt."""

import json

import lmcore
from lmcore import SamplingSettings
from lmcore.analysis.sampling.through import ScoredThrough, TextLogits
from tests.pages.harness import opener

run = opener("sampling")
PROMPT = "The weather today is nice."


def test_both_settings_are_held_against_the_text_and_the_grammar() -> None:
    pinned = json.dumps({"temperature": 2.0})
    app = run(prompt=PROMPT, through="1", temperature="0.7", top_k="2", pinned=pinned)
    assert not app.exception
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode(PROMPT).ids
    text = TextLogits.of(lm(ids), ids)
    found = ScoredThrough.of(text, SamplingSettings(temperature=0.7, top_k=2))
    told = next(table.value for table in app.table if "Could be drawn" in table.value.columns)
    assert list(told["Could be drawn"]) == [
        f"{int(found.possible.sum())} of {len(text)}",
        f"{len(text)} of {len(text)}",
    ]
    assert "→" in told["Distance to the grammar"].iloc[0]
    assert any("scored-through.csv" in code.value for code in app.code)


def test_other_ways_of_running_the_prompt_are_measured() -> None:
    app = run(prompt=PROMPT, ties="1")
    assert not app.exception
    told = next(table.value for table in app.table if "Best token changes after" in table.value.columns)
    assert len(told) == 4 and all(float(number) >= 0 for number in told["Largest difference of a logit"])
    assert float(told["Largest difference of a logit"].iloc[3]) > float(told["Largest difference of a logit"].iloc[0])
    assert any("run_ways" in code.value for code in app.code)


def test_one_token_is_not_enough() -> None:
    app = run(prompt="The", through="1")
    assert any("Nothing predicts the first token" in info.value for info in app.info) and not app.exception
