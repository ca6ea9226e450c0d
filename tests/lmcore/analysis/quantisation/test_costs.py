"""Perplexity, KL divergence and same top p, against llama.cpp's definitions written once more with numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import lmcore
from lmcore.analysis.quantisation import costs as module
from lmcore.analysis.quantisation.costs import Chunk, chunks, chunks_of, costs, size
from lmcore.corpus import HELD_OUT_SEED, Truth, windows

TEXT = "Anna likes Tom, but Tom likes Mary. The weather today is fine. The king is old, and the queen is tired.\n" * 8


@pytest.fixture(scope="module")
def lm() -> lmcore.LanguageModel:
    return lmcore.load("small-world")


def tool(base: np.ndarray, other: np.ndarray, came: list[int]) -> dict[str, tuple[float, float]]:
    """perplexity.cpp, kl_divergence(): sums over all scored tokens, from logits [n, V] in float64."""
    p = base - np.logaddexp.reduce(base, axis=1)[:, None]
    q = other - np.logaddexp.reduce(other, axis=1)[:, None]
    n, at = len(came), (np.arange(len(came)), came)

    def mean(values: np.ndarray) -> tuple[float, float]:
        average = values.sum() / n
        return average, math.sqrt(((values**2).sum() / n - average**2) / (n - 1))

    nll, error = mean(-q[at])
    base_nll, base_error = mean(-p[at])
    covariance = ((q[at] * p[at]).sum() / n - nll * base_nll) / (n - 1)
    same = (base.argmax(1) == other.argmax(1)).sum() / n
    return {
        "ppl": (math.exp(nll), math.exp(nll) * error),
        "ratio": (nll - base_nll, math.sqrt(max(error**2 + base_error**2 - 2 * covariance, 0))),
        "kld": mean((np.exp(p) * (p - q)).sum(1)),
        "same": (same, math.sqrt(same * (1 - same) / (n - 1))),
    }


def test_the_numbers_are_those_of_llama_cpps_tool(lm) -> None:
    ids = lm.tokenizer.encode(TEXT).ids
    text = chunks(ids, 60)
    assert len(text) >= 2
    found = {cost.variant: cost for cost in costs(lm, ["float32", "q4_0:kv8", "tq2_0"], text)}
    for variant, cost in found.items():
        other = lmcore.load(f"small-world:{variant}")
        scored = [(lm(chunk.ids)[30:], other(chunk.ids)[30:]) for chunk in text]
        base, moved = (torch.cat(each).double().numpy() for each in zip(*scored, strict=True))
        wanted = tool(base, moved, [token for i in range(len(text)) for token in ids[60 * i + 31 : 60 * i + 60]])
        ours = {
            "ppl": cost.perplexity,
            "ratio": cost.ln_ratio,
            "kld": cost.mean_kld,
            "same": cost.same_top_share,
        }
        for name, estimate in ours.items():
            np.testing.assert_allclose(
                (estimate.value, estimate.error), wanted[name], rtol=1e-4, atol=1e-6, err_msg=f"{variant} {name}"
            )
        assert (cost.nbytes, cost.weights) == size(lm, variant)
        assert cost.truth_kld is None
    assert found["float32"].mean_kld.value == 0 and found["float32"].same_top_share.value == 1
    assert found["tq2_0"].mean_kld.value > 10 * found["q4_0:kv8"].mean_kld.value > 0


def test_what_is_not_kept_is_computed_again(lm, monkeypatch) -> None:
    text = chunks(lm.tokenizer.encode(TEXT).ids[:40], 20)
    kept = [cost.kld for cost in costs(lm, ["q4_0"], text)]
    monkeypatch.setattr(module, "MOST_KEPT", 0)
    again = [cost.kld for cost in costs(lm, ["q4_0"], text)]
    assert [len(each) for each in kept] == [9, 18]  # each step knows one chunk more
    assert all(np.array_equal(first, second) for first, second in zip(kept, again, strict=True))


def test_against_the_grammar_eight_bits_cost_nothing_and_two_do(lm) -> None:
    truth = Truth(lm.tokenizer)
    text = [chunk for row in next(windows(HELD_OUT_SEED, 4, 40, lm.tokenizer)) for chunk in chunks(row, 40)]
    found = {cost.variant: cost for cost in costs(lm, ["float32", "q8_0", "tq2_0"], text, truth)}
    chunk = text[0]
    probs = truth.next_token_probs(chunk.ids[: chunk.first + 1])
    q = lm(chunk.ids)[chunk.first].double().log_softmax(-1).numpy()
    some = probs > 0
    wanted = (probs[some] * (np.log(probs[some]) - q[some])).sum()
    assert found["float32"].truth_kld[0] == pytest.approx(wanted, rel=1e-6)
    exact, eight, two = (found[name].mean_truth_kld for name in ("float32", "q8_0", "tq2_0"))
    assert abs(eight.value - exact.value) < exact.error < two.value - exact.value


def test_the_distributions_along_a_text_are_those_of_each_prefix(lm) -> None:
    truth, ids = Truth(lm.tokenizer), lm.tokenizer.encode("Anna likes Tom").ids
    found = truth.distributions(ids)
    for i in range(len(ids)):
        np.testing.assert_allclose(found[i], truth.next_token_probs(ids[: i + 1]))
    assert truth.distributions([ids[-1], ids[-1]]) is None


def test_a_text_is_cut_as_the_tool_cuts_it() -> None:
    found = chunks(list(range(100, 127)), 8, first_token=1)
    assert [chunk.ids for chunk in found] == [(1, *range(start + 1, start + 7)) for start in (100, 108, 116)]
    assert found[0] == Chunk(found[0].ids, 4, (105, 106, 107))
    assert [chunk.first for chunk in chunks(range(9), 512)] == [4]
    for n_ctx, n in ((3, 100), (512, 3)):
        with pytest.raises(ValueError, match="a chunk needs at least 4 tokens"):
            chunks(range(n), n_ctx)


def test_a_chunk_is_no_longer_than_the_context() -> None:
    short = lmcore.load("small-world-learned")
    assert len(chunks_of(short, "Anna likes Tom. " * 200, 10_000)[0].ids) == short.config.context_length - 1


def test_variants_that_mean_nothing_are_refused(lm) -> None:
    for variant in ("q3_k", "q4_0:q8_0", ""):
        with pytest.raises(ValueError, match="a variant must be one of float32, bfloat16, q8_0.*, or kv8"):
            list(costs(lm, [variant], [Chunk((1, 2), 0, (2, 3))]))
