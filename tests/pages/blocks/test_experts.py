"""The view of the experts shows what the router did, and what the model says without one of them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
import torch

import lmcore
from lmcore.corpus import HELD_OUT_SEED, windows
from pages.common.escape import visible
from tests.pages.harness import figures, opener, printed, table_with, told

run = opener("blocks", prompt="今天天气很好", **{"blocks.view": "experts"})
MODEL = "small-world-experts"


def numbers(values: Any) -> np.ndarray:
    """Return a figure's array, which it holds packed."""
    array = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).astype(float)
    return array.reshape([int(n) for n in values["shape"].split(",")]) if "shape" in values else array


def traced() -> tuple[lmcore.LanguageModel, list[int], lmcore.Trace]:
    lm, trace = lmcore.load(MODEL), lmcore.Trace()
    ids = lm.tokenizer.encode("今天天气很好").ids
    lm(ids, trace=trace)
    return lm, ids, trace


@pytest.mark.slow
def test_the_numbers_are_the_routers() -> None:
    app = run(model=MODEL, layer="1", position="2")
    lm, ids, trace = traced()
    logits = trace["blocks.1.mlp.router_logits"].double()
    chosen = logits.argsort(-1, descending=True)[:, :2]
    table = table_with(app, "Router logit")
    assert table["Expert"].tolist() == chosen[2].tolist()
    both = logits[2, chosen[2]].exp()
    np.testing.assert_allclose(table["Weight"] / 100, both / both.sum(), rtol=1e-4)
    routed, loads = figures(app)[:2]
    cells = numbers(routed.data[0].z)
    assert cells.shape == (8, len(ids)) and (np.isfinite(cells).sum(0) == 2).all()
    np.testing.assert_allclose(np.nansum(cells, 0), 1, rtol=1e-5)
    np.testing.assert_allclose(numbers(loads.data[0].z).sum(1), 1)
    assert f"{lmcore.parameters.used_by_a_token(lm.config):,}" in told(app)
    printed(app)  # its lines of Python run


def test_what_the_experts_specialise_in_is_counted_over_texts_of_the_small_world() -> None:
    lm = lmcore.load(MODEL)
    table = table_with(run(model=MODEL, layer="2"), "Given most")
    assert table["Share of the choices"].sum() == pytest.approx(100, abs=0.01)
    texts = next(windows(HELD_OUT_SEED, 64, 64, lm.tokenizer))[:, :64]
    first = table["Given most"][0].split("   ")[0]
    token, share = first.rsplit(" ", 1)
    went = occurred = 0
    for ids in texts.tolist():
        trace = lmcore.Trace()
        lm(ids, trace=trace)
        for token_id, chosen in zip(ids, trace["blocks.2.mlp.chosen"].tolist(), strict=True):
            if visible(lm.tokenizer.token_bytes(token_id)) == token:
                occurred, went = occurred + 1, went + (0 in chosen)
    assert occurred >= 8 and share == f"{went / occurred:.0%}"


def test_an_expert_that_is_off_and_another_in_its_place() -> None:
    lm, ids, trace = traced()
    off = int(trace["blocks.1.mlp.chosen"][2, 0])
    other = next(e for e in range(8) if e not in trace["blocks.1.mlp.chosen"][2].tolist())
    for instead in (-1, other):
        app = run(model=MODEL, layer="1", position="2", expert=str(off), **{"expert.instead": str(instead)})
        bars = figures(app)[2].data[1]
        chosen = trace["blocks.1.mlp.chosen"]
        logits = trace["blocks.1.mlp.router_logits"].clone()
        logits[:, off] = -torch.inf
        free = (chosen == off) & ~(chosen == other).any(-1, keepdim=True)
        new = logits.topk(2).indices if instead < 0 else torch.where(free, other, chosen)
        edits = {"blocks.1.mlp.chosen": lambda _chosen, new=new: new}
        probs = lm(ids, edits=edits)[2].double().softmax(-1).numpy()
        assert np.isclose(numbers(bars.x)[0], probs, atol=1e-6).any()


def test_a_model_without_experts_says_so_and_shows_one_that_has() -> None:
    assert "small-world has no experts. Shown is small-world-experts." in told(run(model="small-world"))


def test_an_expert_chosen_that_stood_in_for_another_gives_way_to_the_routers_choice() -> None:
    app = run(model=MODEL, expert="1", **{"expert.instead": "2"})
    app.selectbox(key="expert").set_value(2).run()
    assert app.selectbox(key="expert.instead").value == -1
    assert "is not a choice here" not in told(app)
