"""Circles are found where they begin, and in the text of a real model."""

import math

import pytest
import torch

import lmcore
from lmcore.generation.repetition import Loop, find_loop, repeated_tail, watch_circling


def test_repeated_tail_takes_the_shortest_period() -> None:
    assert repeated_tail([1, 1, 1, 1, 1, 1]) == 1
    assert repeated_tail([9, 1, 2, 3, 1, 2, 3, 1, 2, 3]) == 3
    assert repeated_tail([1, 2, 1, 2]) == 0 and repeated_tail([1, 2, 1, 2], times=2) == 2
    assert repeated_tail([]) == 0


@pytest.mark.parametrize(
    ("ids", "loop"),
    [
        ([9, 8, 1, 2, 1, 2, 1, 2], Loop(2, 2, 3)),
        ([9, 2, 1, 2, 1, 2, 1, 2], Loop(1, 2, 3)),  # it begins in the middle of a round
        ([5, 5, 5], Loop(0, 1, 3)),
        ([1, 2, 3], None),
        ([], None),
    ],
)
def test_a_circle_is_followed_back_to_its_beginning(ids: list[int], loop: Loop | None) -> None:
    assert find_loop(ids) == loop


def test_greedy_text_of_the_small_world_goes_round() -> None:
    lm = lmcore.load("small-world")
    greedy = lmcore.SamplingSettings(temperature=0)
    ids = [step.token_id for step in lmcore.generate(lm, lm.tokenizer.encode("I like").ids, greedy, max_new_tokens=80)]
    loop = find_loop(ids)
    assert loop is not None and loop.rounds >= 3
    body = ids[loop.start :]
    assert all(a == b for a, b in zip(body, body[loop.period :], strict=False))
    assert loop.start == 0 or ids[loop.start - 1] != ids[loop.start - 1 + loop.period]


def test_rounds_are_measured_under_the_model_itself() -> None:
    lm = lmcore.load("small-world")
    prompt = lm.tokenizer.encode("I like").ids
    greedy = lmcore.SamplingSettings(temperature=0)
    *_, last = watch_circling(lmcore.generate(lm, prompt, greedy, max_new_tokens=70))
    rows = torch.log_softmax(lm([*prompt, *last.ids])[len(prompt) - 1 : -1].double(), dim=-1)
    own = [float(row[token]) for row, token in zip(rows, last.ids, strict=True)]
    assert list(last.log_probs) == pytest.approx(own, abs=1e-4)
    start, period = last.loop.start, last.loop.period
    products = [math.exp(sum(own[at : at + period])) for at in range(start, 70 - period + 1, period)]
    assert last.round_probs() == pytest.approx(products, abs=1e-4) and len(products) == last.loop.rounds
    assert last.loop.spans(70)[0] == (start, start + period) and last.loop.spans(70)[-1][1] == 70


def test_a_text_without_a_circle_has_no_rounds() -> None:
    lm = lmcore.load("small-world")
    *_, last = watch_circling(lmcore.generate(lm, [5, 6], lmcore.SamplingSettings(seed=1), max_new_tokens=2))
    assert last.loop is None and last.round_probs() == []
