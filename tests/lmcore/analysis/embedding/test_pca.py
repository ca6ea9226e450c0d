"""Principal components against numpy's eigenvectors of the covariance."""

import numpy as np
import pytest
import torch

from lmcore.analysis.embedding.pca import principal_components

RNG = np.random.default_rng(5)
POINTS = torch.from_numpy(RNG.normal(size=(60, 7)) * np.array([5, 4, 3, 2, 1, 0.5, 0.1]) + 10).float()


def test_directions_and_variances_are_those_of_the_covariance() -> None:
    values, vectors = np.linalg.eigh(np.cov(POINTS.double().numpy().T))
    found = principal_components(POINTS)
    np.testing.assert_allclose(found.variances.numpy(), values[::-1], rtol=1e-9)
    np.testing.assert_allclose(np.abs((found.directions.numpy() * vectors[:, ::-1].T).sum(1)), 1.0, rtol=1e-9)


def test_coordinates_are_centred_and_have_the_variances() -> None:
    found = principal_components(POINTS)
    placed = found.project(POINTS, 3).numpy()
    np.testing.assert_allclose(placed.mean(0), 0.0, atol=1e-9)
    np.testing.assert_allclose(placed.var(0, ddof=1), found.variances[:3].numpy(), rtol=1e-9)


def test_explained_shares_of_the_points_themselves_and_of_others() -> None:
    found = principal_components(POINTS)
    np.testing.assert_allclose(found.explained(POINTS, 7).numpy(), (found.variances / found.variances.sum()).numpy())
    across = found.mean + torch.outer(torch.linspace(-1, 1, 5).double(), found.directions[6])
    assert found.explained(across, 2).sum().item() == pytest.approx(0.0, abs=1e-12)
    assert found.explained(across, 7)[6].item() == pytest.approx(1.0)


def test_signs_are_fixed() -> None:
    directions = principal_components(POINTS).directions
    assert (directions.gather(1, directions.abs().argmax(1, keepdim=True)) > 0).all()
    assert torch.equal(directions, principal_components(POINTS).directions)


def test_more_dimensions_than_points_give_the_same_as_numpys_svd() -> None:
    points = POINTS[:5]
    centred = points.double().numpy() - points.double().numpy().mean(0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    found = principal_components(points)
    np.testing.assert_allclose(found.variances.numpy(), singular[:4] ** 2 / 4, rtol=1e-9)
    np.testing.assert_allclose(np.abs((found.directions.numpy() * directions[:4]).sum(1)), 1.0, rtol=1e-9)


def test_few_points_have_a_map_too() -> None:
    two = principal_components(POINTS[:2])
    assert two.explained(POINTS[:2], 1).item() == pytest.approx(1.0)
    placed = two.project(POINTS[:2], 3)
    apart = (POINTS[0].double() - POINTS[1].double()).norm().item()
    assert (placed[0] - placed[1]).norm().item() == pytest.approx(apart)
    assert placed[:, 1:].abs().max() == 0 and two.project(POINTS, 3)[:, 1:].abs().max() == 0
    one = principal_components(POINTS[:1])
    assert one.project(POINTS[:1], 2).tolist() == [[0.0, 0.0]]
    assert torch.isnan(one.explained(POINTS[:1], 2)).all()


def test_no_points_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[0, 7\]"):
        principal_components(POINTS[:0])
