"""t-SNE maps: near stays near, the same seed gives the same map, and it stops when told."""

import time

import numpy as np
import pytest
import torch

from lmcore.analysis.embedding import tsne
from lmcore.analysis.embedding.tsne import STEPS, TsneRun

pytestmark = pytest.mark.slow


def clusters(n_clusters: int, each: int) -> torch.Tensor:
    rng = np.random.default_rng(2)
    middles = rng.normal(size=(n_clusters, 1, 20))
    return torch.from_numpy((middles + 0.15 * rng.normal(size=(n_clusters, each, 20))).reshape(-1, 20)).float()


def made(points: torch.Tensor, **options) -> np.ndarray:
    run = TsneRun(points, **options)
    run.join()
    progress = run.progress
    assert (progress.state, progress.steps, progress.error) == ("finished", STEPS, None)
    assert progress.places is not None
    return progress.places


@pytest.mark.parametrize("n_axes", [2, 3])
def test_a_points_nearest_on_the_map_are_of_its_cluster(n_axes: int) -> None:
    places = made(clusters(5, 20), n_axes=n_axes)
    assert places.shape == (100, n_axes)
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1) + np.diag([np.inf] * 100)
    assert (apart.argmin(1) // 20 == np.arange(100) // 20).mean() > 0.97


def test_the_seed_decides_the_map_from_a_random_start() -> None:
    points = clusters(3, 5)
    first, again, other = (made(points, n_axes=2, start="random", seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3
    np.testing.assert_array_equal(made(points, n_axes=2), made(points, n_axes=2, seed=9))  # nothing is drawn


@pytest.mark.parametrize("n", [4, 5])
def test_few_points_have_a_map(n: int) -> None:
    assert np.isfinite(made(clusters(n, 1), n_axes=3)).all()


def test_three_points_have_none() -> None:
    with pytest.raises(ValueError, match="at least 4 points, got 3"):
        TsneRun(clusters(3, 1), n_axes=2)


def test_it_stops_with_what_it_reached() -> None:
    run = TsneRun(clusters(40, 50), n_axes=2)
    while run.progress.steps == 0 and run.progress.alive:
        time.sleep(0.01)
    run.stop()
    run.join()
    progress = run.progress
    assert progress.state == "stopped" and not progress.alive
    assert 0 < progress.steps < STEPS and progress.places.shape == (2000, 2)


def test_one_that_waits_can_be_stopped_and_a_failure_is_told() -> None:
    with tsne._ONE_AT_A_TIME:
        waiting = TsneRun(clusters(3, 5), n_axes=2)
        assert waiting.progress.state == "waiting"
        waiting.stop()
    waiting.join()
    assert (waiting.progress.state, waiting.progress.places) == ("stopped", None)
    failing = TsneRun(torch.full((9, 4), torch.nan), n_axes=2)
    failing.join()
    assert failing.progress.state == "failed" and failing.progress.error is not None
