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
        """Return the coordinates [N, n] of points along the first n directions, from the mean of these components.

        Where there are fewer directions than n, few points made them, and the other coordinates are 0.
        """
        return (points.double() - self.mean) @ self._first(n).T

    def explained(self, points: Tensor, n: int) -> Tensor:
        """Return the share [n] of the points' own total variance that lies along each of the first n directions.

        For the points that the components come from this is the explained variance ratio; for others it says how
        much of them the same axes show. NaN when all points are one.
        """
        centred = points.double() - points.double().mean(0)
        total = centred.square().sum()
        return (centred @ self._first(n).T).square().sum(0) / total

    def _first(self, n: int) -> Tensor:
        missing = max(0, n - len(self.directions))
        return torch.nn.functional.pad(self.directions[:n], (0, 0, 0, missing))


def principal_components(points: Tensor) -> PrincipalComponents:
    """Return the principal components of points, exactly and in float64.

    Nothing is drawn at random: the singular value decomposition of the centred points, or, for more points than
    dimensions, the eigenvectors of their covariance, which are the same directions. A direction's sign is free; here
    its largest coordinate is positive, so that the same points give the same map.

    Args:
        points: [N, D], at least one.

    Returns:
        min(N - 1, D) components: a single point has none, two have one.

    Raises:
        ValueError: without points.

    >>> found = principal_components(torch.tensor([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]]))
    >>> found.variances.round(decimals=6).tolist(), found.directions[0].tolist()
    ([4.0, 0.0], [1.0, 0.0])
    """
    if points.ndim != 2 or len(points) < 1:
        raise ValueError(f"points must be [N, D] with N at least 1, got shape {list(points.shape)}.")
    points = points.double()
    mean = points.mean(0)
    centred = points - mean
    n_components = min(len(points) - 1, points.shape[1])
    if n_components == 0:
        return PrincipalComponents(mean, centred[:0], centred.new_empty(0))
    if len(points) > points.shape[1]:
        rising, vectors = torch.linalg.eigh(centred.T @ centred / (len(points) - 1))
        variances, directions = rising.flip(0).clamp(min=0.0), vectors.T.flip(0)
    else:
        _, singular, directions = torch.linalg.svd(centred, full_matrices=False)
        variances, directions = singular[:n_components].square() / (len(points) - 1), directions[:n_components]
    largest = directions.abs().argmax(dim=1, keepdim=True)
    return PrincipalComponents(mean, directions * directions.gather(1, largest).sign(), variances)
