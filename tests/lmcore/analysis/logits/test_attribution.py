"""The parts of a logit: they sum to it, and each is what autograd says a component is worth."""

import pytest
import torch

from lmcore.analysis import attribute
from lmcore.norm import LayerNorm
from lmcore.trace import Trace
from tests.lmcore.analysis.models import CONFIGS, IDS, traced

TOKENS = [0, 5, 22]


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("position", [0, len(IDS) - 1])
def test_contributions_sum_to_the_models_logits(name: str, position: int) -> None:
    model, trace = traced(name)
    found = attribute(model, trace, position, TOKENS)
    before_cap = trace["hidden_state"][position].double() @ model.head.weight[TOKENS].double().T
    if model.head.bias is not None:
        before_cap += model.head.bias[TOKENS].double()
    before_cap *= model.config.logit_scale
    torch.testing.assert_close(found.logits, before_cap, rtol=1e-4, atol=1e-4)
    if model.config.logit_softcap is None:
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
    logit = model.head.weight[token] @ (centred / trace["final_norm.scale"][position].double() * model.final_norm.gain)
    (gradient,) = torch.autograd.grad(model.config.logit_scale * logit, resid)

    attn_added, mlp_added = model.config.attn_added, model.config.mlp_added
    for block in range(3):
        heads = sum(by_name[f"blocks.{block}.attn.head.{head}"] for head in range(4))
        attn = heads + by_name.get(f"blocks.{block}.attn.out.bias", 0)
        attn += by_name.get(f"blocks.{block}.attn_post_norm.bias", 0)
        mlp = by_name[f"blocks.{block}.mlp"] + by_name.get(f"blocks.{block}.mlp.down.bias", 0)
        mlp += by_name.get(f"blocks.{block}.mlp_post_norm.bias", 0)
        torch.testing.assert_close(
            attn, gradient @ trace[f"blocks.{block}.{attn_added}"][position].double(), atol=1e-5, rtol=1e-5
        )
        torch.testing.assert_close(
            mlp, gradient @ trace[f"blocks.{block}.{mlp_added}"][position].double(), atol=1e-5, rtol=1e-5
        )
    embedding = trace["blocks.0.resid_pre"][position].double()
    start = by_name["token_embedding"] + by_name.get("position_embedding", 0)
    torch.testing.assert_close(start, gradient @ embedding, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("name", CONFIGS)
def test_a_head_is_worth_what_goes_when_it_is_switched_off_and_all_else_is_held(name: str) -> None:
    model, trace = traced(name)
    model = model.double()
    found = attribute(model, trace, 6, [5])
    worth = found.contributions[found.components.index("blocks.2.attn.head.1"), 0].item()

    def off(z):
        z = z.clone()
        z[1] = 0
        return z

    held = {  # what comes after the head and would answer to its absence
        name: lambda _tensor, name=name: trace[name].double()
        for name in ("blocks.2.attn_post_norm.scale", "blocks.2.mlp.out", "final_norm.scale")
        if name in trace
    }
    again = Trace()
    model(torch.tensor(IDS), again, edits={"blocks.2.attn.z": off} | held)
    lost = found.logits - attribute(model, again, 6, [5]).logits
    assert lost.item() == pytest.approx(worth, abs=2e-5)


def test_biases_are_components_of_their_own() -> None:
    model, trace = traced("gpt2-like, every bias")
    found = attribute(model, trace, 2, [5])
    biases = [name for name in found.components if name.endswith("bias")]
    assert biases == [
        "blocks.0.attn.out.bias",
        "blocks.0.mlp.down.bias",
        "blocks.1.attn.out.bias",
        "blocks.1.mlp.down.bias",
        "blocks.2.attn.out.bias",
        "blocks.2.mlp.down.bias",
        "final_norm.bias",
        "head.bias",
    ]
    assert found.contributions[-1, 0].item() == pytest.approx(model.head.bias[5].item())


def test_a_token_outside_the_vocabulary_is_named() -> None:
    model, trace = traced("alibi")
    with pytest.raises(ValueError, match="token_ids holds 23: ids run from 0 to 22"):
        attribute(model, trace, 0, [23])
