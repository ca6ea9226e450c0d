"""The parts of a logit: they sum to it, and each is what autograd says a component is worth."""

import pytest
import torch

from lmcore.analysis import attribute
from lmcore.norm import LayerNorm
from tests.lmcore.analysis.models import CONFIGS, IDS, traced

TOKENS = [0, 5, 22]


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("position", [0, len(IDS) - 1])
def test_contributions_sum_to_the_models_logits(name: str, position: int) -> None:
    model, trace = traced(name)
    found = attribute(model, trace, position, TOKENS)
    torch.testing.assert_close(found.logits.float(), trace["logits"][position, TOKENS])
    torch.testing.assert_close(found.contributions.sum(0) + found.remainder, found.logits)
    assert found.remainder.abs().max() < 1e-4
    assert len(set(found.components)) == len(found.components)


@pytest.mark.parametrize("name", CONFIGS)
def test_each_component_is_worth_what_autograd_says(name: str) -> None:
    model, trace = traced(name)
    model.double()
    position, token = 4, 5
    found = attribute(model, trace, position, [token])
    by_name = dict(zip(found.components, found.contributions[:, 0], strict=True))

    # The gradient of the logit with respect to the last state, the norm's scale held fixed.
    resid = trace["blocks.2.resid_post"][position].double().requires_grad_()
    centred = resid - resid.mean() if isinstance(model.final_norm, LayerNorm) else resid
    logit = model.head.weight[token] @ (
        centred / trace["final_norm.scale"][position].double() * model.final_norm.weight
    )
    (gradient,) = torch.autograd.grad(logit, resid)

    for block in range(3):
        heads = sum(by_name[f"blocks.{block}.attn.head.{head}"] for head in range(4))
        attn = heads + by_name.get(f"blocks.{block}.attn.out.bias", 0)
        mlp = by_name[f"blocks.{block}.mlp"] + by_name.get(f"blocks.{block}.mlp.down.bias", 0)
        torch.testing.assert_close(
            attn, gradient @ trace[f"blocks.{block}.attn.out"][position].double(), atol=1e-5, rtol=1e-5
        )
        torch.testing.assert_close(
            mlp, gradient @ trace[f"blocks.{block}.mlp.out"][position].double(), atol=1e-5, rtol=1e-5
        )
    embedding = trace["blocks.0.resid_pre"][position].double()
    start = by_name["token_embedding"] + by_name.get("position_embedding", 0)
    torch.testing.assert_close(start, gradient @ embedding, atol=1e-5, rtol=1e-5)


def test_a_head_is_worth_what_goes_when_its_output_is_removed() -> None:
    model, trace = traced("rope, grouped heads")
    out = model.blocks[2].attn.out
    z = trace["blocks.2.attn.z"].clone()
    z[1] = 0  # the second head writes nothing
    with torch.no_grad():
        without = out(z.transpose(0, 1).flatten(1))
        lost = trace["blocks.2.attn.out"][6] - without[6]
        worth = lost / trace["final_norm.scale"][6] * model.final_norm.weight @ model.head.weight[5]
    found = attribute(model, trace, 6, [5])
    assert found.contributions[found.components.index("blocks.2.attn.head.1"), 0].item() == pytest.approx(
        worth.item(), abs=1e-5
    )


def test_biases_are_components_of_their_own() -> None:
    model, trace = traced("gpt2-like, every bias")
    found = attribute(model, trace, 2, [5])
    biases = [name for name in found.components if name.endswith("bias")]
    assert biases == [
        "blocks.0.attn.out.bias", "blocks.0.mlp.down.bias", "blocks.1.attn.out.bias", "blocks.1.mlp.down.bias",
        "blocks.2.attn.out.bias", "blocks.2.mlp.down.bias", "final_norm.bias", "head.bias",
    ]  # fmt: skip
    assert found.contributions[-1, 0].item() == pytest.approx(model.head.bias[5].item())


def test_a_token_outside_the_vocabulary_is_named() -> None:
    model, trace = traced("alibi")
    with pytest.raises(ValueError, match="token_ids holds 23: ids run from 0 to 22"):
        attribute(model, trace, 0, [23])
