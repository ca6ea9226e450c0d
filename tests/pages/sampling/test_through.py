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
    for job in app.session_state["generation.jobs"].values():
        job.join(60)
    app.run()
    assert not app.exception
    told = next(table.value for table in app.table if "Best token changes after" in table.value.columns)
    assert len(told) == 4 and all(float(number) >= 0 for number in told["Largest difference of a logit"])
    assert float(told["Largest difference of a logit"].iloc[3]) > float(told["Largest difference of a logit"].iloc[0])
    assert any("ties(lm, ids" in code.value for code in app.code)


def test_several_texts_are_gone_through_under_both_settings() -> None:
    pinned = json.dumps({"temperature": 2.0})
    app = run(prompt=PROMPT, through="1", through_of="texts", temperature="0.7", top_k="2", pinned=pinned)
    app.text_area(key="several.pasted").set_value("The cat is in the garden.\n好\n今天天气很好").run()
    app.button(key="through.start").click().run()
    app.session_state["through.reading"][1].join(60)
    app.run()
    assert not app.exception
    lm = lmcore.load("small-world")
    found = [
        ScoredThrough.of(TextLogits.of(lm(ids), ids), SamplingSettings(temperature=0.7, top_k=2))
        for ids in (lm.tokenizer.encode(text).ids for text in ("The cat is in the garden.", "今天天气很好"))
    ]
    told = next(table.value for table in app.table if "Could be drawn" in table.value.columns)
    possible, positions = (
        sum(numbers) for numbers in zip(*((int(f.possible.sum()), len(f.text)) for f in found), strict=True)
    )
    assert list(told["Could be drawn"]) == [f"{possible} of {positions}", f"{positions} of {positions}"]
    texts = next(frame.value for frame in app.dataframe if "Could be drawn · pinned" in frame.value.columns)
    assert texts["Could be drawn"].tolist() == [int(f.possible.sum()) for f in found]
    assert any("Line 2" in text.value for text in app.text)


def test_one_token_is_not_enough() -> None:
    app = run(prompt="The", through="1")
    assert any("Nothing predicts the first token" in info.value for info in app.info) and not app.exception
