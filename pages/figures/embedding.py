"""Figures of the embedding page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme

_N_BINS = 81


def rows(
    values: ArrayLike,
    labels: Sequence[str],
    *,
    chosen: int,
    limit: float,
    row_title: str,
    column_title: str,
    value_title: str,
) -> go.Figure:
    """Return vectors as the rows of a heat map, [row, dimension], with one row outlined.

    `limit` is the end of the colour scale, the same for figures that are compared.
    """
    values = np.asarray(values)
    figure = theme.heatmap(
        values,
        labels,
        [str(dimension) for dimension in range(values.shape[1])],
        kind="signed",
        limit=limit,
        row_title=row_title,
        column_title=column_title,
        value_title=value_title,
    )
    figure.add_shape(
        type="rect",
        x0=-0.5,
        x1=values.shape[1] - 0.5,
        y0=chosen - 0.5,
        y1=chosen + 0.5,
        line={"color": theme.OUTLINE, "width": 2.5},
    )
    return figure


def ranked(
    scores: ArrayLike,
    labels: Sequence[str],
    *,
    value_title: str,
    removed: Sequence[bool] | None = None,
    chosen: int | None = None,
) -> go.Figure:
    """Return likenesses as bars, the highest on top; see `theme.bars`."""
    return theme.bars(
        scores,
        labels,
        kind="signed",
        value_title=value_title,
        removed=removed,
        chosen=chosen,
        colours=[theme.CATEGORICAL[0]] * len(labels),
    )


def forming(
    steps: Sequence[int],
    series: Mapping[str, Sequence[float]],
    *,
    now: int,
    x_title: str,
    y_title: str,
) -> go.Figure:
    """Return cosines over training, one line a token; the snapshots are spaced evenly, and `now` is marked."""
    figure = theme.lines([f"{step:,}" for step in steps], series, x_title=x_title, y_title=y_title, height=360)
    figure.update_traces(mode="lines+markers")
    figure.update_xaxes(type="category")
    figure.add_vline(x=list(steps).index(now), line={"color": theme.OUTLINE, "width": 1.5, "dash": "dot"})
    return figure


def entries(
    tables: Mapping[str, ArrayLike], *, init_std: float, init_name: str, x_title: str, y_title: str
) -> go.Figure:
    """Return how the numbers of several tables are distributed, beside the normal distribution that initialises them.

    All share the same bins; a value is the share of a table's numbers in a bin.
    """
    arrays = {name: np.asarray(values, dtype=np.float64).ravel() for name, values in tables.items()}
    end = max(float(np.abs(values).max(initial=0.0)) for values in arrays.values()) or 1.0
    edges = np.linspace(-end, end, _N_BINS + 1)
    shares = {name: np.histogram(values, edges)[0] / values.size for name, values in arrays.items()}
    below = np.array([0.5 * (1 + math.erf(edge / (init_std * math.sqrt(2)))) for edge in edges])
    figure = theme.lines(
        (edges[:-1] + edges[1:]) / 2,
        {**shares, init_name: np.diff(below)},
        x_title=x_title,
        y_title=y_title,
        percent=True,
    )
    figure.data[-1].line.update(color=theme.REMOVED, dash="dot")
    return figure


def points(
    coordinates: ArrayLike,
    labels: Sequence[str],
    *,
    axes: Sequence[str],
    groups: Sequence[str] | None,
    group_order: Sequence[str],
    amounts: ArrayLike,
    amount_title: str,
    chosen: int,
    near: Sequence[int],
    near_name: str,
) -> go.Figure:
    """Return the rows of a table as points in 2-D or 3-D, with exact coordinates on hover.

    Args:
        coordinates: [N, 2] or [N, 3].
        labels: one a point.
        axes: a title for each axis.
        groups: one a point, which gives its colour; None colours by `amounts` instead.
        group_order: the groups in the order of colours, the same whichever of them are there.
        amounts, amount_title: one number a point, and what it is.
        chosen: index of the point to mark, with its name.
        near: indices of points to name.
        near_name: what they are.
    """
    xyz = np.asarray(coordinates, dtype=np.float64)
    amounts = np.asarray(amounts, dtype=np.float64)
    figure = theme.base_figure(640)
    add = figure.add_scatter3d if xyz.shape[1] == 3 else figure.add_scatter
    size = 3 if xyz.shape[1] == 3 else 6
    names = np.array([plotly_literal(label) for label in labels], dtype=object)
    hover = "%{customdata}<br>" + "<br>".join(f"%{{{axis}:.6g}}" for axis in "xyz"[: xyz.shape[1]]) + "<extra></extra>"

    def trace(which: np.ndarray, **style: object) -> None:
        place = dict(zip("xyz", xyz[which].T, strict=False))
        add(**place, customdata=names[which], hovertemplate=hover, **style)

    if groups is None:
        bar = {"title": {"text": plotly_literal(amount_title)}, "thickness": 8, "outlinewidth": 0}
        scale = {"color": amounts, "colorscale": "Viridis", "cmin": 0.0, "colorbar": bar, "size": size}
        trace(np.arange(len(xyz)), mode="markers", marker=scale, showlegend=False)
    else:
        for colour, group in zip(theme.CATEGORICAL, group_order, strict=False):
            which = np.array([index for index, name in enumerate(groups) if name == group], dtype=int)
            if which.size:
                marker = {"color": colour, "size": size, "opacity": 0.55}
                trace(which, mode="markers", marker=marker, name=plotly_literal(group))
    ring = {"symbol": "circle-open", "line": {"width": 2}}
    trace(
        np.array(near, dtype=int),
        mode="markers+text",
        text=names[list(near)],
        textposition="top center",
        marker={**ring, "size": size + 5, "color": theme.REMOVED},
        name=plotly_literal(near_name),
    )
    trace(
        np.array([chosen]),
        mode="markers+text",
        text=[f"<b>{names[chosen]}</b>"],
        textposition="top center",
        marker={**ring, "size": size + 8, "color": theme.OUTLINE},
        name=names[chosen],
    )
    texts = [{"title": {"text": plotly_literal(title)}} for title in axes]
    titles = dict(zip(("xaxis", "yaxis", "zaxis"), texts, strict=False))
    if xyz.shape[1] == 3:
        figure.update_layout(scene={**titles, "aspectmode": "data"}, dragmode="turntable")
        figure.update_scenes(bgcolor="rgba(0, 0, 0, 0)")
    else:
        figure.update_layout(**titles, dragmode="pan")
        figure.update_xaxes(showgrid=True, gridcolor=theme.GRID, zeroline=True, zerolinecolor=theme.GRID)
        figure.update_yaxes(showgrid=True, gridcolor=theme.GRID, zeroline=True, zerolinecolor=theme.GRID)
        figure.update_yaxes(scaleanchor="x", scaleratio=1)  # distances on the map are alike in every direction
    return figure


def by_layer(places: Sequence[str], cosines: Sequence[float], *, y_title: str) -> go.Figure:
    """Return cosines from the table to the last hidden state as a line, with exact numbers on hover."""
    figure = theme.lines(list(places), {y_title: cosines}, y_title=y_title, height=400)
    numbers = [f"{value:.3f}" for value in cosines]
    figure.update_traces(mode="lines+markers+text", text=numbers, textposition="top center")
    figure.update_xaxes(type="category")
    low = min(0.0, *cosines)
    figure.update_yaxes(range=[low - 0.08, 1.12])
    return figure
