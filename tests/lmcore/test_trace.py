"""What a trace keeps and what it computes once more: the same numbers either way."""

from __future__ import annotations

import weakref

import pytest
import torch

from lmcore.trace import Trace
from tests.lmcore.analysis.models import CONFIGS, IDS, traced

SQUARE = ("scores", "masked_scores", "pattern")


def seen_on_the_way(model, names) -> dict[str, torch.Tensor]:
    """Return tensors as the pass itself had them, taken by edits that change nothing."""
    seen: dict[str, torch.Tensor] = {}
    model(torch.tensor(IDS), edits={name: lambda x, name=name: seen.setdefault(name, x.clone()) for name in names})
    return seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", CONFIGS)
@torch.inference_mode()
def test_a_trace_gives_every_tensor_as_the_pass_had_it(name: str, dtype: torch.dtype) -> None:
    model, trace = traced(name, dtype)
    for tensor_name, expected in seen_on_the_way(model, list(trace)).items():
        assert torch.equal(trace[tensor_name], expected), tensor_name
        assert torch.equal(trace.float()[tensor_name], expected.float()), tensor_name
        assert trace.float()[tensor_name].dtype == torch.float32


@torch.inference_mode()
def test_what_is_computed_once_more_follows_the_edits_before_it() -> None:
    model, plain = traced("rope, grouped heads")
    attn = "blocks.1.attn"

    def first_key_hidden(scores):
        scores = scores.clone()
        scores[..., 2:, 0] = -torch.inf
        return scores

    def first_key_not_visible(visible):
        visible = visible.clone()
        visible[2:, 0] = False
        return visible

    edits = {"scores": first_key_hidden, "visible": first_key_not_visible, "masked_scores": first_key_hidden}
    for edited, edit in edits.items():
        trace = Trace()
        model(torch.tensor(IDS), trace=trace, edits={f"{attn}.{edited}": edit})
        assert trace[f"{attn}.scores"].isneginf().any() == (edited == "scores")
        pattern = trace[f"{attn}.pattern"]
        assert not pattern[..., 2:, 0].any()
        assert plain[f"{attn}.pattern"][..., 2:, 0].all()
        torch.testing.assert_close(pattern.sum(-1), torch.ones(pattern.shape[:-1]))

    trace = Trace()
    model(torch.tensor(IDS), trace=trace, edits={f"{attn}.pattern": torch.zeros_like})
    assert not trace[f"{attn}.pattern"].any()
    assert not trace[f"{attn}.z"].any()


def test_one_square_of_the_text_is_kept_a_head() -> None:
    """A third square would show: the tensors that grow with the square of the text are most of a long trace."""
    model, trace = traced("rope, grouped heads")
    squares = {name: trace[name].nbytes for name in trace if name.endswith(SQUARE)}
    others = sum(trace[name].nbytes for name in trace) - sum(squares.values())
    assert len(squares) == 3 * model.config.n_layers
    assert trace.nbytes <= others + sum(squares.values()) / 3
    assert trace.nbytes == trace.float().nbytes


def test_a_trace_that_nobody_holds_is_gone_at_once() -> None:
    """It does not wait for the garbage collector, which may let several passes pile up."""
    _model, trace = traced("rope, grouped heads")
    held = weakref.ref(trace)
    del trace
    assert held() is None


def test_what_two_names_share_counts_once() -> None:
    trace, shared = Trace(), torch.zeros(4, 2)
    trace.record("resid_post", shared, ("position", "d_model"))
    trace.record("resid_pre", shared, ("position", "d_model"))
    assert trace.nbytes == 4 * 2 * 4


def test_a_name_not_recorded_is_an_error_that_names_its_kin() -> None:
    _model, trace = traced("rope, grouped heads")
    assert "blocks.9.attn.pattern" not in trace
    for look_up in (trace.__getitem__, trace.axes):
        with pytest.raises(KeyError, match=r"no 'blocks.9.attn.pattern'.*blocks.0.attn.pattern"):
            look_up("blocks.9.attn.pattern")
