"""Readings of the two packaged models: contributions that sum, autograd, lens and attention as the model has them."""

from __future__ import annotations

import pytest
import torch

import lmcore
from lmcore.analysis import attention_of_query, attribute, effects_alone, logit_lens, next_probs, residual_stream
from tests.lmcore.test_real_models import need

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["smollm2-135m-instruct", "gemma-3-270m"])
def passed(request: pytest.FixtureRequest) -> tuple[lmcore.LanguageModel, list[int], lmcore.Trace]:
    need(request.param)
    lm, trace = lmcore.load(request.param), lmcore.Trace()
    ids = lm.tokenizer.encode("The capital of France is").ids
    lm(ids, trace=trace)
    return lm, ids, trace


def test_contributions_sum_to_the_logits(passed) -> None:
    lm, ids, trace = passed
    tokens = [*trace["logits"][-1].topk(3).indices.tolist(), 7, lm.config.vocab_size - 1]
    for position in (0, len(ids) - 1):
        found = attribute(lm.model, trace, position, tokens)
        assert found.remainder.abs().max() < 1e-4, position
        torch.testing.assert_close(found.logits.float(), trace["logits"][position, tokens])


def test_contributions_are_what_autograd_says(passed) -> None:
    lm, ids, trace = passed
    position, token = len(ids) - 1, int(trace["logits"][-1].argmax())
    found = attribute(lm.model, trace, position, [token])
    by_name = dict(zip(found.components, found.contributions[:, 0].tolist(), strict=True))
    last = f"blocks.{lm.config.n_layers - 1}.resid_post"
    resid = trace[last][position].double().requires_grad_()
    normed = resid / trace["final_norm.scale"][position].double() * lm.model.final_norm.gain.detach().double()
    (gradient,) = torch.autograd.grad(normed @ lm.model.head.weight[token].detach().double(), resid)
    after = "_post_norm" if lm.config.sandwich_norm else ""
    for block in range(0, lm.config.n_layers, 7):
        heads = sum(by_name[f"blocks.{block}.attn.head.{head}"] for head in range(lm.config.n_heads))
        attn = gradient @ trace[f"blocks.{block}.attn{after}.out"][position].double()
        mlp = gradient @ trace[f"blocks.{block}.mlp{after}.out"][position].double()
        assert heads == pytest.approx(attn.item(), abs=1e-4)
        assert by_name[f"blocks.{block}.mlp"] == pytest.approx(mlp.item(), abs=1e-4)


def test_attention_stream_and_lens_are_the_models(passed) -> None:
    lm, ids, trace = passed
    position, block = len(ids) - 1, lm.config.n_layers // 2
    for head in range(lm.config.n_heads):
        step = attention_of_query(trace, lm.config, block, head, position)
        torch.testing.assert_close(
            step.weights.float(), trace[f"blocks.{block}.attn.pattern"][head, position], atol=1e-5, rtol=1e-4
        )
    stream = residual_stream(trace)
    sizes = [trace[state][position].norm() for state in stream.states[1:]]
    for before, added, after in zip(stream.states, stream.additions, stream.states[1:], strict=False):
        difference = (trace[before] + trace[added] - trace[after])[position].abs().max()
        assert difference <= 1e-4 * max(sizes), added
    *_, last = logit_lens(lm.model, trace, 5, slice(position, position + 1))
    probs = trace["logits"][position].double().softmax(-1)
    assert last.top_ids.item() == probs.argmax().item()
    assert last.target_probs.item() == pytest.approx(probs[5].item(), rel=1e-3)


def test_switching_off_in_a_batch_and_alone_agree(passed) -> None:
    lm, ids, _trace = passed
    names = ["blocks.0.mlp", "blocks.3.attn.head.1", "blocks.5.attn"]
    intact = next_probs(lm, ids, len(ids) - 1)
    for name, distance in effects_alone(lm, ids, len(ids) - 1, names):
        alone = next_probs(lm, ids, len(ids) - 1, [name])
        assert distance == pytest.approx(0.5 * (alone - intact).abs().sum().item(), abs=1e-4)
        assert distance > 1e-4
