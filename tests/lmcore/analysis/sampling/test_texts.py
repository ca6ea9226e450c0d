"""Many texts under several settings, and the command that writes their table."""

import csv
import json

import numpy as np
import pytest

import lmcore
from lmcore import SamplingSettings
from lmcore.analysis.logits.texts import Line
from lmcore.analysis.sampling.command import as_arguments, main
from lmcore.analysis.sampling.texts import Summary, rows, through_texts
from lmcore.analysis.sampling.through import ScoredThrough, TextLogits
from lmcore.corpus.truth import Truth
from lmcore.sampling import PRESETS, preset

TEXTS = ["The weather today is nice.", "今天天气很好", "好"]
LINES = [Line(number, text) for number, text in enumerate(TEXTS, start=1)]
SETTINGS = [SamplingSettings(temperature=0.7, top_k=3), SamplingSettings(top_p=0.5)]


@pytest.fixture(scope="module")
def lm():
    return lmcore.load("small-world")


def one(lm, text, settings):
    ids = lm.tokenizer.encode(text).ids
    return ScoredThrough.of(TextLogits.of(lm(ids), ids), settings)


def test_each_text_is_scored_under_each_setting(lm):
    found = list(through_texts(lm, LINES, SETTINGS))
    assert [text.problem for text in found] == ["", "", "one token"]
    for text in found[:2]:
        for settings, table in zip(SETTINGS, text.tables, strict=True):
            assert {n: c.tolist() for n, c in table.items()} == one(lm, text.line.text, settings).columns()


def test_a_row_for_each_position_has_all_settings_beside_one_another(lm):
    found = list(through_texts(lm, LINES, SETTINGS))
    table = list(rows(lm, found, ["", "pinned"]))
    assert len(table) == sum(text.n_tokens - 1 for text in found if text.tables)
    ids = lm.tokenizer.encode(TEXTS[0]).ids
    assert b"".join(lm.tokenizer.token_bytes(i) for i in ids[1:]).decode() == "".join(
        row["token"] for row in table if row["line"] == 1
    )
    pinned = one(lm, TEXTS[0], SETTINGS[1])
    assert [row["candidates (pinned)"] for row in table if row["line"] == 1] == pinned.candidates.tolist()


def test_the_summary_is_over_all_positions(lm):
    truth = Truth(lm.tokenizer)
    found = [text for text in through_texts(lm, LINES, SETTINGS, truth) if text.tables]
    told = Summary.of([text.tables[1] for text in found])
    columns = [text.tables[1] for text in found]
    candidates = sorted(n for table in columns for n in table["candidates"])
    assert told.positions == len(candidates) and told.candidates == candidates[(len(candidates) - 1) // 2]
    assert told.possible == sum(sum(table["possible"]) for table in columns)
    after = [b for table in columns for b, could in zip(table["bits_after"], table["possible"], strict=True) if could]
    assert told.bits_after == pytest.approx(np.mean(after))
    assert 0 < told.truth_before < told.truth_after  # a nucleus of one half is far from the grammar


def test_the_command_writes_the_table_and_prints_a_summary(lm, tmp_path, capsys):
    texts, out = tmp_path / "texts.jsonl", tmp_path / "table.csv"
    texts.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS), encoding="utf-8")
    arguments = ["small-world", "--text", str(texts), "--top-k", "3", "--temperature", "0.7", "--out", str(out)]
    main([*arguments, "--compare", "engine=vllm top_p=0.5 logit_bias=3:-inf"])
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert "line 3 was left out" in printed.err and len(told) == 2
    found = [one(lm, text, SETTINGS[0]) for text in TEXTS[:2]]
    assert told[0]["possible"] == sum(int(each.possible.sum()) for each in found)
    with out.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [int(row["candidates"]) for row in table] == [n for each in found for n in each.candidates.tolist()]
    beside = one(lm, TEXTS[0], preset("vllm", top_p=0.5, logit_bias={3: float("-inf")}))
    column = next(name for name in table[0] if name.startswith("candidates (engine=vllm"))
    assert [int(row[column]) for row in table if row["line"] == "1"] == beside.candidates.tolist()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--top-p", "2"], "top_p is 2.0; it must be a number, from 0 to 1"),
        (["--top-k", "many"], "top_k is 'many'; it must be"),
        (["--compare", "topp=1"], "'topp' is not a sampling setting"),
        (["--compare", "engine=gpt"], "engine is 'gpt'"),
        (["--engine", "transformers", "--temperature", "0"], "temperature is 0"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(given, said, tmp_path, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text(TEXTS[0], encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["small-world", "--text", str(texts), *given])
    assert said in capsys.readouterr().err


def test_settings_are_written_as_options_that_give_them_again(tmp_path, capsys):
    texts = tmp_path / "texts.txt"
    texts.write_text(TEXTS[0], encoding="utf-8")
    bias = {3: float("-inf"), 7: -1.5}
    for settings in (
        *(preset(name, temperature=0.7, top_p=0.8, top_k=None) for name in PRESETS),
        SamplingSettings(logit_bias=bias, dry_multiplier=0.8, dry_sequence_breakers=(1, 5), temperature=0.1 + 0.2),
    ):
        options = as_arguments(settings)
        assert options is not None, settings
        main(["small-world", "--text", str(texts), *options.split()])
        assert json.loads(capsys.readouterr().out)[0]["settings"] == repr(settings)
    assert as_arguments(preset("vllm", order=("top_p", "temperature"), top_p=0.5)) is None
