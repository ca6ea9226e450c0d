"""A matrix before and after quantisation: a piece of a row, where the weights lie on the levels, outliers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lmcore.model import Model
from lmcore.quantisation import KINDS, Kind, is_quantised, kind_for

Array = NDArray[np.float64]

PIECE = 32  # weights of a row that are looked at together: a block of most kinds
MOST_WEIGHTS = 4_000_000  # of a larger matrix, evenly spaced rows stand for all


def matrices(model: Model) -> dict[str, Tensor]:
    """Return the matrices that are quantised by name, [..., row], a tied one once."""
    return {
        name.removesuffix(".weight"): tensor.detach()
        for name, tensor in model.named_parameters()
        if is_quantised(name, tuple(tensor.shape))
    }


@dataclass(frozen=True)
class QuantisedPiece:
    """Some weights of a row that follow one another, quantised with the block they are in.

    Attributes:
        kind: the kind they are kept in, where their rows do not fit the one asked for its fallback.
        first: the place of the first of them in its row.
        before: w, float64 [n].
        codes: q, int64 [n].
        scale: d of their block.
        minimum: m of their block; None in kinds without one.
        after: w' = d q + m, float64 [n].
    """

    kind: Kind
    first: int
    before: Array
    codes: NDArray[np.int64]
    scale: float
    minimum: float | None
    after: Array

    @property
    def errors(self) -> Array:
        """What the weights moved by, w' - w."""
        return self.after - self.before

    @property
    def relative_error(self) -> float:
        """|w' - w| / |w|, lengths of vectors; 0 for weights that are all 0."""
        length = float(np.linalg.norm(self.before))
        return float(np.linalg.norm(self.errors)) / length if length else 0.0


def n_pieces(matrix: Tensor) -> int:
    """Return how many pieces a row has; the last may be shorter."""
    return math.ceil(matrix.shape[-1] / PIECE)


def piece_at(matrix: Tensor, kind: Kind, row: int, piece: int) -> QuantisedPiece | None:
    """Return a piece of a matrix [..., row], rows counted over all axes but the last.

    None where no kind fits rows of this length: they are kept in float16 then.

    Raises:
        IndexError: for a row or a piece that is not there.
    """
    found = kind_for(kind, matrix.shape[-1])
    rows = matrix.flatten(0, -2)
    if not (0 <= row < len(rows) and 0 <= piece < n_pieces(matrix)):
        raise IndexError(f"row {row}, piece {piece}: there are {len(rows)} rows of {n_pieces(matrix)} pieces.")
    if found is None:
        return None
    weights = rows[row].detach().float()
    blocks = found.blocks_of(weights)
    first = PIECE * piece
    block = first // (found.block or len(weights))
    some = slice(first, first + PIECE)
    return QuantisedPiece(
        found,
        first,
        weights[some].double().numpy(),
        blocks.codes.flatten()[some].long().numpy(),
        blocks.scale[block].item(),
        None if blocks.minimum is None else blocks.minimum[block].item(),
        blocks.values.flatten()[some].double().numpy(),
    )


def some_rows(matrix: Tensor) -> Tensor:
    """Return the rows of a matrix as [n, row]; of one with more than MOST_WEIGHTS weights evenly spaced ones."""
    rows = matrix.detach().flatten(0, -2)
    return rows[:: math.ceil(rows.numel() / MOST_WEIGHTS)].float()


@dataclass(frozen=True)
class OnLevels:
    """Where the weights of a matrix lie between the levels of a kind, each in units of its own block.

    Attributes:
        kind: the kind they are kept in.
        edges: float64 [bins + 1], of (w - m) / d.
        shares: float64 [bins], the share of the weights in each bin.
        used: float64, for each of the kind's levels the share of the weights that are put on it.
        relative_error: |W' - W| / |W|, lengths of all weights as one vector.
    """

    kind: Kind
    edges: Array
    shares: Array
    used: Array
    relative_error: float


def on_levels(matrix: Tensor, kind: Kind, bins_a_level: int = 8) -> OnLevels | None:
    """Return where the weights of `some_rows` of a matrix lie; None where no kind fits its rows.

    Blocks without a scale, whose weights are all equal, are left out.
    """
    found = kind_for(kind, matrix.shape[-1])
    if found is None:
        return None
    blocks = found.blocks_of(rows := some_rows(matrix))
    weights = rows.reshape(blocks.codes.shape)
    error = (blocks.values - weights).double().norm().item() / (weights.double().norm().item() or 1.0)
    here = ((blocks.scale != 0) & blocks.scale.isfinite()).squeeze(-1)
    if blocks.minimum is not None:
        here &= blocks.minimum.isfinite().squeeze(-1)
    minimum = 0.0 if blocks.minimum is None else blocks.minimum[here]
    places, codes = (weights[here] - minimum) / blocks.scale[here], blocks.codes[here].long()
    low, high, n = found.levels[0], found.levels[-1], max(codes.numel(), 1)
    used = torch.bincount(codes.flatten() - low, minlength=high - low + 1).double().numpy() / n
    ends = (0.0, 0.0) if not places.numel() else (places.min().item(), places.max().item())
    left, right = min(low - 1, math.floor(ends[0])), max(high + 1, math.ceil(ends[1]))  # beyond the ends is clipped
    n_bins = min((right - left) * bins_a_level, 512)
    return OnLevels(
        found,
        np.linspace(left, right, n_bins + 1),
        torch.histc(places, n_bins, left, right).double().numpy() / n,
        used[[level - low for level in found.levels]],
        error,
    )


@dataclass(frozen=True)
class Outliers:
    """The weights of a matrix that lie far from its mean.

    Attributes:
        sigma: the standard deviation of its weights.
        k: how many sigma are far.
        share: of the weights beyond k sigma.
        normal_share: the share of a normal distribution beyond k sigma, erfc(k / sqrt 2).
        largest: the largest distance from the mean in sigma.
        by_row: float64 [rows], the share in each row: those weights make one output of the matrix.
        by_column: float64 [columns], the share in each column: those weights read one input of it.
        edges: float64 [bins + 1] of the histogram, in sigma from the mean.
        shares: float64 [bins].
    """

    sigma: float
    k: float
    share: float
    normal_share: float
    largest: float
    by_row: Array
    by_column: Array
    edges: Array
    shares: Array


def outliers(matrix: Tensor, k: float = 4.0, bins: int = 121) -> Outliers:
    """Return the outliers among `some_rows` of a matrix.

    Raises:
        ValueError: for a k that is not above 0.
    """
    if not k > 0:
        raise ValueError(f"k must be above 0, got {k}.")
    rows = some_rows(matrix)
    mean, sigma = rows.mean(), rows.std(correction=0)
    distances = (rows - mean) / (sigma if sigma > 0 else 1.0)
    far = distances.abs() > k
    largest = distances.abs().max().item()
    end = max(largest, k) * (1 + 1e-6)
    counts = torch.histc(distances, bins, -end, end).double().numpy()
    return Outliers(
        sigma.item(),
        k,
        far.double().mean().item(),
        math.erfc(k / math.sqrt(2)),
        largest,
        far.double().mean(1).numpy(),
        far.double().mean(0).numpy(),
        np.linspace(-end, end, bins + 1),
        counts / rows.numel(),
    )


def relative_errors(matrix: Tensor) -> dict[str, float]:
    """Return |W' - W| / |W| of a matrix under each kind that fits its rows."""
    rows = some_rows(matrix)
    length = rows.double().norm().item()
    return {
        kind.name: (kind.blocks_of(rows).values.view(rows.shape) - rows).double().norm().item() / (length or 1.0)
        for kind in KINDS.values()
        if kind.fits(rows.shape[-1])
    }
