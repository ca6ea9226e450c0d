"""The way's numbers against other ways to the same: the model's tables, the trace, numpy in float64."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import lmcore
from lmcore.analysis.overview.way import follow
from lmcore.generation.logits_store import LogitsStore
from tests.lmcore.analysis.models import CONFIGS, IDS, traced
from tests.lmcore.generation.test_search import Letters


@pytest.mark.parametrize("name", CONFIGS)
def test_the_way_is_the_models_own(name: str) -> None:
    model, trace = traced(name)
    length, position, window = len(IDS), len(IDS) - 2, range(1, len(IDS))
    way = follow(model, IDS, trace, position, window)
    config = model.config
    assert torch.equal(way.embedding, model.token_embedding.weight[IDS[1:]])
    patterns = np.stack([trace[f"blocks.{i}.attn.pattern"].numpy()[:, position] for i in range(config.n_layers)])
    assert np.array_equal(way.attention.numpy(), patterns[..., 1:])
    whole = way.attention.double().sum(-1) + way.attention_before.double()
    assert (whole < 1).all() if config.attention_sinks else np.allclose(whole.numpy(), 1, atol=1e-6)
    assert way.attention[..., position + 1 - window.start :].abs().max() == 0  # nothing of what comes later
    added, bias = model.position.added(0, length), model.position.score_bias(0, length)
    assert (way.added is None) == (added is None) and (way.bias is None) == (bias is None)
    if added is not None:
        assert torch.equal(way.added, added[1:])
    if bias is not None:
        assert torch.equal(way.bias, bias[:, position, 1:])
    assert torch.equal(way.hidden_state, trace["hidden_state"][position])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", CONFIGS)
def test_the_way_of_a_token_alone_after_a_cached_text_is_that_of_a_whole_pass(name: str, dtype: torch.dtype) -> None:
    model, _whole = traced(name, dtype)
    lm = lmcore.LanguageModel(name, model, Letters(model.config.vocab_size))
    n_prompt = 3
    prompt = lmcore.Trace()
    lm(IDS[:n_prompt], trace=prompt)
    store = LogitsStore(lm)
    store.begin(IDS[:n_prompt], prompt.float)
    atol = 1e-5 if dtype == torch.float32 else 0.05
    for position in (3, 4, 6, 2, 5):  # on, over one, back into the prompt, and on again
        whole = lmcore.Trace()
        logits = lm(IDS[: position + 1], trace=whole)[-1]
        row, trace = store.traced(IDS[: position + 1])
        assert torch.allclose(row, logits, atol=10 * atol) and row.argmax() == logits.argmax()
        window = range(1, min(position + 2, len(IDS)))  # and one that it does not see
        expected = follow(model, IDS, whole.float(), position, window)
        found = follow(model, IDS, trace, position, window)
        assert torch.equal(found.lens_ids, expected.lens_ids)
        for field in dataclasses.fields(found):
            value, other = getattr(found, field.name), getattr(expected, field.name)
            assert (value is None) == (other is None), field.name
            if isinstance(value, torch.Tensor):
                assert torch.allclose(value.double(), other.double(), atol=atol), field.name


@pytest.mark.parametrize("name", CONFIGS)
def test_the_rotation_turns_pairs_as_the_trace_does(name: str) -> None:
    model, trace = traced(name)
    way = follow(model, IDS, trace, len(IDS) - 1, range(len(IDS)))
    if model.config.position_encoding != "rope":
        assert way.rotation is None and way.rotation_local is None
        return
    before = "q_normed" if model.config.qk_norm else "q"
    for block in set(range(model.config.n_layers)) - set(model.config.unrotated_layers):
        is_local = block in model.config.local_layers and way.rotation_local is not None
        cos, sin = (way.rotation_local if is_local else way.rotation).double().unbind(-1)
        q, turned = (trace[f"blocks.{block}.attn.{each}"].double() for each in (before, "q_rotated"))
        rotated = model.config.n_rotated
        assert torch.equal(q[..., rotated:], turned[..., rotated:])
        q, turned = q[..., :rotated], turned[..., :rotated]
        if model.config.rope_layout == "half_split":
            first, second = q.chunk(2, -1)
            expected = torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
        else:
            first, second = q[..., 0::2], q[..., 1::2]
            expected = torch.stack([first * cos - second * sin, second * cos + first * sin], -1).flatten(-2)
        assert torch.allclose(turned, expected, atol=1e-6)


@pytest.mark.parametrize("name", lmcore.builtin.names())
def test_the_lens_by_hand_in_float64(name: str) -> None:
    lm = lmcore.load(name)
    ids = lm.tokenizer.encode("The weather today is").ids
    trace = lmcore.Trace()
    logits = lm(ids, trace=trace)
    position = 2
    way = follow(lm.model, ids, trace, position, range(len(ids)))
    config, norm = lm.config, lm.model.final_norm
    head = lm.model.head.weight.detach().double().numpy()
    states = [trace["blocks.0.resid_pre"], *(trace[f"blocks.{i}.resid_post"] for i in range(config.n_layers))]
    assert len(way.lens_ids) == config.n_layers + 1
    for state, token, prob in zip(states, way.lens_ids.tolist(), way.lens_probs.tolist(), strict=True):
        x = state[position].double().numpy()
        assert config.norm == "rmsnorm" and not config.norm_unit_offset
        x = x / np.sqrt((x**2).mean() + config.norm_eps) * norm.weight.detach().double().numpy()
        z = head @ x
        p = np.exp(z - z.max())
        p /= p.sum()
        assert p[token] == pytest.approx(p.max(), rel=1e-4)
        assert prob == pytest.approx(p[token], rel=1e-3)
    assert way.lens_probs[-1].item() == pytest.approx(logits[position].double().softmax(-1).max().item(), rel=1e-5)


@pytest.mark.parametrize("window", [range(0, 3), range(4, 6), range(0, 9), range(0, 6, 2)])
def test_a_window_without_the_position_or_beyond_the_text_is_refused(window: range) -> None:
    model, trace = traced("alibi")
    with pytest.raises(ValueError, match="must lie within 0 to 6 and hold position 3"):
        follow(model, IDS, trace, 3, window)


def test_a_pass_that_did_not_reach_the_position_is_refused() -> None:
    model, trace = traced("alibi")
    with pytest.raises(ValueError, match="reached positions 0 to 6, and not 7"):
        follow(model, [*IDS, 1], trace, 7, range(8))
