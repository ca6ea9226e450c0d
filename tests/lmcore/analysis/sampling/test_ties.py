"""Margins against numpy's spacing; other ways to run a text against the plain pass."""

import numpy as np
import pytest
import torch

import lmcore
from lmcore.analysis.sampling.ties import WAYS, margins, run_ways, ties


def test_margins_in_logits_and_in_units_of_the_last_place():
    logits = torch.randn(40, 500, generator=torch.Generator().manual_seed(0)) * 7
    found = margins(logits)
    rows = np.sort(logits.numpy(), -1)
    apart = rows[:, -1].astype(np.float64) - rows[:, -2].astype(np.float64)
    np.testing.assert_array_equal(found.logits, apart)
    np.testing.assert_allclose(found.ulps, apart / np.spacing(np.abs(rows[:, -1])).astype(np.float64))
    np.testing.assert_allclose(found.bfloat16_ulps, found.ulps / 2**16)
    np.testing.assert_array_equal(found.best, logits.numpy().argmax(-1))


def test_of_equal_logits_the_lower_id_is_the_best():
    for logits, best, second in (
        ([1.0, 3.0, 0.0, 3.0], 1, 3),
        ([1.0, *[3.0] * 60, 0.0], 1, 2),
        ([4.0, *[3.0] * 60], 0, 1),
        ([2.0, -torch.inf, -torch.inf], 0, 1),
    ):
        found = margins(torch.tensor([logits]))
        assert (found.best.tolist(), found.second.tolist()) == ([best], [second]), logits
        assert found.logits.tolist() == [logits[best] - logits[second]]


def test_the_neurons_of_each_expert_are_put_into_another_order():
    lm = lmcore.load("small-world-experts")
    (way,) = run_ways(lm, lm.tokenizer.encode("The weather today is nice.").ids, ["order"])
    assert 0 < float(way.difference.max()) < 1e-3


def test_each_way_is_the_same_model_to_within_its_rounding():
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode("The weather today is nice. The cat is in the garden.").ids
    plain = lm(ids)
    ways = {way.name: way for way in run_ways(lm, ids)}
    assert tuple(ways) == WAYS
    for name in ("cache", "batch", "order"):
        assert float(ways[name].difference.max()) < 1e-3, name
    assert float(ways["order"].difference.max()) > 0  # another order of the sums shows in the last digits
    assert 1e-3 < float(ways["bfloat16"].difference.max()) < 2
    for way in ways.values():
        flipped = way.logits.argmax(-1) != plain.argmax(-1)
        assert list(way.flips) == flipped.nonzero().squeeze(1).tolist()
        # A best token can only change where the margin is at most twice the largest difference.
        assert all(margins(plain).logits[place] <= 2 * way.difference[place] for place in way.flips)


def test_the_steps_of_a_generation_are_told_apart_way_by_way():
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode("The weather today is nice. The cat is in the garden.").ids
    first = 4
    begun, *_, found = ties(lm, ids, first)
    assert not begun.ways and [way.name for way in found.ways] == list(WAYS)
    plain = lm(ids)
    assert found.margins.best.tolist() == plain[first:].argmax(-1).tolist()
    steps = len(ids) - first
    for way, alone in zip(found.ways, run_ways(lm, ids, plain=plain, first=first), strict=True):
        assert len(way.difference) == len(way.best) == steps
        torch.testing.assert_close(way.difference, alone.difference[first:])
        for step in range(steps):
            other = int(alone.logits[first + step].argmax())
            assert found.flips(step).get(way.name) == (None if other == int(plain[first + step].argmax()) else other)


def test_a_flip_is_found_where_bfloat16_cannot_tell_two_logits_apart():
    lm = lmcore.load("small-world")
    # Of so many steps of no sense some have a margin below what bfloat16 moves a logit by.
    ids = [place * 7 % lm.config.vocab_size for place in range(120)]
    *_, found = ties(lm, ids, 0, ["bfloat16"])
    (way,) = found.ways
    assert way.flips and all(found.margins.logits[step] <= 2 * way.difference[step] for step in way.flips)


def test_an_unknown_way_is_refused():
    with pytest.raises(ValueError, match="'gpu' is no way"):
        run_ways(lmcore.load("small-world"), [1], ["gpu"])
