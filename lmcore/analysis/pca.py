"""Principal components: the directions along which points spread most, computed exactly."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class PrincipalComponents:
    """What `principal_components` finds in points.

    Attributes:
        mean: [D], the points' centre.
        directions: [K, D], orthonormal, that of the largest variance first.
        variances: [K], of the points along each direction; they sum to the total variance.
    """

    mean: Tensor
    directions: Tensor
    variances: Tensor

    def project(self, points: Tensor, n: int) -> Tensor:
        """Return the coordinates [N, n] of points along the first n directions, from the mean of these components."""
        return (points.double() - self.mean) @ self.directions[:n].T

    def explained(self, points: Tensor, n: int) -> Tensor:
        """Return the share [n] of the points' own total variance that lies along each of the first n directions.

        For the points that the components come from this is the explained variance ratio; for others it says how
        much of them the same axes show. NaN when all points are one.
        """
        centred = points.double() - points.double().mean(0)
        total = centred.square().sum()
        return (centred @ self.directions[:n].T).square().sum(0) / total


def principal_components(points: Tensor) -> PrincipalComponents:
    """Return the principal components of points, by singular value decomposition of the centred points in float64.

    Nothing is drawn at random. A direction's sign is free; here its largest coordinate is positive, so that the same
    points give the same map.

    Args:
        points: [N, D], at least two.

    Returns:
        min(N, D) components.

    Raises:
        ValueError: for fewer than two points.

    >>> found = principal_components(torch.tensor([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]]))
    >>> found.variances.round(decimals=6).tolist(), found.directions[0].tolist()
    ([4.0, 0.0], [1.0, 0.0])
    """
    if points.ndim != 2 or len(points) < 2:
        raise ValueError(f"points must be [N, D] with N at least 2, got shape {list(points.shape)}.")
    points = points.double()
    mean = points.mean(0)
    _, singular, directions = torch.linalg.svd(points - mean, full_matrices=False)
    largest = directions.abs().argmax(dim=1, keepdim=True)
    directions = directions * directions.gather(1, largest).sign()
    return PrincipalComponents(mean, directions, singular.square() / (len(points) - 1))
