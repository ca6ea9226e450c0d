"""Alignment of two maps, against scipy."""

import scipy.linalg
import torch

from lmcore.analysis.training.alignment import aligned


def test_turned_as_scipys_procrustes_turns() -> None:
    generator = torch.Generator().manual_seed(0)
    points, reference = (torch.randn(20, 2, generator=generator, dtype=torch.float64) for _ in range(2))
    turn, _scale = scipy.linalg.orthogonal_procrustes(points.numpy(), reference.numpy())
    torch.testing.assert_close(aligned(points, reference), points @ torch.from_numpy(turn))


def test_distances_stay() -> None:
    points, reference = torch.randn(9, 3), torch.randn(9, 3)
    torch.testing.assert_close(torch.pdist(aligned(points, reference)), torch.pdist(points.double()))
