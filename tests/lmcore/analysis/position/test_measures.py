"""What the encodings do, against formulas written out with complex numbers and numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lmcore import Model, ModelConfig, Trace
from lmcore.analysis.position.measures import (
    last_position_differences,
    pairs_of,
    rope_scores_by_difference,
    similarity,
    wavelengths,
    without_score_bias,
)
from lmcore.position import make_rotation, rope_frequencies, sinusoidal_table


@pytest.mark.parametrize("d", [2, 7, 64])
def test_after_a_wavelength_a_sinusoid_is_back(d):
    for pair, length in enumerate(wavelengths(d, 50.0).tolist()):
        assert length == pytest.approx(2 * np.pi * 50.0 ** (2 * pair / d))


def test_similarity_of_sinusoids_depends_on_the_distance_only():
    table = sinusoidal_table(40, 16)
    dots = similarity(table).numpy()
    np.testing.assert_allclose(dots, table.numpy() @ table.numpy().T, rtol=1e-5)
    for distance in (0, 1, 7):
        np.testing.assert_allclose(np.diag(dots, distance), dots[0, distance], atol=1e-4)
    np.testing.assert_allclose(similarity(3 * table, cosine=True).numpy(), dots / 8, atol=1e-5)


@pytest.mark.parametrize("layout", ["half_split", "interleaved"])
def test_rope_scores_are_real_parts_of_complex_products(layout):
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 8))
    differences = np.array([-3, 0, 1, 12])
    ours = rope_scores_by_difference(
        torch.tensor(q), torch.tensor(k), torch.tensor(differences), rope_frequencies(8, 100.0), layout
    )
    first, second = (slice(0, 4), slice(4, 8)) if layout == "half_split" else (slice(0, 8, 2), slice(1, 8, 2))
    z, w = q[first] + 1j * q[second], k[first] + 1j * k[second]
    theta = 100.0 ** (-np.arange(4) / 4)
    wanted = (z * np.conj(w) * np.exp(1j * differences[:, None] * theta)).real / np.sqrt(8)
    np.testing.assert_allclose(ours, wanted, atol=1e-6)


@pytest.mark.parametrize("layout", ["half_split", "interleaved"])
def test_rope_scores_are_the_models(layout):
    torch.manual_seed(0)
    config = ModelConfig(
        vocab_size=9, d_model=16, n_layers=1, n_heads=2, context_length=8, rope_layout=layout, init_std=0.4
    )
    trace = Trace()
    Model(config)(torch.tensor([1, 5, 2, 7]), trace=trace)
    q, k = trace["blocks.0.attn.q"][1, 3], trace["blocks.0.attn.k"][1, 1]
    score = rope_scores_by_difference(q, k, torch.tensor([2]), rope_frequencies(8), layout).sum()
    assert score.item() == pytest.approx(trace["blocks.0.attn.scores"][1, 3, 1].item(), abs=1e-5)


@pytest.mark.parametrize("layout", ["half_split", "interleaved"])
def test_pairs_are_those_that_are_rotated_together(layout):
    x = torch.randn(8)
    turned = make_rotation(torch.tensor([5]), rope_frequencies(8), layout)(x)
    before, after = pairs_of(x, layout), pairs_of(turned, layout)[0]
    torch.testing.assert_close(before.norm(dim=-1), after.norm(dim=-1))  # a rotation keeps each pair's length


def model(encoding: str, n_layers: int) -> Model:
    torch.manual_seed(0)
    return Model(
        ModelConfig(
            vocab_size=9,
            d_model=16,
            n_layers=n_layers,
            n_heads=2,
            context_length=8,
            init_std=0.4,
            position_encoding=encoding,
        )
    ).double()


def differences(model: Model, first: list[int], second: list[int]) -> dict[str, float]:
    traces = [Trace(), Trace()]
    for ids, trace in zip((first, second), traces, strict=True):
        model(torch.tensor(ids), trace=trace)
    return last_position_differences(*traces)


def test_without_positions_one_attention_layer_sees_a_set_and_two_see_order():
    found = differences(model("none", 2), [1, 2, 3, 4], [3, 2, 1, 4])
    assert found["blocks.0.resid_pre"] == 0
    assert found["blocks.0.attn.out"] == pytest.approx(0, abs=1e-12)
    assert found["blocks.0.resid_post"] == pytest.approx(0, abs=1e-12)
    assert found["blocks.1.attn.out"] > 1e-3  # token 3 has seen other tokens in one text than in the other
    assert found["hidden_state"] > 1e-4


@pytest.mark.parametrize("encoding", ["learned", "sinusoidal", "relative", "rope", "alibi"])
def test_with_positions_the_first_attention_layer_tells(encoding):
    found = differences(model(encoding, 1), [1, 2, 3, 4], [3, 2, 1, 4])
    assert found["blocks.0.resid_pre"] == 0  # the last token and its position are the same
    assert found["blocks.0.attn.out"] > 1e-4


def test_texts_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="3 and 2 tokens"):
        differences(model("none", 1), [1, 2, 3], [1, 2])


@pytest.mark.parametrize("encoding", ["alibi", "relative"])
def test_taking_the_bias_away_gives_what_q_and_k_alone_say(encoding):
    trace = Trace()
    model(encoding, 2)(torch.tensor([1, 2, 3, 4]), trace=trace)
    scores, pattern = without_score_bias(trace, 1)
    q, k = (trace[f"blocks.1.attn.{name}"].numpy() for name in "qk")
    wanted = np.einsum("hqd,hkd->hqk", q, k) / np.sqrt(8)
    np.testing.assert_allclose(scores, wanted, atol=1e-10)
    shares = np.tril(np.exp(wanted))
    np.testing.assert_allclose(pattern, shares / shares.sum(-1, keepdims=True), atol=1e-10)
    assert np.abs(pattern.numpy() - trace["blocks.1.attn.pattern"].numpy()).max() > 1e-3
