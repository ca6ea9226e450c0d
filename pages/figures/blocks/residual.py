"""Pictures of a block: the residual stream, what was added to it, MLP units, any tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.figures import theme
from pages.figures.axes import roomy, titled
from pages.figures.blocks.attention import scale_end
from pages.figures.figure import Figure

ATTENTION, MLP = theme.CATEGORICAL[0], theme.CATEGORICAL[4]


def stream(
    values: ArrayLike,
    names: Sequence[str],
    tokens: Sequence[str],
    position: int,
    titles: tuple[str, str],
    *,
    signed: bool,
    limit: float | None = None,
) -> Figure:
    """Return a quantity of the residual stream by place in the model and position, one position outlined.

    Args:
        values: [name, position].
        names: of the places, the first on top.
        tokens: a label for each position.
        position: the column to outline.
        titles: of the positions and of the quantity.
        signed: whether the quantity can be negative; its scale is -1 to 1.
        limit: the end of the scale of one that cannot; the largest value when left out.
    """
    figure = theme.heatmap(values, names, tokens, kind="signed" if signed else "amount", limit=1.0 if signed else limit)
    theme.outline_column(figure, position)
    return titled(figure, "", titles[0], titles[1])


def states(cosines: ArrayLike, names: Sequence[str], title: str) -> Figure:
    """Return the cosine of every state with every other, [name, name], as a square."""
    figure = theme.heatmap(cosines, names, names, kind="signed", limit=1.0, height=min(240 + 16 * len(names), 820))
    titled(figure, "", "", title)
    figure.update_xaxes(tickangle=-90)
    return figure


def additions(norms: ArrayLike, names: Sequence[str], title: str) -> Figure:
    """Return how long a vector each attention and each MLP added at one position; the two kinds differ in colour."""
    colours = [ATTENTION if ".attn" in name else MLP for name in names]
    labels = [name.removesuffix(".out") for name in names]
    return titled(theme.bars(norms, labels, kind="amount", colours=colours), "", title)


def units(post: ArrayLike, indices: Sequence[int], title: str) -> Figure:
    """Return the most active MLP units as bars, labelled by their index in d_mlp."""
    return roomy(titled(theme.bars(post, [f"#{index}" for index in indices], kind="signed"), "", title))


def tensor(
    matrix: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    axes: tuple[str, str],
    name: str,
    marked: int | None = None,
) -> Figure:
    """Return a slice of a traced tensor; entries that are not finite are grey.

    Args:
        matrix: [row, column].
        rows, columns: labels.
        axes: what rows and columns are.
        name: the tensor's name, which decides the scale: patterns are probabilities, scales amounts, all else signed.
        marked: the row to outline.
    """
    values = np.asarray(matrix, dtype=np.float64)
    kind: theme.Kind = "signed"
    limit = None
    if name.endswith(".pattern"):
        kind, limit = "probability", scale_end(values)
    elif name.endswith(".scale"):
        kind = "amount"
    figure = theme.heatmap(
        values,
        rows,
        columns,
        kind=kind,
        masked=~np.isfinite(values),
        limit=limit,
        height=min(max(240, 130 + 22 * len(rows)), 640),
    )
    if marked is not None:
        theme.outline_row(figure, marked)
    return titled(figure, axes[0], axes[1], name.rsplit(".", 1)[-1])
