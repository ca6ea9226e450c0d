"""Residual stream, MLP units, logit lens, read-out, scores and summaries, each against a plain recomputation."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from lmcore.analysis import (
    Normaliser,
    by_dimension,
    cosines_between_states,
    logit_lens,
    most_active_units,
    norm_scales,
    ranks,
    read_out,
    residual_stream,
    score,
    summarise,
    token_probs,
    top_tokens,
)
from lmcore.distribution import rank
from tests.lmcore.analysis.models import CONFIGS, IDS, traced


def numpy_norm(model, x: np.ndarray) -> np.ndarray:
    norm = model.final_norm
    if model.config.norm == "layernorm":
        x = x - x.mean(-1, keepdims=True)
    gain = norm.weight.detach().double().numpy() + (1 if model.config.norm_unit_offset else 0)
    out = x / np.sqrt((x**2).mean(-1, keepdims=True) + model.config.norm_eps) * gain
    return out + norm.bias.detach().double().numpy() if getattr(norm, "bias", None) is not None else out


@pytest.mark.parametrize("name", CONFIGS)
def test_residual_stream_against_numpy(name: str) -> None:
    model, trace = traced(name)
    stream = residual_stream(trace)
    assert stream.states[:3] == ("blocks.0.resid_pre", "blocks.0.resid_mid", "blocks.0.resid_post")
    attn, mlp = model.config.attn_added, model.config.mlp_added
    assert stream.additions[:3] == (f"blocks.0.{attn}", f"blocks.0.{mlp}", f"blocks.1.{attn}")
    assert stream.norms.shape == (7, len(IDS)) and stream.added_norms.shape == stream.cosines.shape == (6, len(IDS))
    states = [trace[state].double().numpy() for state in stream.states]
    for index, (before, after) in enumerate(zip(states, states[1:], strict=False)):
        np.testing.assert_allclose(stream.norms[index + 1], np.sqrt((after**2).sum(1)), rtol=1e-12)
        np.testing.assert_allclose(stream.added_norms[index], np.linalg.norm(after - before, axis=1), rtol=1e-4)
        cosine = (before * after).sum(1) / np.linalg.norm(before, axis=1) / np.linalg.norm(after, axis=1)
        np.testing.assert_allclose(stream.cosines[index], cosine, rtol=1e-12)


def test_the_stream_of_a_half_precision_model_is_measured_as_recorded() -> None:
    _model, trace = traced("gemma-like", torch.bfloat16)
    assert torch.equal(residual_stream(trace).norms, residual_stream(trace.float()).norms)


@pytest.mark.parametrize("name", CONFIGS)
def test_norm_scales_against_numpy(name: str) -> None:
    model, trace = traced(name)
    names, scales = norm_scales(trace)
    before_mlp = "pre" if model.config.parallel_residual else "mid"
    inputs = [f"blocks.{i}.resid_{part}" for i in range(3) for part in ("pre", before_mlp)]
    expected = [f"blocks.{i}.{norm}.scale" for i in range(3) for norm in ("attn_norm", "mlp_norm")]
    if not model.config.pre_norm:
        inputs, expected = [], []
    inputs.append("blocks.2.resid_post")
    assert names == (*expected, "final_norm.scale")
    for row, state in zip(scales, inputs, strict=True):
        x = trace[state].double().numpy()
        spread = x.var(1) if model.config.norm == "layernorm" else (x**2).mean(1)
        np.testing.assert_allclose(row, np.sqrt(spread + model.config.norm_eps), rtol=1e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_active_units_are_the_largest_and_multiply_out(name: str) -> None:
    model, trace = traced(name)
    found = most_active_units(trace, model.config, 1, 3, n=5)
    place = 3 if model.config.n_experts is None else (3, 0)
    post = trace["blocks.1.mlp.post"][place].numpy()
    order = np.argsort(-np.abs(post), kind="stable")[:5]
    assert found.units.tolist() == order.tolist()
    np.testing.assert_allclose(found.post, post[order], rtol=1e-6)
    assert found.share == pytest.approx((post[order] ** 2).sum() / (post**2).sum())
    if model.config.gated_mlp:
        assert found.gate is not None
        limit, offset = model.config.mlp_limit, model.config.mlp_up_offset
        pre = found.pre if limit is None else found.pre.clamp(-limit, limit)
        torch.testing.assert_close(found.activated * (pre + offset), found.post, atol=1e-5, rtol=1e-5)
        if model.config.activation == "silu":
            gate = found.gate.numpy()
            np.testing.assert_allclose(found.activated, gate / (1 + np.exp(-gate)), rtol=1e-12)
    else:
        assert found.gate is None
        torch.testing.assert_close(found.activated, found.post, atol=1e-5, rtol=1e-5)
    assert most_active_units(trace, model.config, 1, 3, n=999).share == pytest.approx(1)


@pytest.mark.parametrize("name", CONFIGS)
def test_lens_against_numpy_and_the_last_layer_is_the_model(name: str) -> None:
    model, trace = traced(name)
    layers = list(logit_lens(model, trace, target_id=5))
    assert [layer.state for layer in layers] == list(residual_stream(trace).states)
    weight = model.head.weight.detach().double().numpy()
    bias = 0 if model.head.bias is None else model.head.bias.detach().double().numpy()
    for layer in layers:
        logits = numpy_norm(model, trace[layer.state].double().numpy()) @ weight.T + bias
        logits = logits * model.config.logit_scale
        cap = model.config.logit_softcap
        logits = logits if cap is None else cap * np.tanh(logits / cap)
        probs = np.exp(logits - logits.max(1, keepdims=True))
        probs /= probs.sum(1, keepdims=True)
        assert layer.top_ids.tolist() == probs.argmax(1).tolist()
        np.testing.assert_allclose(layer.top_probs, probs.max(1), rtol=1e-3)
        np.testing.assert_allclose(layer.target_probs, probs[:, 5], rtol=1e-3)
        assert layer.target_ranks.tolist() == [1 + sum(p > row[5] for p in row) for row in probs]
    torch.testing.assert_close(layers[-1].target_probs.float(), trace["logits"].softmax(-1)[:, 5])
    with pytest.raises(ValueError, match="target_id is 23"):
        next(iter(logit_lens(model, trace, 23)))


@pytest.mark.parametrize("name", CONFIGS)
def test_lens_of_a_half_precision_model_ends_in_what_that_model_says(name: str) -> None:
    model, trace = traced(name, torch.bfloat16)
    probs = trace["logits"].double().softmax(-1)
    for shown in (trace, trace.float()):  # as recorded, and as pages keep it
        *_, last = logit_lens(model, shown, target_id=5)
        torch.testing.assert_close(last.target_probs, probs[:, 5], rtol=1e-12, atol=0)
        torch.testing.assert_close(last.top_probs, probs.max(-1).values, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", CONFIGS)
def test_read_out_splits_the_models_logits(name: str) -> None:
    model, trace = traced(name)
    h = trace["hidden_state"][4]
    out = read_out(h, model.head.weight, model.head.bias)
    scale, cap = model.config.logit_scale, model.config.logit_softcap
    logits = out.logits * scale if cap is None else cap * (out.logits * scale / cap).tanh()
    torch.testing.assert_close(logits.float(), trace["logits"][4], atol=1e-4, rtol=1e-4)
    products = out.length * out.row_lengths * out.cosines
    torch.testing.assert_close(products, out.products)
    assert (out.bias is None) == (not model.config.head_bias)
    parts = by_dimension(h, model.head.weight[5])
    assert parts.shape == (16,) and parts.sum().item() == pytest.approx(out.products[5].item())


def test_score_against_torch_cross_entropy() -> None:
    _model, trace = traced("alibi")
    found = score(trace["logits"], IDS)
    reference = F.cross_entropy(trace["logits"][:-1].double(), torch.tensor(IDS[1:]), reduction="none")
    torch.testing.assert_close(found.nats, reference)
    assert found.loss == pytest.approx(reference.mean().item())
    assert found.perplexity == pytest.approx(math.exp(reference.mean().item()))
    np.testing.assert_allclose(found.bits, -np.log2(found.probs.numpy()))
    assert found.ranks.tolist() == [rank(row, token) for row, token in zip(trace["logits"], IDS[1:], strict=False)]
    assert found.token_ids.tolist() == IDS[1:]


def test_ranks_of_equal_logits_put_the_lower_id_first() -> None:
    assert ranks(torch.tensor([[1.0, 2.0, 2.0, 2.0]] * 4), torch.tensor([0, 1, 2, 3])).tolist() == [4, 1, 2, 3]


def test_a_text_of_one_token_has_no_score() -> None:
    with pytest.raises(ValueError, match="at least 2 tokens"):
        score(torch.zeros(1, 4), [0])
    with pytest.raises(ValueError, match=r"\[3, 4\] for 2 ids"):
        score(torch.zeros(3, 4), [0, 1])


def test_summaries_name_every_tensor_and_leave_infinities_out() -> None:
    _model, trace = traced("rope, grouped heads")
    rows = {row.name: row for row in summarise(trace)}
    assert list(rows) == list(trace)
    masked = rows["blocks.0.attn.masked_scores"]
    n = len(IDS)
    assert masked.not_finite == 4 * n * (n - 1) // 2
    visible = trace["blocks.0.attn.scores"].numpy()[:, np.tril(np.ones((n, n), bool))]
    assert (masked.minimum, masked.maximum) == (visible.min(), visible.max())
    assert masked.mean == pytest.approx(visible.mean(dtype=np.float64))
    assert [row.name for row in summarise(trace, ["logits", "blocks.0.attn.k"])] == ["logits", "blocks.0.attn.k"]
    k = rows["blocks.0.attn.k"]
    assert (k.axes, k.shape, k.dtype) == (("kv_head", "position", "d_head"), (2, n, 4), "float32")


def test_cosines_between_states_against_numpy() -> None:
    _model, trace = traced("gemma-like")
    states = np.stack([trace[name][3].double().numpy() for name in residual_stream(trace).states])
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    np.testing.assert_allclose(cosines_between_states(trace, 3), unit @ unit.T, rtol=1e-12)


def test_the_lens_reads_some_positions_as_it_reads_all() -> None:
    model, trace = traced("gemma-like")
    for whole, part in zip(logit_lens(model, trace, 5), logit_lens(model, trace, 5, slice(2, 4)), strict=True):
        assert part.top_ids.tolist() == whole.top_ids[2:4].tolist()
        torch.testing.assert_close(part.target_probs, whole.target_probs[2:4], rtol=1e-5, atol=0)
    states = [layer.state for layer in logit_lens(model, trace, 5, within_blocks=False)]
    assert states == ["blocks.0.resid_pre", *(f"blocks.{block}.resid_post" for block in range(3))]


def test_top_tokens_and_one_tokens_probability_are_softmaxs() -> None:
    logits = torch.randn(70, 50, generator=torch.Generator().manual_seed(0)).round(decimals=1)  # some are equal
    probs = logits.double().softmax(-1).numpy()
    found = top_tokens(logits, 4)
    assert found.ids.tolist() == np.argsort(-probs, axis=1, kind="stable")[:, :4].tolist()
    np.testing.assert_allclose(found.probs, np.take_along_axis(probs, found.ids.numpy(), 1), rtol=1e-12)
    np.testing.assert_allclose(token_probs(logits, 7), probs[:, 7], rtol=1e-12)
    assert top_tokens(logits, 99).ids.shape == (70, 50)


def test_normalised_logits_are_log_softmax_however_large_they_are() -> None:
    logits = torch.randn(5, 40, generator=torch.Generator().manual_seed(1)) * 30
    logits[0] += 1e4
    logits[1, 3] = -torch.inf
    expected = logits.double().log_softmax(-1)
    assert torch.equal(Normaliser.of(logits).log_probs(logits).isneginf(), expected.isneginf())
    torch.testing.assert_close(Normaliser.of(logits).log_probs(logits), expected, rtol=1e-12, atol=1e-13)
    sure = torch.tensor([[1e4, 0.0]])
    assert Normaliser.of(sure).log_probs(sure).tolist() == [[0.0, -1e4]]  # never above 0, however large the logit


@pytest.mark.parametrize("wrong, said", [(torch.nan, "NaN at index"), (torch.inf, r"\+inf at index")])
def test_logits_that_give_no_distribution_are_refused_by_name(wrong: float, said: str) -> None:
    logits = torch.zeros(3, 4)
    logits[1, 2] = wrong
    with pytest.raises(ValueError, match=said):
        score(logits, [0, 1, 2])
    with pytest.raises(ValueError, match="-inf for every token"):
        token_probs(torch.full((2, 3), -torch.inf), 0)
