"""Pictures of a transformer block: attention patterns, one query worked out, residual stream, MLP, any tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.figures import theme
from pages.figures.figure import Figure

MAX_THUMBNAIL = 64  # cells a side; a longer text is drawn by the largest weight of each patch
ATTENTION, MLP = theme.CATEGORICAL[0], theme.CATEGORICAL[4]


def pattern(weights: ArrayLike, tokens: Sequence[str], query: int, titles: tuple[str, str, str]) -> Figure:
    """Return the attention pattern of a head with one query outlined; the keys in a query's future are grey.

    A long text's weights are small, as each row sums to 1: its scale ends where all but one in a hundred have ended.

    Args:
        weights: [query, key].
        tokens: a label for each position.
        query: the row to outline.
        titles: of the queries, the keys and the weights.
    """
    n = len(tokens)
    future = np.triu(np.ones((n, n), dtype=bool), 1)
    end = max(float(np.quantile(np.asarray(weights)[~future], 0.99)), 1e-6) if n > MAX_THUMBNAIL else 1.0
    figure = theme.heatmap(
        weights, tokens, tokens, kind="probability", masked=future, limit=end, height=min(max(340, 130 + 30 * n), 640)
    )
    if n > MAX_THUMBNAIL:
        for axis in (figure.layout.xaxis, figure.layout.yaxis):
            axis.update(tickvals=axis.tickvals[::3], ticktext=axis.ticktext[::3])
    grey, cells = figure.data[0], figure.data[-1]
    if grey is not cells:  # one byte a cell, and four: a pattern of 512 tokens has 262,144
        grey.update(z=future.astype(np.uint8), zmin=0, zmax=1, colorscale=[[0, "rgba(0, 0, 0, 0)"], [1, theme.MASKED]])
    cells.z = np.asarray(cells.z, dtype=np.float32)
    _titled(figure, titles[0], titles[1], titles[2])
    figure.add_shape(
        type="rect",
        x0=-0.5,
        x1=query + 0.5,
        y0=query - 0.5,
        y1=query + 0.5,
        line={"color": theme.OUTLINE, "width": 2},
    )
    return figure


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
    future = np.triu(np.ones((n, n), dtype=bool), 1)
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
        figure.add_heatmap(
            z=np.where(future, 1.0, np.nan),
            colorscale=[[0, theme.MASKED], [1, theme.MASKED]],
            showscale=False,
            hoverinfo="skip",
            xaxis=f"x{suffix}",
            yaxis=f"y{suffix}",
        )
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
        figure.add_shape(
            type="rect",
            x0=-0.5,
            x1=values.shape[1] - 0.5,
            y0=marked - 0.5,
            y1=marked + 0.5,
            line={"color": theme.OUTLINE, "width": 2},
        )
    return _titled(figure, "", dimension, value)


def scores_to_weights(
    scores: ArrayLike, weights: ArrayLike, hidden: Sequence[bool], tokens: Sequence[str], titles: tuple[str, str]
) -> Figure:
    """Return, key by key, the score on the left and the weight that softmax makes of it on the right.

    Args:
        scores: [key], before the mask.
        weights: [key], 0 where hidden.
        hidden: [key], the keys in the query's future; their scores are grey and hatched.
        tokens: a label for each key.
        titles: of the two halves.
    """
    left = theme.bars(scores, tokens, kind="signed", removed=hidden)
    right = theme.bars(weights, tokens, kind="probability", removed=hidden)
    figure = theme.base_figure(max(180, 80 + 26 * len(tokens)))
    figure.add_trace(left.data[0])
    figure.add_trace(right.data[0].update(xaxis="x2", yaxis="y2", textposition="outside"))
    shown = ["" if gone else text for gone, text in zip(hidden, right.data[0].text, strict=True)]
    figure.data[1].text = shown
    ticks = {"tickmode": "array", "tickvals": left.layout.yaxis.tickvals, "ticktext": left.layout.yaxis.ticktext}
    title = {"standoff": 8}
    figure.update_layout(
        xaxis={
            "domain": [0, 0.47],
            "range": left.layout.xaxis.range,
            "title": {**title, "text": titles[0]},
            "zeroline": True,
        },
        xaxis2={
            "domain": [0.56, 1],
            "anchor": "y2",
            "range": [0, max(float(right.layout.xaxis.range[1]), 1e-6)],
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
    figure.add_shape(
        type="rect",
        x0=position - 0.5,
        x1=position + 0.5,
        y0=-0.5,
        y1=len(names) - 0.5,
        line={"color": theme.OUTLINE, "width": 2},
    )
    return _titled(figure, "", titles[0], titles[1])


def states(cosines: ArrayLike, names: Sequence[str], title: str) -> Figure:
    """Return the cosine of every state with every other, [name, name], as a square."""
    figure = theme.heatmap(cosines, names, names, kind="signed", limit=1.0, height=min(240 + 16 * len(names), 820))
    _titled(figure, "", "", title)
    figure.update_xaxes(tickangle=-90)
    return figure


def additions(norms: ArrayLike, names: Sequence[str], title: str) -> Figure:
    """Return how long a vector each attention and each MLP added at one position; the two kinds differ in colour."""
    colours = [ATTENTION if ".attn." in name else MLP for name in names]
    return _titled(theme.bars(norms, names, kind="amount", colours=colours), "", title)


def units(post: ArrayLike, indices: Sequence[int], title: str) -> Figure:
    """Return the most active MLP units as bars, labelled by their index in d_mlp."""
    return roomy(_titled(theme.bars(post, [f"#{index}" for index in indices], kind="signed"), "", title))


def tensor(matrix: ArrayLike, rows: Sequence[str], columns: Sequence[str], axes: tuple[str, str], name: str) -> Figure:
    """Return a slice of a traced tensor; entries that are not finite are grey.

    Args:
        matrix: [row, column].
        rows, columns: labels.
        axes: what rows and columns are.
        name: the tensor's name, which decides the scale: patterns are probabilities, scales amounts, all else signed.
    """
    values = np.asarray(matrix, dtype=np.float64)
    kind: theme.Kind = "signed"
    if name.endswith(".pattern"):
        kind = "probability"
    elif name.endswith(".scale"):
        kind = "amount"
    figure = theme.heatmap(
        values, rows, columns, kind=kind, masked=~np.isfinite(values), height=min(max(240, 130 + 22 * len(rows)), 640)
    )
    return _titled(figure, axes[0], axes[1], name.rsplit(".", 1)[-1])


def roomy(figure: Figure) -> Figure:
    """Give bars that point left more room for the numbers at their ends, which a narrow screen needs."""
    low, high = figure.layout.xaxis.range
    if low < 0:
        figure.update_xaxes(range=[low - 0.12 * (high - low), high])
    return figure


def tilt(figure: Figure) -> Figure:
    """Lay token labels along x flat while they fit, else at an angle, and keep the title below flat ones.

    Plotly moves a title out of the way only where it meets a label, not where it falls between two; the distance it
    would take (standoff) is not kept on the page, so a flat axis gets a title that begins one line lower.
    """
    labels, title = figure.layout.xaxis.ticktext or (), figure.layout.xaxis.title.text
    if all(len(label) <= 3 for label in labels):
        return figure
    if sum(map(len, labels)) <= 40:
        figure.update_xaxes(tickangle=0, title_text=f"<br>{title}" if title else "")
    else:
        figure.update_xaxes(tickangle=-40 if len(labels) <= 12 else -90)
    return figure


def _titled(figure: Figure, y: str, x: str, value: str = "") -> Figure:
    """Set titles, which are the page's own words and keep their spaces."""
    figure.update_layout(xaxis_title_text=x, yaxis_title_text=y)
    if value:
        figure.data[-1].colorbar.title.text = value
    return tilt(figure)
