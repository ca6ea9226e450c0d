"""The survivors nearest to a value, at many positions at once: what typical sampling lets in first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lmcore.sampling.falling import GUARD, Falling
from lmcore.sampling.sorted_rows import EDGES, MIDDLES

__all__ = ["Around"]

_HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Around:
    """Tokens by their distance from a value, `[N, P]`: those that enter without question apart.

    Attributes:
        known: `[N]` float64, the weight of those that surely enter.
        weights: `[N, P]` float64, of the others, the nearest first; 0 behind the last.
        distances: `[N, P]` float64; inf behind the last.
        places: `[N, P]` int64, where they stand in the falling order.
        inner: `[N, 2]` int64, the first place of those that surely enter, and the place behind the last.
    """

    known: Tensor
    weights: Tensor
    distances: Tensor
    places: Tensor
    inner: Tensor

    @classmethod
    def of(cls, tokens: Falling, value: Tensor, goal: Tensor) -> Around:
        """Look around a value `[N]`, as far as the nearest tokens weigh less than a goal `[N]`, and a little further.

        The bins tell how far: what lies nearer than r weighs at least as much as the bins that lie nearer as a whole,
        and at most as much as those that are touched.
        """
        rows, depth = tokens.rows, -value.nan_to_num(nan=0.0)
        running = torch.nn.functional.pad(rows.bins(tokens.temperature).weights.cumsum(1), (1, 0))
        running = (running - tokens.ahead.weights[:, None]).clamp_min(0)
        running = torch.where(rows.begins >= tokens.end[:, None], tokens.total[:, None], running)
        running = torch.where(rows.begins <= tokens.first[:, None], 0.0, running)

        def whole(radius: Tensor) -> tuple[Tensor, Tensor]:
            low = torch.searchsorted(EDGES, depth - radius)
            high = torch.searchsorted(EDGES, depth + radius, right=True) - 1
            return torch.minimum(low, high).clamp_min(0), high.clamp_min(0)

        def touched(radius: Tensor) -> tuple[Tensor, Tensor]:
            low = torch.searchsorted(EDGES, depth - radius, right=True) - 1
            high = torch.searchsorted(EDGES, depth + radius)
            return low.clamp_min(0), high.clamp(1, len(MIDDLES))

        def weight(bins: tuple[Tensor, Tensor]) -> Tensor:
            low, high = (running.gather(1, side[:, None]).squeeze(1) for side in bins)
            return high - low

        low, high = whole(_least(lambda radius: weight(touched(radius)) >= goal, depth, below=True))
        left, right = touched(_least(lambda radius: weight(whole(radius)) >= goal, depth, below=False))
        left, right = torch.minimum(left, low), torch.maximum(right, high)
        parts = [rows.inside(left, low - 1), rows.inside(high, right - 1)]
        values = torch.cat([part for part, _ in parts], dim=1)
        places = torch.cat([begin[:, None] + torch.arange(part.shape[1]) for part, begin in parts], dim=1)
        alive = (places >= tokens.first[:, None]) & (places < tokens.end[:, None]) & values.isfinite()
        distances, order = (values - value[:, None]).abs().where(alive, torch.inf).sort(dim=1, stable=True)
        weights = (values / tokens.temperature[:, None]).where(alive, -torch.inf).exp_().gather(1, order)
        inner = torch.stack([rows.begins.gather(1, side[:, None]).squeeze(1) for side in (low, high)], dim=1)
        inner = inner.clamp(tokens.first[:, None], tokens.end[:, None])
        return cls(weight((low, high)), weights, distances, places.gather(1, order), inner)

    def stretch(self, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Take the n nearest, `[N]`, besides those that surely enter.

        Returns:
            The first place, how many they are, and where they are no stretch or rounding could decide, `[N]` each.
        """
        n = torch.minimum(n, self.distances.isfinite().sum(1))
        begin, end = self.inner.unbind(1)
        taken = torch.arange(self.distances.shape[1]) < n[:, None]
        far = int(self.places.max()) + 1
        first = torch.where(begin < end, begin, far).minimum(self.places.where(taken, far).amin(1))
        last = torch.where(begin < end, end - 1, -1).maximum(self.places.where(taken, -1).amax(1))
        count = n + (end - begin)
        farthest, following = (
            torch.nn.functional.pad(self.distances, (1, 1), value=torch.inf).gather(1, at[:, None]).squeeze(1)
            for at in (n, n + 1)
        )
        # Equally far ones on both sides, or of equal logits on the left, leave a hole.
        near = (following - farthest).abs() <= GUARD * (1 + following.abs())
        return first, count, near & following.isfinite() & farthest.isfinite() | (last - first + 1 != count)


def _least(is_enough: Callable[[Tensor], Tensor], depth: Tensor, below: bool) -> Tensor:
    """Halve to the least radius that is enough; `below`: to one just short of it."""
    low, high = torch.zeros_like(depth), depth.abs() + 2 * EDGES[-2]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = is_enough(middle)
        low, high = torch.where(enough, low, middle), torch.where(enough, middle, high)
    return low if below else high
