"""Likeness against numpy, and the cases in which cosine and dot product part."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cosine as scipy_cosine_distance

from lmcore.analysis.embedding.similarity import (
    RowComparison,
    combine,
    cosine,
    likeness,
    neighbours,
    row_lengths,
    spread,
)

TABLE = torch.from_numpy(np.random.default_rng(3).normal(0, 0.02, (50, 8)).astype(np.float32))


def test_cosine_is_scipys() -> None:
    for a, b in zip(TABLE[:25], TABLE[25:], strict=True):
        assert cosine(a, b).item() == pytest.approx(1 - scipy_cosine_distance(a.double(), b.double()), abs=1e-12)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_cosine_does_not_depend_on_length(scale: float) -> None:
    a, b = torch.tensor([3.0, 4.0]).double() * scale, torch.tensor([4.0, 3.0]).double()
    assert cosine(a, b).item() == pytest.approx(24 / 25, abs=1e-12)


def test_cosine_of_a_vector_with_itself_is_not_above_one() -> None:
    assert cosine(TABLE, TABLE).max() <= 1.0


def test_cosine_with_a_zero_vector_is_undefined() -> None:
    assert torch.isnan(cosine(torch.zeros(4), torch.ones(4)))


@pytest.mark.parametrize("measure", ["cosine", "dot"])
def test_neighbours_are_numpys(measure: str) -> None:
    rows = TABLE.double().numpy()
    scores = rows @ rows[7]
    if measure == "cosine":
        scores = scores / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[7])
    order = [row for row in np.argsort(-scores) if row != 7][:12]
    found = neighbours(TABLE, TABLE[7], 12, measure, exclude={7})
    assert found.ids.tolist() == order
    np.testing.assert_allclose(found.scores.numpy(), scores[order], rtol=1e-12)


def test_a_long_row_wins_by_dot_product_and_not_by_cosine() -> None:
    table = torch.tensor([[1.0, 0.0], [0.9, 0.1], [5.0, 5.0]])
    assert neighbours(table, table[0], 1, "cosine", {0}).ids.tolist() == [1]
    assert neighbours(table, table[0], 1, "dot", {0}).ids.tolist() == [2]


def test_equal_scores_come_by_id_and_fewer_rows_than_asked_are_enough() -> None:
    assert neighbours(torch.ones(4, 2), torch.ones(2), 10, "dot", exclude={2}).ids.tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be at least 1, got 0"),
        ({"n": 1, "measure": "l2"}, "'l2'"),
        ({"n": 1, "exclude": {50}}, "row 50"),
    ],
)
def test_bad_input_is_named(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        neighbours(TABLE, TABLE[0], **arguments)


def test_combine_adds_and_takes_away_repeated_rows_too() -> None:
    rows = TABLE.double().numpy()
    np.testing.assert_allclose(combine(TABLE, [1, 1], [2]).numpy(), 2 * rows[1] - rows[2], rtol=1e-12)


@given(arrays(np.float64, 9, elements=st.integers(-3, 3).map(float)), st.sets(st.integers(1, 8)))
def test_rank_is_the_place_in_the_list_of_neighbours(scores: np.ndarray, exclude: set[int]) -> None:
    table, one = torch.from_numpy(scores)[:, None], torch.ones(1).double()
    order = neighbours(table, one, 9, "dot", exclude).ids.tolist()
    assert RowComparison(table, one).rank(0, "dot", exclude) == 1 + order.index(0)


@pytest.mark.parametrize("measure", ["cosine", "dot"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_many_rows_closer_than_single_precision_tells_apart_keep_their_order(measure: str, dtype: torch.dtype) -> None:
    rng = np.random.default_rng(11)
    close = rng.normal(size=64) + rng.normal(size=(4000, 64)) * 1e-4  # 1e-8 in the cosine, below a unit of float32
    table = torch.from_numpy(np.concatenate([rng.normal(size=(4000, 64)), close])).to(dtype)
    vector = table[5000]
    exact = likeness(table, vector, measure).numpy()
    order = np.lexsort((np.arange(len(exact)), -exact))
    found = neighbours(table, vector, 500, measure)
    assert found.ids.tolist() == order[:500].tolist()
    np.testing.assert_array_equal(found.scores.numpy(), exact[order[:500]])
    for place in (0, 1, 250, 4000, 7999):
        assert RowComparison(table, vector).rank(int(order[place]), measure) == place + 1


def test_a_row_of_zeros_has_no_cosine_and_comes_last() -> None:
    table = torch.tensor([[0.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    found = neighbours(table, table[2], 3)
    assert found.ids.tolist() == [2, 1, 0] and torch.isnan(found.scores[2])
    assert RowComparison(table, table[2]).rank(1) == 2


def test_rows_of_zeros_come_by_id_among_themselves() -> None:
    table = torch.tensor([[0.0, 0.0], [0.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    assert neighbours(table, table[3], 4).ids.tolist() == [3, 2, 0, 1]
    assert [RowComparison(table, table[3]).rank(row) for row in range(4)] == [3, 4, 2, 1]


def test_lengths_that_are_known_change_nothing() -> None:
    known = RowComparison(TABLE, TABLE[3], TABLE.norm(dim=-1)).neighbours(9)
    assert torch.equal(known.ids, neighbours(TABLE, TABLE[3], 9).ids)


def test_nothing_left_gives_nothing() -> None:
    assert neighbours(TABLE[:2], TABLE[0], 3, exclude={0, 1}).ids.tolist() == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lengths_and_spread_of_a_table_of_many_parts_are_numpys(dtype: torch.dtype) -> None:
    table = torch.from_numpy(np.random.default_rng(5).normal(0.1, 0.02, (40_000, 3))).to(dtype)
    exact = table.double().numpy()
    np.testing.assert_allclose(row_lengths(table).numpy(), np.linalg.norm(exact, axis=1), rtol=1e-6)
    assert spread(table) == pytest.approx(exact.std(ddof=1), rel=1e-9)
