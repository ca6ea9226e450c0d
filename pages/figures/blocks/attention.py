"""Pictures of attention: the pattern of a head, those of all heads, one query worked out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.figures import theme
from pages.figures.axes import titled
from pages.figures.figure import Figure

MAX_THUMBNAIL = 64  # cells a side; a longer text is drawn by the largest weight of each patch
_MAX_DIMENSIONS = 16  # of a vector are numbered on its axis


def pattern(weights: ArrayLike, tokens: Sequence[str], query: int, titles: tuple[str, str, str]) -> Figure:
    """Return the attention pattern of a head with one query outlined; the keys in a query's future are grey.

    Args:
        weights: [query, key].
        tokens: a label for each position.
        query: the row to outline.
        titles: of the queries, the keys and the weights.
    """
    n = len(tokens)
    cells = np.array(weights, dtype=np.float32)  # a pattern of 512 tokens has 262,144
    seen = np.tril(np.ones((n, n), dtype=bool))
    end = scale_end(cells)
    cells[~seen] = np.nan
    figure = theme.heatmap(
        cells, tokens, tokens, kind="probability", limit=end, height=min(max(340, 130 + 30 * n), 640)
    )
    figure.data[0].z = cells
    if n > MAX_THUMBNAIL:
        for axis in (figure.layout.xaxis, figure.layout.yaxis):
            axis.update(tickvals=axis.tickvals[::2], ticktext=axis.ticktext[::2])
    titled(figure, titles[0], titles[1], titles[2])
    figure.add_shape(**_future(n))
    theme.outline_cells(figure, (query, query), (0, query))
    return figure


def scale_end(weights: np.ndarray) -> float:
    """Return where the scale of a pattern [query, key] ends: at 1, for a long text lower.

    A long text's weights are small, as each row sums to 1: its scale ends where all but one in a hundred have ended.
    """
    if len(weights) <= MAX_THUMBNAIL:
        return 1.0
    seen = weights[weights > 0]
    return float(np.quantile(seen, 0.99)) if seen.size else 1.0


def all_patterns(patterns: ArrayLike, head: int, name: str) -> Figure:
    """Return the patterns of all heads of a block as thumbnails on one scale, 0 to 1; one head is outlined.

    Args:
        patterns: [head, query, key].
        head: the one to outline.
        name: what to call a head, e.g. "Head"; its number follows.
    """
    small = np.stack([shrink(pattern) for pattern in np.asarray(patterns, dtype=np.float32)])
    n_heads, n, _n = small.shape
    n_columns = min(n_heads, 4 if n_heads <= 12 else 8)
    n_rows = math.ceil(n_heads / n_columns)
    future = ~np.tril(np.ones((n, n), dtype=bool))
    height = 175 * n_rows
    figure = theme.base_figure(height + 8)
    gap_x, gap_y = 0.03, 24 / height  # room for a name above each
    for index, weights in enumerate(small):
        row, column = divmod(index, n_columns)
        suffix = "" if index == 0 else str(index + 1)
        left, top = column / n_columns, 1 - row / n_rows
        domain = {
            "x": [left + gap_x / 2, left + 1 / n_columns - gap_x / 2],
            "y": [top - 1 / n_rows, top - gap_y],
        }
        axis = {"visible": False, "fixedrange": True, "constrain": "domain"}
        figure.update_layout(
            {
                f"xaxis{suffix}": {**axis, "domain": domain["x"], "anchor": f"y{suffix}"},
                f"yaxis{suffix}": {**axis, "domain": domain["y"], "anchor": f"x{suffix}", "autorange": "reversed"},
            }
        )
        figure.add_shape(**_future(n), xref=f"x{suffix}", yref=f"y{suffix}")
        figure.add_heatmap(
            z=np.where(future, np.nan, weights),
            zmin=0,
            zmax=1,
            colorscale=theme.SEQUENTIAL,
            showscale=False,
            hoverongaps=False,
            hovertemplate=f"{name} {index}<br>%{{y}} → %{{x}}<br><b>%{{z:.4f}}</b><extra></extra>",
            xaxis=f"x{suffix}",
            yaxis=f"y{suffix}",
        )
        chosen = index == head
        figure.add_annotation(
            text=f"<b>{name} {index}</b>" if chosen else f"{name} {index}",
            x=sum(domain["x"]) / 2,
            y=domain["y"][1],
            xref="paper",
            yref="paper",
            xanchor="center",
            yanchor="bottom",
            showarrow=False,
        )
        figure.add_shape(
            type="rect",
            x0=-0.5,
            x1=n - 0.5,
            y0=-0.5,
            y1=n - 0.5,
            xref=f"x{suffix}",
            yref=f"y{suffix}",
            line={"color": theme.OUTLINE if chosen else theme.GRID, "width": 2 if chosen else 1},
        )
    figure.update_layout(margin={"t": 0, "b": 8})
    return figure


def _future(n: int) -> dict[str, object]:
    """Return the shape, grey steps, of the keys that lie in the future of n queries; it takes no cells of its own.

    >>> _future(3)["path"]
    'M 0.5,-0.5 V 0.5 H 1.5 V 1.5 H 2.5 V -0.5 Z'
    """
    steps = " ".join(f"V {query + 0.5} H {query + 1.5}" for query in range(n - 1))
    path = f"M 0.5,-0.5 {steps} V -0.5 Z"
    return {"type": "path", "path": path, "fillcolor": theme.MASKED, "line": {"width": 0}, "layer": "below"}


def shrink(weights: np.ndarray) -> np.ndarray:
    """Return a square picture of at most MAX_THUMBNAIL cells a side, each the largest of its patch.

    >>> shrink(np.eye(3)).shape, shrink(np.eye(130)).shape
    ((3, 3), (44, 44))
    """
    patch = math.ceil(len(weights) / MAX_THUMBNAIL)
    side = math.ceil(len(weights) / patch)
    room = np.zeros((side * patch, side * patch), dtype=weights.dtype)
    room[: len(weights), : len(weights)] = weights
    return room.reshape(side, patch, side, patch).max(axis=(1, 3))


def vectors(rows: ArrayLike, labels: Sequence[str], dimension: str, value: str, marked: int | None = None) -> Figure:
    """Return vectors as rows of colour on one scale centred on 0, one of them outlined.

    Args:
        rows: [row, dimension].
        labels: one a row.
        dimension: what the columns are.
        value: what the colour is.
        marked: the row to outline.
    """
    values = np.asarray(rows, dtype=np.float64)
    figure = theme.heatmap(
        values,
        labels,
        [str(index) for index in range(values.shape[1])],
        kind="signed",
        height=min(170 + 26 * len(labels), 720),
    )
    if marked is not None:
        theme.outline_row(figure, marked)
    shown = range(0, values.shape[1], math.ceil(values.shape[1] / _MAX_DIMENSIONS))
    figure.update_xaxes(tickvals=list(shown), ticktext=[str(index) for index in shown])
    return titled(figure, "", dimension, value)


def scores_to_weights(
    scores: ArrayLike, weights: ArrayLike, masked: Sequence[bool], tokens: Sequence[str], titles: tuple[str, str]
) -> Figure:
    """Return, key by key, the score on the left and the weight that softmax makes of it on the right.

    Args:
        scores: [key], before the mask.
        weights: [key], 0 where masked.
        masked: [key], the keys in the query's future; their scores are grey and hatched.
        tokens: a label for each key.
        titles: of the two halves.
    """
    left = theme.bars(scores, tokens, kind="signed", removed=masked)
    right = theme.bars(weights, tokens, kind="probability", removed=masked)
    figure = theme.base_figure(max(180, 80 + 26 * len(tokens)))
    figure.add_trace(left.data[0])
    figure.add_trace(right.data[0].update(xaxis="x2", yaxis="y2", textposition="outside"))
    shown = ["" if gone else text for gone, text in zip(masked, right.data[0].text, strict=True)]
    figure.data[1].text = shown
    ticks = {"tickmode": "array", "tickvals": left.layout.yaxis.tickvals, "ticktext": left.layout.yaxis.ticktext}
    title = {"standoff": 8}
    figure.update_layout(
        xaxis={
            "domain": [0, 0.47],
            "range": [left.layout.xaxis.range[0], 1.2 * left.layout.xaxis.range[1]],
            "title": {**title, "text": titles[0]},
            "zeroline": True,
        },
        xaxis2={
            "domain": [0.56, 1],
            "anchor": "y2",
            "range": [0, 1.5 * right.layout.xaxis.range[1]],  # the weight is written behind its bar
            "tickformat": theme.PERCENT,
            "title": {**title, "text": titles[1]},
        },
        yaxis={"autorange": "reversed", **ticks},
        yaxis2={"anchor": "x2", "matches": "y", "showticklabels": False, "autorange": "reversed"},
        showlegend=False,
        margin={"t": 16},
    )
    figure.update_xaxes(showgrid=True, gridcolor=theme.GRID, zerolinecolor=theme.GRID)
    return figure
