"""What a mixture of experts did, against plain recomputations."""

from __future__ import annotations

import pytest
import torch

from lmcore.analysis import edits_of, expert_loads, experts_at, given_to_experts, routing
from lmcore.trace import Trace
from tests.lmcore.analysis.models import IDS, traced

NAME = "experts, sinks, a limit"


def test_the_routing_is_the_routers_two_largest_logits_after_a_softmax():
    model, trace = traced(NAME)
    weights = routing(trace, model.config, 1)
    assert weights.shape == (5, len(IDS))
    for position, logits in enumerate(trace["blocks.1.mlp.router_logits"].double()):
        first, second = logits.sort(descending=True).indices[:2].tolist()
        both = logits[[first, second]].exp()
        assert set(weights[:, position].nonzero().flatten().tolist()) == {first, second}
        torch.testing.assert_close(weights[[first, second], position].double(), both / both.sum(), rtol=0, atol=1e-6)


def test_loads_count_every_choice():
    model, trace = traced(NAME)
    loads = expert_loads(trace, model.config)
    counts = [[(trace[f"blocks.{i}.mlp.chosen"] == e).sum().item() for e in range(5)] for i in range(3)]
    torch.testing.assert_close(loads, torch.tensor(counts).double() / (2 * len(IDS)))


def test_every_token_is_counted_with_the_experts_it_goes_to():
    model, trace = traced(NAME)
    texts = torch.tensor([IDS, IDS[::-1]])
    counts = given_to_experts(model, texts)
    assert counts.sum((1, 2)).tolist() == [2 * texts.numel()] * 3
    backwards = Trace()
    model(texts[1:], trace=backwards)
    for token in set(IDS):
        chosen = [
            expert
            for passed, ids in ((trace["blocks.1.mlp.chosen"], IDS), (backwards["blocks.1.mlp.chosen"][0], IDS[::-1]))
            for experts, each in zip(passed.tolist(), ids, strict=True)
            if each == token
            for expert in experts
        ]
        assert counts[1, :, token].tolist() == [chosen.count(expert) for expert in range(5)]


def test_a_model_without_experts_is_refused_in_words():
    with pytest.raises(ValueError, match="has no experts"):
        given_to_experts(traced("alibi")[0], torch.tensor([IDS]))


def test_what_the_chosen_experts_add_is_what_the_mlp_adds():
    """The directions of all experts together are the last block's MLP, read by the head."""
    model, trace = traced(NAME)
    found = experts_at(model, trace, 2, 4)
    assert [each.expert for each in found] == trace["blocks.2.mlp.chosen"][4].tolist()
    scale, gain = trace["final_norm.scale"][4].double(), model.final_norm.gain.double()
    expected = (trace["blocks.2.mlp.out"][4].double() / scale * gain) @ model.head.weight.double().T
    torch.testing.assert_close(sum(each.contributions for each in found), expected, rtol=1e-5, atol=1e-5)


def test_an_expert_that_is_off_is_chosen_by_no_token():
    model, trace = traced(NAME)
    expert = int(trace["blocks.0.mlp.chosen"][0, 0])
    edited = Trace()
    model(torch.tensor(IDS), edited, edits=edits_of([f"blocks.0.mlp.expert.{expert}"], model.config, len(IDS)))
    assert not (edited["blocks.0.mlp.chosen"] == expert).any()
    assert not torch.equal(edited["logits"], trace["logits"])


@pytest.mark.parametrize(
    ("interventions", "words"),
    [
        (["blocks.0.mlp.expert.5"], "expert 5 does not exist; they run from 0 to 4"),
        ([f"blocks.0.mlp.expert.{e}" for e in range(4)], "block 0 needs 2 experts; 1 would be left"),
    ],
)
def test_what_cannot_be_switched_off_is_said(interventions, words):
    model, _trace = traced(NAME)
    with pytest.raises(ValueError, match=words):
        edits_of(interventions, model.config, len(IDS))
