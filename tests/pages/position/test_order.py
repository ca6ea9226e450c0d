"""The effect of order: the distances on the page against the models' own."""

from __future__ import annotations

import numpy as np
import pytest

import lmcore
from lmcore import Trace
from pages.figures.position import comparison
from tests.pages.harness import tables, told
from tests.pages.position.page import ENCODINGS, TITLES, run

PAIR = ("小明喜欢小红，所以", "小红喜欢小明，所以")


def probs_and_traces(name: str) -> tuple[list[np.ndarray], list[Trace]]:
    lm = lmcore.load(name)
    probs, traces = [], []
    for text in PAIR:
        traces.append(Trace())
        logits = lm(lm.tokenizer.encode(text).ids, trace=traces[-1])[-1].double().numpy()
        shares = np.exp(logits - logits.max())
        probs.append(shares / shares.sum())
    return probs, traces


def test_distances_between_the_two_sentences_are_the_models() -> None:
    table = tables(run(**{"position.view": "order", "position.pair": "so"}))[0].set_index("encoding")
    assert set(table.index) == set(TITLES.values())
    for encoding, name in ENCODINGS.items():
        probs, traces = probs_and_traces(name)
        assert table.loc[TITLES[encoding], "total variation"] == pytest.approx(
            np.abs(probs[0] - probs[1]).sum() / 2, abs=1e-6
        )
        a, b = (trace["blocks.1.attn.out"][-1].double().numpy() for trace in traces)
        wanted = np.linalg.norm(a - b) / (np.linalg.norm(a) + np.linalg.norm(b)) * 2
        assert table.loc[TITLES[encoding], "blocks.1.attn.out"] == pytest.approx(wanted, abs=1e-6)


def test_without_positions_the_first_layer_cannot_tell_and_the_page_shows_it() -> None:
    table = tables(run(**{"position.view": "order", "position.pair": "so"}))[0].set_index("encoding")
    assert table.loc["None", "blocks.0.attn.out"] < comparison.ROUNDING
    assert (table.drop(index="None")["blocks.0.attn.out"] > 100 * comparison.ROUNDING).all()
    assert table.loc["None", "hidden_state"] > 100 * comparison.ROUNDING  # deeper layers can: measured, not assumed


@pytest.mark.slow
def test_the_readers_prompt_has_two_tokens_exchanged() -> None:
    app = run(prompt="小明喜欢小红，", **{"position.view": "order", "position.pair": "prompt"})
    assert "小红喜欢小明，" in told(app)
    few = run(prompt="今天天气", **{"position.view": "order", "position.pair": "prompt"})
    assert "at least 3 tokens" in told(few)
    assert not tables(few)


def test_a_long_prompt_leaves_out_the_model_whose_table_ends() -> None:
    app = run(prompt="我喜欢猫。" * 40, **{"position.view": "order", "position.pair": "prompt"})
    assert "Learned" not in set(tables(app)[0]["encoding"])


def test_a_pair_of_other_tokens_is_said_to_be_one() -> None:
    assert "The same tokens in two orders" in told(run(**{"position.view": "order", "position.pair": "birthday"}))
    assert "The tokens are not quite the same" in told(run(**{"position.view": "order", "position.pair": "tom"}))
