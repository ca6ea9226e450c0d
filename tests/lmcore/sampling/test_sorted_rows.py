"""Sums over stretches of sorted rows, against numpy over every token; the same once some tokens have other logits."""

import numpy as np
import pytest
import torch

from lmcore.sampling.sorted_rows import Change, EditedRows, SortedRows

PLACES = (0, 1, 7, 500, 2999, 3000)


def rows() -> tuple[np.ndarray, SortedRows]:
    """Rows with a heavy head, with many equal logits, and with impossible tokens."""
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 3, (3, 3000)).astype(np.float32)
    logits[0, rng.integers(0, 3000, 9)] += 8
    logits[1] = np.round(logits[1])
    logits[2, ::3] = -np.inf
    return logits, SortedRows.of(torch.from_numpy(logits))


def edited() -> tuple[np.ndarray, SortedRows]:
    """The same with a few hundred tokens lowered, among them the largest, and one banned."""
    logits, base = rows()
    changed, changes = logits.astype(np.float64), []
    for place, row in enumerate(logits):
        ids = np.unique([*np.argsort(-row)[:5], *range(0, 3000, 11)])
        changed[place, ids] = np.where(row[ids] > 0, row[ids] / 1.3, row[ids] * 1.3) - 0.25
        changed[place, ids[7]] = -np.inf
        changes.append(Change(row[ids], changed[place, ids]))
    return changed, EditedRows.edited(base, changes)


@pytest.mark.parametrize("made", [rows, edited])
def test_sums_places_and_counts_are_those_of_every_token(made):
    logits, found = made()
    largest = found.largest.numpy()[:, None]
    falling = np.sort(logits.astype(np.float64), axis=1)[:, ::-1] - largest
    size = np.isfinite(falling).sum(1)
    np.testing.assert_array_equal(found.size, size)
    for place in PLACES:
        at = torch.full((3,), place).minimum(found.size)
        values = [row[: int(n)] for row, n in zip(falling, at, strict=True)]
        for temperature in (0.1, 0.7, 1.5, 4.0):
            sums = found.sums(torch.full((3,), temperature, dtype=torch.float64), at)
            weights = [np.exp(each / temperature) for each in values]
            np.testing.assert_allclose(sums.weights, [w.sum() for w in weights], rtol=1e-10, atol=1e-300)
            terms = [(w * each / temperature).sum() for w, each in zip(weights, values, strict=True)]
            np.testing.assert_allclose(sums.terms, terms, rtol=1e-10, atol=1e-15)
        for power, sums in enumerate(found.powers(at), start=1):
            np.testing.assert_allclose(sums, [(each**power).sum() for each in values], rtol=1e-10, atol=1e-9)
        if place < size.min():
            np.testing.assert_array_equal(found.value(at), falling[:, place])
            more, as_much = found.count(torch.from_numpy(falling[:, place].copy()))
            np.testing.assert_array_equal(more, (falling > falling[:, place, None]).sum(1))
            np.testing.assert_array_equal(as_much, (falling >= falling[:, place, None]).sum(1))
            inside = found.stretch(at, 40)
            np.testing.assert_array_equal(inside, falling[:, place : place + 40])
    assert found.value(found.size).tolist() == [-np.inf] * 3


@pytest.mark.parametrize("made", [rows, edited])
def test_the_token_that_reaches_a_share(made):
    logits, found = made()
    falling = np.sort(logits.astype(np.float64), axis=1)[:, ::-1] - found.largest.numpy()[:, None]
    for temperature, share in ((0.7, 0.0), (0.7, 0.5), (1.5, 0.95), (4.0, 0.999)):
        sums = np.exp(falling / temperature).cumsum(1)
        goal = torch.from_numpy(share * sums[:, -1])
        reached = found.reach(torch.full((3,), temperature, dtype=torch.float64), goal, 1e-11 * goal)
        expected = [int(np.searchsorted(row, float(g))) + 1 for row, g in zip(sums, goal, strict=True)]
        assert reached.n_tokens.tolist() == expected, (temperature, share)
        np.testing.assert_allclose(reached.before + reached.weight, sums[range(3), np.array(expected) - 1], rtol=1e-11)


def test_rows_that_are_nearly_alike_or_rise_above_every_bin_say_that_they_do_not_fit():
    alike = SortedRows.of(torch.zeros(2, 20_000))
    assert alike.fits.tolist() == [False, False]
    broken = torch.zeros(3, 5)
    broken[0, 2], broken[1], broken[2, 4] = torch.nan, -torch.inf, torch.inf
    assert SortedRows.of(broken).fits.tolist() == [False] * 3
    _logits, base = rows()
    raised = [Change(np.array([0.0], dtype=np.float32), np.array([99.0]))] * 3
    assert EditedRows.edited(base, raised).fits.tolist() == [False] * 3
