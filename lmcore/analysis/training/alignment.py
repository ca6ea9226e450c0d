"""Turn one map of points onto another, so that maps of a table at two moments can be compared by eye."""

from __future__ import annotations

import torch
from torch import Tensor


def aligned(points: Tensor, reference: Tensor) -> Tensor:
    """Return points, turned and perhaps mirrored about the origin so that they lie as near the reference as they can.

    Distances among the points stay as they are: the map is orthogonal, the solution of the orthogonal Procrustes
    problem (Schönemann 1966).

    Args:
        points: [N, K], such as the first K principal components.
        reference: [N, K], the same points on another map.

    >>> quarter = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    >>> reference = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
    >>> torch.allclose(aligned(reference @ quarter, reference), reference.double())
    True
    """
    points, reference = points.double(), reference.double()
    left, _, right = torch.linalg.svd(points.T @ reference)
    return points @ (left @ right)
