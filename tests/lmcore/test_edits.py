"""Editing a pass on its way: against transformers with hooks, against the trace, and what is refused."""

from __future__ import annotations

import pytest
import torch

import lmcore
from lmcore.kv_cache import KVCache
from lmcore.trace import Trace
from tests.lmcore.analysis.models import CONFIGS, IDS, traced
from tests.lmcore.checkpoints.tiny import write_folder


def layer_of(theirs, block: int):
    return theirs.transformer.h[block] if hasattr(theirs, "transformer") else theirs.model.layers[block]


def parts_of(case: str, layer):
    """Return the projection that the heads' outputs enter, and the module whose output the MLP adds to the stream."""
    if case == "gpt2":
        return layer.attn.c_proj, layer.mlp
    return layer.self_attn.o_proj, layer.post_feedforward_layernorm if case == "gemma3" else layer.mlp


@torch.inference_mode()
@pytest.mark.parametrize("case", ["llama", "gpt2", "gemma3"])
def test_heads_and_mlps_switched_off_as_transformers_with_hooks_does(case: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    theirs = write_folder(case, tmp_path / "model")
    model = lmcore.load(tmp_path / "model").model
    ids = torch.randint(0, model.config.vocab_size, (11,), generator=torch.Generator().manual_seed(3))
    d_head = model.config.d_head

    def without_two_heads(_module, inputs):
        joined = inputs[0].clone()
        joined[..., d_head : 2 * d_head] = 0
        joined[..., 3 * d_head : 4 * d_head] = 0
        return (joined,)

    projection, _mlp = parts_of(case, layer_of(theirs, 1))
    _projection, mlp = parts_of(case, layer_of(theirs, 2))
    hooks = [
        projection.register_forward_pre_hook(without_two_heads),
        mlp.register_forward_hook(lambda _module, _inputs, output: torch.zeros_like(output)),
    ]
    expected = theirs(ids[None]).logits[0]
    for hook in hooks:
        hook.remove()

    def heads_off(z):
        z = z.clone()
        z[..., [1, 3], :, :] = 0
        return z

    added = "blocks.2.mlp_post_norm.out" if model.config.sandwich_norm else "blocks.2.mlp.out"
    edited = model(ids, edits={"blocks.1.attn.z": heads_off, added: torch.zeros_like})
    torch.testing.assert_close(edited, expected, rtol=1e-5, atol=1e-5)
    intact = model(ids)
    torch.testing.assert_close(intact, theirs(ids[None]).logits[0], rtol=1e-5, atol=1e-5)  # it was left as it is
    assert (intact - edited).abs().max() > 0.01


def changed(tensor: torch.Tensor) -> torch.Tensor:
    """Return something else: of numbers that are masked again too, of what a query sees its own position only."""
    if tensor.dtype == torch.bool:
        return torch.eye(len(tensor), dtype=torch.bool)
    return tensor * 1.5 + 0.3 if tensor.is_floating_point() else (tensor + 1) % 5  # the experts that are chosen


@pytest.mark.slow
@torch.inference_mode()
@pytest.mark.parametrize("name", CONFIGS)
def test_every_name_can_be_edited_and_what_was_put_in_goes_on(name: str) -> None:
    model, trace = traced(name)
    ids = torch.tensor(IDS)
    for edited_name in trace:
        edited = Trace()
        logits = model(ids, edited, edits={edited_name: changed})
        assert list(edited) == list(trace)
        names = list(trace)
        for before in names[: names.index(edited_name)]:
            torch.testing.assert_close(edited[before], trace[before])
        torch.testing.assert_close(edited[edited_name], changed(trace[edited_name]))
        if not edited_name.startswith("blocks.2.") or edited_name.endswith("resid_post"):
            assert not torch.equal(logits, trace["logits"]), edited_name
        torch.testing.assert_close(logits, edited["logits"])


@torch.inference_mode()
def test_an_edit_that_changes_nothing_gives_the_same_logits() -> None:
    model, trace = traced("rope, grouped heads")
    assert torch.equal(model(torch.tensor(IDS), edits=dict.fromkeys(trace, torch.clone)), trace["logits"])


@torch.inference_mode()
def test_a_batch_is_edited_row_by_row_and_a_cache_goes_on() -> None:
    model, trace = traced("rope, grouped heads")

    def second_row(z):
        assert z.shape == (2, 4, len(IDS), 4)
        return z * torch.tensor([1.0, 0.0])[:, None, None, None]

    both = model(torch.tensor([IDS, IDS]), edits={"blocks.1.attn.z": second_row})
    torch.testing.assert_close(both[0], trace["logits"])
    alone = model(torch.tensor(IDS), edits={"blocks.1.attn.z": torch.zeros_like})
    torch.testing.assert_close(both[1], alone)
    cache = KVCache(model.config)
    pieces = [
        model(piece, cache=cache, edits={"blocks.1.attn.z": torch.zeros_like}) for piece in torch.tensor(IDS).split(3)
    ]
    torch.testing.assert_close(torch.cat(pieces), alone)


def test_names_that_do_not_occur_and_shapes_that_change_are_named() -> None:
    model, _trace = traced("alibi")
    with pytest.raises(ValueError, match=r"'blocks\.0\.attn\.visible' returned torch\.float32 for torch\.bool"):
        model(torch.tensor(IDS), edits={"blocks.0.attn.visible": torch.Tensor.float})
    with pytest.raises(ValueError, match=r"edits holds 'blocks\.3\.attn\.z', 'blocks\.0\.attn\.q_rotated', which this"):
        edits = dict.fromkeys(["blocks.3.attn.z", "blocks.0.attn.q_rotated", "logits"], torch.zeros_like)
        model(torch.tensor(IDS), edits=edits)
    with pytest.raises(ValueError, match=r"'blocks\.0\.attn\.z' returned shape \(7, 4\) for \(4, 7, 4\)"):
        model(torch.tensor(IDS), edits={"blocks.0.attn.z": lambda z: z[0]})
