"""One query worked out: against the model's own trace, and against numpy float64 loops."""

import math

import numpy as np
import pytest
import torch

from lmcore.analysis import attention_of_query
from tests.lmcore.analysis.models import CONFIGS, IDS, traced


@pytest.mark.parametrize("name", CONFIGS)
def test_every_step_is_the_models(name: str) -> None:
    model, trace = traced(name)
    window = model.config.sliding_window or len(IDS)  # block 2 is a local one
    for head, position in [(0, 0), (1, 3), (3, 6)]:
        step = attention_of_query(trace, model.config, 2, head, position)
        close = lambda mine, theirs: torch.testing.assert_close(mine.float(), theirs, atol=1e-4, rtol=1e-4)  # noqa: E731
        close(step.scores, trace["blocks.2.attn.scores"][head, position])
        close(step.weights, trace["blocks.2.attn.pattern"][head, position])
        close(step.z, trace["blocks.2.attn.z"][head, position])
        assert step.visible.tolist() == [position - window < key <= position for key in range(len(IDS))]
        assert (step.weights[~step.visible] == 0).all()


def test_grouped_heads_read_the_head_they_share_and_numpy_agrees() -> None:
    model, trace = traced("rope, grouped heads")
    step = attention_of_query(trace, model.config, 1, 3, 4)
    assert [attention_of_query(trace, model.config, 1, head, 4).kv_head for head in range(4)] == [0, 0, 1, 1]
    q = trace["blocks.1.attn.q_rotated"].double().numpy()[3, 4]
    k = trace["blocks.1.attn.k_rotated"].double().numpy()[1]
    v = trace["blocks.1.attn.v"].double().numpy()[1]
    scores = [float(np.dot(q, k[key])) / math.sqrt(4) for key in range(5)]
    weights = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(step.weights[:5], weights, rtol=1e-12)
    np.testing.assert_allclose(step.z, sum(w * v[key] for key, w in enumerate(weights)), rtol=1e-12)
    np.testing.assert_allclose(step.weighted_values[2], weights[2] * v[2], rtol=1e-12)


def test_the_bias_of_the_position_encoding_is_named_apart() -> None:
    model, trace = traced("alibi")
    step = attention_of_query(trace, model.config, 0, 1, 5)
    # 4 heads: slopes 1/4, 1/16, ...; head 1 at distance 3 loses 3/16
    assert step.bias is not None and step.bias[2].item() == pytest.approx(-3 / 16)
    torch.testing.assert_close(step.scores, step.scaled + step.bias)
    model, trace = traced("rope, grouped heads")
    assert attention_of_query(trace, model.config, 0, 1, 5).bias is None


def test_a_scale_and_a_soft_cap_of_the_models_own() -> None:
    model, trace = traced("gemma-like")
    step = attention_of_query(trace, model.config, 1, 2, 6)
    assert step.scale == 0.4
    np.testing.assert_allclose(step.scaled, 5 * np.tanh(step.products.numpy() * 0.4 / 5), rtol=1e-12)
