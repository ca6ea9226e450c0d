"""Log-probabilities of minus infinity, as numbers or as servers write them: tokens that cannot be drawn, no error."""

import json
import math

import pytest
import torch

from lmcore.engines.drawing import drawn_tokens
from lmcore.engines.top_tokens import choice_of, log_probs_of, top_tokens


@pytest.mark.parametrize("written", ["-Infinity", "-9999.0", "-9999", "-1e30"])
def test_an_impossible_token_is_left_out_and_closes_the_distribution(written):
    top = f'{{" a": -0.1, " b": -2.3521684610440903, " c": {written}}}'
    told = f'{{"tokens": [" a"], "token_logprobs": [-0.1], "top_logprobs": [{top}]}}'
    answer = f'{{"choices": [{{"text": " a", "logprobs": {told}}}]}}'
    choice = choice_of(json.loads(answer), "e")
    (place,) = log_probs_of(choice, "e")["top_logprobs"]
    found = top_tokens(place, 3)
    assert (found.texts, found.impossible, found.merged) == ((" a", " b"), 1, 0)
    known = found.partial(50_000)
    assert known.tail_size == 0 and known.tail_mass == 0
    (token,) = drawn_tokens(choice, 3, "e")
    assert token.rank == 1 and len(token.among) == 2


def test_by_id_what_cannot_be_drawn_is_minus_infinity():
    found = top_tokens({"token_id:1": -0.5, "token_id:4": -math.inf, "token_id:0": -1.0}, 3)
    assert found.by_id(5).tolist() == pytest.approx([-1.0, -0.5, *[-math.inf] * 3])
    assert torch.isfinite(found.partial(5).log_probs).all()
