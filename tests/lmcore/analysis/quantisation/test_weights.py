"""A matrix before and after, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import lmcore
from lmcore.analysis.quantisation.weights import (
    MOST_WEIGHTS,
    matrices,
    on_levels,
    outliers,
    piece_at,
    relative_errors,
    some_rows,
)
from lmcore.quantisation import KINDS


@pytest.fixture(scope="module")
def matrix() -> torch.Tensor:
    return matrices(lmcore.load("small-world").model)["blocks.1.mlp.up"]


def test_the_matrices_are_those_that_quantisation_changes() -> None:
    found = matrices(lmcore.load("small-world-experts").model)
    assert "head" not in found and "blocks.0.mlp.router" not in found and found["blocks.0.mlp.up"].ndim == 3
    assert "head" in matrices(lmcore.load("small-world-untied").model)


def test_a_piece_is_read_back_as_its_codes_say(matrix) -> None:
    for kind in KINDS.values():
        piece = piece_at(matrix, kind, 3, 2)
        np.testing.assert_array_equal(piece.before, matrix[3, 64:96].double())
        np.testing.assert_allclose(
            piece.after, piece.scale * piece.codes + (piece.minimum or 0.0), rtol=1e-6, atol=1e-9
        )
        np.testing.assert_array_equal(piece.after, kind_values(matrix, piece.kind)[3, 64:96])
        assert piece.relative_error == pytest.approx(
            np.linalg.norm(piece.after - piece.before) / np.linalg.norm(piece.before)
        )
        assert (piece.minimum is None) != piece.kind.has_minimum
    assert piece_at(matrix, KINDS["tq1_0"], 0, 0).kind.name == "q4_0"  # rows of 128 are no multiple of 256
    assert piece_at(torch.ones(2, 40), KINDS["q4_0"], 0, 1) is None
    with pytest.raises(IndexError, match="row 512, piece 0: there are 512 rows of 4 pieces"):
        piece_at(matrix, KINDS["q4_0"], 512, 0)


def kind_values(matrix: torch.Tensor, kind) -> np.ndarray:
    return kind.blocks_of(matrix).values.view(matrix.shape).double().numpy()


def test_weights_lie_between_the_levels_and_each_is_put_on_one(matrix) -> None:
    for name in ("q4_0", "q4_1", "mxfp4", "q8_0"):
        found = on_levels(matrix, KINDS[name])
        assert found.used.sum() == pytest.approx(1) and found.shares.sum() == pytest.approx(1), name
        wanted = np.linalg.norm(kind_values(matrix, KINDS[name]) - matrix.double().numpy()) / matrix.double().norm()
        assert found.relative_error == pytest.approx(float(wanted), rel=1e-6)
        assert relative_errors(matrix)[name] == pytest.approx(found.relative_error)
    q4 = on_levels(matrix, KINDS["q4_0"])
    assert q4.used[0] >= 1 / 32  # the largest magnitude of each block lies on -8
    assert q4.shares[q4.edges[:-1] >= 7.5].sum() > 0  # what is as large on the other side is clipped to 7


def test_outliers_are_counted_in_the_rows_and_columns_they_are_in(matrix) -> None:
    weights = torch.randn(300, 200)
    weights[7, 11:15] = 40.0
    found = outliers(weights, k=6)
    assert found.share * weights.numel() == pytest.approx(4)
    assert found.by_row.argmax() == 7 and found.by_row[7] == pytest.approx(4 / 200)
    assert set(np.flatnonzero(found.by_column)) == {11, 12, 13, 14}
    assert found.normal_share == pytest.approx(1.973e-9, rel=1e-3)  # two-sided, beyond 6 sigma
    assert found.shares.sum() == pytest.approx(1) and found.sigma == pytest.approx(weights.numpy().std(), rel=1e-5)
    with pytest.raises(ValueError, match=r"k must be above 0, got 0\."):
        outliers(weights, 0)
    assert outliers(torch.ones(3, 32)).share == 0


def test_of_a_large_matrix_some_rows_stand_for_all() -> None:
    large = torch.arange(3 * MOST_WEIGHTS // 1000).float().unsqueeze(-1).expand(-1, 1000)
    some = some_rows(large)
    assert some.numel() <= MOST_WEIGHTS and some[:, 0].diff().unique().tolist() == [3.0]
