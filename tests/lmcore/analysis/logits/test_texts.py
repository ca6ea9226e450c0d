"""Lists and files of texts: what is read of them, what is wrong by line, and scores as torch computes them."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

import lmcore
from lmcore.analysis.logits.texts import Line, read_file, read_texts, score_texts


def test_lines_keep_their_numbers_and_blank_ones_are_none() -> None:
    data = "\ufeff今天天气\r\n\n  \nThe king \n".encode()
    assert read_texts(data) == [Line(1, "今天天气"), Line(4, "The king")]
    assert read_texts(b"") == []


def test_a_line_that_is_not_utf8_is_named() -> None:
    assert read_texts(b"good\n\xff\xfe bad\nfine") == [
        Line(1, "good"),
        Line(2, "\\xff\\xfe bad", "not UTF-8"),
        Line(3, "fine"),
    ]
    (line,) = read_texts(b"text\ngood\nb\xffd\n", is_csv=True)
    assert (line.number, line.problem) == (3, "not UTF-8")


def test_a_table_gives_its_text_column_or_the_first() -> None:
    assert read_texts(b'id,Text\n1,"a, ""b""\nc"\n2\n3,d\n', is_csv=True) == [Line(3, 'a, "b"\nc'), Line(5, "d")]
    assert read_texts(b"one,1\ntwo,2\n", is_csv=True) == [Line(1, "one"), Line(2, "two")]
    broken = read_texts(b'one\n"two" three\n', is_csv=True)
    assert broken[0] == Line(1, "one") and (broken[1].number, broken[1].problem) == (2, "not CSV")


def test_lines_of_json_give_strings_and_texts() -> None:
    data = '"今天天气\\n很好"\n\n{"id": 3, "text": "The king"}\n{"text": 4}\nnot json\n[1]\n"\\ud800"'.encode()
    assert read_file("texts.JSONL", data) == [
        Line(1, "今天天气\n很好"),
        Line(3, "The king"),
        Line(4, '{"text": 4}', "not JSON"),
        Line(5, "not json", "not JSON"),
        Line(6, "[1]", "not JSON"),
        Line(7, '"\\ud800"', "not UTF-8"),
    ]
    assert read_file("t.csv", b"text\na\n") == [Line(2, "a")] and read_file("t", b"text\na\n")[0] == Line(1, "text")


def test_texts_are_scored_and_those_that_cannot_be_say_why() -> None:
    lm = lmcore.load("small-world")
    lines = [Line(1, "The weather today is nice"), Line(2, "好"), Line(5, "a" * 5000), Line(6, "好" * 3999)]
    whole, one, long, many = score_texts(lm, lines)
    ids = lm.tokenizer.encode("The weather today is nice").ids
    reference = F.cross_entropy(lm(ids)[:-1].double(), torch.tensor(ids[1:]))
    assert whole.scores is not None and whole.n_tokens == len(ids)
    assert whole.scores.loss == pytest.approx(reference.item())
    assert whole.scores.perplexity == pytest.approx(math.exp(reference.item()))
    assert (one.problem, long.problem, many.problem) == ("one token", "too long", "too long")
    assert one.scores is long.scores is many.scores is None
