"""Divergence, total variation, flips, rank and margin, against plain NumPy in float64."""

import math

import numpy as np
import pytest
import torch

from lmcore.compare import compare
from lmcore.compare.alignment import aligned
from lmcore.compare.measures import shared, told, whole
from tests.lmcore.compare import runs


def softmax(row: np.ndarray) -> np.ndarray:
    powers = np.exp(row.astype(np.float64) - row.max())
    return powers / powers.sum()


def kl(p: np.ndarray, q: np.ndarray) -> float:
    return float(sum(x * math.log2(x / y) for x, y in zip(p, q, strict=True) if x > 0))


def logits(n: int, size: int, seed: int) -> torch.Tensor:
    return 4 * torch.randn(n, size, generator=torch.Generator().manual_seed(seed))


def test_whole_distributions() -> None:
    a, b = logits(7, 50, 1), logits(7, 50, 2)
    b[3] = a[3]
    b[5] = a[5] + 12.5  # a shift of all logits changes nothing
    found = whole(a, b)
    for row in range(7):
        p, q = softmax(a[row].numpy()), softmax(b[row].numpy())
        assert found.kl_ab[row] == pytest.approx(kl(p, q), abs=1e-9)
        assert found.kl_ba[row] == pytest.approx(kl(q, p), abs=1e-9)
        assert found.total_variation[row] == pytest.approx(np.abs(p - q).sum() / 2, abs=1e-9)
        assert found.flips[row] == (p.argmax() != q.argmax())
        assert found.rank[row] == 1 + (p > p[q.argmax()]).sum()
        first, second = np.sort(p)[::-1][:2]
        assert found.margin[row] == pytest.approx(math.log2(first / second))
        assert found.largest[row] == pytest.approx(np.abs(np.log(p) - np.log(q)).max(), abs=1e-9)
        assert found.best.ids[row].tolist() == [*np.argsort(-p)[:8], *np.argsort(-q)[:8]]
        np.testing.assert_allclose(found.best.log_a[row], np.log(p)[found.best.ids[row]], atol=1e-9)
        np.testing.assert_allclose(found.best.log_b[row], np.log(q)[found.best.ids[row]], atol=1e-9)
    assert (found.kl_ab[3], found.total_variation[3], found.flips[3], found.rank[3]) == (0, 0, False, 1)


def test_ties_and_impossible_tokens() -> None:
    a = torch.tensor([[1.0, 3.0, 3.0], [0.0, 0.0, -math.inf], [0.0, 0.0, 0.0]])
    b = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, -math.inf], [0.0, 0.0, -math.inf]])
    found = whole(a, b)
    assert found.best.ids[1].tolist() == [0, 1, 2] * 2 and found.best.log_a[1, 2] == -math.inf
    assert found.first_a.tolist() == [1, 0, 0] and found.rank.tolist() == [2, 1, 1] and found.margin[0] == 0
    assert (found.kl_ab[1], found.largest[1]) == (0, 0)
    assert found.kl_ab[2] == math.inf and found.kl_ba[2] == pytest.approx(math.log2(3 / 2))
    with pytest.raises(ValueError, match="NaN|nan"):
        whole(torch.tensor([[math.nan, 0.0]]), torch.zeros(1, 2))
    with pytest.raises(ValueError, match="NaN|nan"):
        shared(torch.tensor([[math.nan, 0.0]]), torch.zeros(1, 2), np.arange(2), np.arange(2))
    with pytest.raises(ValueError, match="shape"):
        whole(torch.zeros(1, 2), torch.zeros(1, 3))


def test_two_vocabularies_are_compared_over_what_both_have() -> None:
    a, b = logits(4, 6, 3), logits(4, 5, 4)
    groups_a, groups_b = np.array([0, -1, 1, 2, 2, -1]), np.array([2, 0, -1, 1, -1])  # A has one token twice
    found = shared(a, b, groups_a, groups_b)
    for row in range(4):
        p, q = softmax(a[row].numpy()), softmax(b[row].numpy())
        of_a, of_b = np.array([p[0], p[2], p[3] + p[4]]), np.array([q[1], q[3], q[0]])
        assert found.covered_a[row] == pytest.approx(of_a.sum()) and found.covered_b[row] == pytest.approx(of_b.sum())
        of_a, of_b = of_a / of_a.sum(), of_b / of_b.sum()
        assert found.kl_ab[row] == pytest.approx(kl(of_a, of_b)) and found.kl_ba[row] == pytest.approx(kl(of_b, of_a))
        assert found.total_variation[row] == pytest.approx(np.abs(of_a - of_b).sum() / 2)
        assert found.flips[row] == (groups_a[p.argmax()] != groups_b[q.argmax()] or groups_a[p.argmax()] < 0)
    with pytest.raises(ValueError, match="no token in common"):
        shared(a, b, np.full(6, -1), np.full(5, -1))


def test_what_is_told_gives_a_lower_bound() -> None:
    a, b = logits(5, 40, 5), logits(5, 40, 6)
    exact = whole(a, b)
    known = [
        [
            {i: float(v) for i, v in enumerate(torch.log_softmax(row.double(), -1)) if i % 2 or i == int(row.argmax())}
            for row in side
        ]
        for side in (a, b)
    ]
    found = told(*known)
    for row in range(5):
        both = [token for token in known[0][row] if token in known[1][row]]
        p, q = (np.exp([side[row][token] for token in both]) for side in known)
        p, q = np.append(p, 1 - p.sum()), np.append(q, 1 - q.sum())
        assert found.kl_ab[row] == pytest.approx(kl(p, q)) and found.kl_ab[row] <= exact.kl_ab[row]
        assert found.total_variation[row] == pytest.approx(np.abs(p - q).sum() / 2)
        assert found.total_variation[row] <= exact.total_variation[row]
    assert found.first_a.tolist() == exact.first_a.tolist() and found.flips.tolist() == exact.flips.tolist()


def test_positions_are_aligned_by_the_text() -> None:
    assert aligned([b"a", b"b"], [b"a", b"b"]) == [(0, 0), (1, 1)]
    assert aligned([b"<s>", b"a", b"b"], [b"a", b"b"]) == [(1, 0), (2, 1)]
    assert aligned([b"ab", b"c"], [b"a", b"bc"]) == [(1, 1)]
    assert aligned([b"x", b"-", b"y"], [b"x", b"++", b"y"]) == [(0, 0), (1, 1), (2, 2)]
    assert aligned([b"aa"], [b"aa", b"aa"]) == [(0, 0)]  # a common beginning is not its end, too
    assert aligned([b""], [b""]) == []


def test_the_same_text_behind_a_bos_is_compared_place_by_place() -> None:
    found = compare(runs.side(), runs.side(runs.with_bos()))
    assert found.places == tuple((i, i + 1) for i in range(len(found.a.ids)))
    p, q = (softmax(side.logits[-1].numpy()) for side in (found.a, found.b))
    assert found.kl.a_b[-1] == pytest.approx(kl(p, q), rel=1e-6)


def test_another_vocabulary_is_compared_where_both_have_a_border() -> None:
    found = compare(runs.side(), runs.side(runs.other_words()))
    assert not found.same_vocabulary and 1 < len(found.places) < len(found.b.ids)
    for i, j in found.places:
        assert b"".join(found.a.tokens[: i + 1]) == b"".join(found.b.tokens[: j + 1])
    assert (found.divergence.covered_a < 1).all() and np.isfinite(found.kl.a_b).all()
    i, j = found.places[-1]
    for row in found.beside(len(found.places) - 1):
        for run, place, prob in ((found.a, i, row.a), (found.b, j, row.b)):
            ids = [t for t in range(run.tokenizer.vocab_size) if run.tokenizer.token_bytes(t) == row.token]
            assert (prob is None) == (not ids)
            assert prob is None or prob == pytest.approx(softmax(run.logits[place].numpy())[ids].sum())


def test_the_comparison_is_that_of_the_logits() -> None:
    found = compare("small-world", "small-world:bfloat16", runs.TEXT)
    p, q = (np.stack([softmax(row) for row in side.logits.numpy()]) for side in (found.a, found.b))
    np.testing.assert_allclose(found.kl.a_b, [kl(*pair) for pair in zip(p, q, strict=True)], atol=1e-12)
    np.testing.assert_allclose(found.total_variation, np.abs(p - q).sum(1) / 2, atol=1e-12)
    assert found.worst(1) == [int(found.kl.a_b.argmax())]
    for n in (3, 12):  # of those kept, and of the logits once more
        shown = found.beside(2, n)
        ids = np.argsort(-p[2])[:n]
        assert [row.token for row in shown][:3] == [found.a.tokenizer.token_bytes(i) for i in ids[:3].tolist()]
        assert [row.a for row in shown][:3] == pytest.approx(p[2][ids[:3]].tolist())
        assert [row.b for row in shown][:3] == pytest.approx(q[2][ids[:3]].tolist())
