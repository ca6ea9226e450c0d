"""Long texts and attention by distance, against computations of our own."""

from __future__ import annotations

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import lmcore
import lmcore.corpus
from lmcore import Trace
from lmcore.analysis.position.length import HELD_OUT_SEED
from tests.pages.harness import tables, told
from tests.pages.position.page import ENCODINGS, FEW, TITLES, run

pytestmark = pytest.mark.slow


def measured(**parameters: str) -> AppTest:
    """Open the view of long texts and wait until its run has ended."""
    app = run(**{"position.view": "length"}, **FEW, **parameters)
    app.session_state["position.length_run"].join(120)
    app.run()
    assert not app.exception
    return app


def test_losses_beyond_the_trained_length_are_the_models_and_learned_ends() -> None:
    app = measured()
    assert "Learned positions end at position 127" in told(app)
    spans, bins = tables(app)
    spans = spans.set_index("encoding")
    assert set(spans.index) == set(TITLES.values())
    assert list(spans.loc["Learned"][["128–255", "256–383", "384–511"]]) == ["no such position"] * 3
    text = next(lmcore.corpus.windows(HELD_OUT_SEED, 16, 512, lmcore.builtin.tokenizer()))
    truth = lmcore.corpus.Truth(lmcore.builtin.tokenizer())
    for encoding, length in (("learned", 128), ("alibi", 512)):
        lm = lmcore.load(ENCODINGS[encoding])
        losses = np.zeros((16, length))
        for row, ids in zip(losses, text, strict=True):
            logits = lm(ids[:length].tolist()).double().numpy()
            logits -= logits.max(-1, keepdims=True)
            row[:] = np.log(np.exp(logits).sum(-1)) - logits[np.arange(length), ids[1 : length + 1]]
        grammar = np.array([-truth.log_prob(ids.tolist())[:length] for ids in text])
        excess = losses - grammar
        for start in range(0, length, 128):
            means = excess[:, start : start + 128].mean(1)
            wanted = f"{means.mean():.3f} ± {means.std(ddof=1) / 4:.3f}"
            assert spans.loc[TITLES[encoding], f"{start}–{start + 127}"] == wanted
        np.testing.assert_allclose(
            bins[f"{TITLES[encoding]} (nats)"][: length // 16], losses.reshape(16, -1, 16).mean((0, 2)), atol=1e-5
        )
    assert np.isnan(bins["Learned (nats)"][8:]).all()


def test_a_run_can_be_stopped_and_goes_on() -> None:
    app = run(**{"position.view": "length", "position.windows": "64"})
    [stop] = [button for button in app.button if button.key == "position.stop"]
    stop.click().run()
    first = app.session_state["position.length_run"]
    assert not first.running
    if first.done < 1:
        [go_on] = [button for button in app.button if button.key == "position.go_on"]
        go_on.click().run()
        assert app.session_state["position.length_run"] is not first
        app.session_state["position.length_run"].stop()


def test_attention_by_distance_is_the_mean_along_the_diagonals() -> None:
    table = tables(run(**{"position.view": "distance", "layer": "1"}))[0]
    text = next(lmcore.corpus.windows(HELD_OUT_SEED, 4, 128, lmcore.builtin.tokenizer()))[:, :-1]
    for encoding in ("none", "learned"):
        lm, weights = lmcore.load(ENCODINGS[encoding]), np.zeros((4, 128))
        for row, ids in zip(weights, text, strict=True):
            lm(ids.tolist(), trace=(trace := Trace()))
            pattern = trace["blocks.1.attn.pattern"].double().numpy().mean(0)
            row[:] = [np.diag(pattern, -distance).mean() for distance in range(128)]
        np.testing.assert_allclose(table[TITLES[encoding]], weights.mean(0), atol=1e-6)
    assert table["the same for all keys"][127] == pytest.approx(1 / 128)


def test_attention_by_distance_on_the_readers_prompt() -> None:
    app = run(**{"position.view": "distance", "position.text": "prompt"})
    table = tables(app)[0]
    assert len(table) == len(lmcore.builtin.tokenizer().encode("小明喜欢小红").ids)
    one = run(prompt="我", **{"position.view": "distance", "position.text": "prompt"})
    assert (tables(one)[0].drop(columns="distance") == 1).all(axis=None)
