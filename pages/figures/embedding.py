"""Figures of the embedding page. Titles are the page's own words; labels of tokens are made literal here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme

_N_BINS = 81
_TICK_EVERY = 16  # dimensions


def rows(
    values: ArrayLike, labels: Sequence[str], *, chosen: int, limit: float, titles: tuple[str, str, str]
) -> go.Figure:
    """Return vectors as the rows of a heat map, [row, dimension], with one row outlined.

    Args:
        values: [row, dimension].
        labels: one a row.
        chosen: index of the row to outline.
        limit: the end of the colour scale, the same for figures that are compared.
        titles: of the rows, the dimensions and the values.
    """
    values = np.asarray(values)
    width = values.shape[1]
    height = 140 + 24 * len(values)
    figure = theme.heatmap(values, labels, list(map(str, range(width))), kind="signed", limit=limit, height=height)
    _titled(figure, y=titles[0], x=titles[1])
    ticks = list(range(0, width, _TICK_EVERY))
    figure.update_xaxes(tickvals=ticks, ticktext=list(map(str, ticks)))
    figure.update_traces(colorbar_title_text=titles[2])
    figure.add_shape(
        type="rect",
        x0=-0.5,
        x1=width - 0.5,
        y0=chosen - 0.5,
        y1=chosen + 0.5,
        line={"color": theme.OUTLINE, "width": 2.5},
    )
    return figure


def one_hot(
    ids: Sequence[int], labels: Sequence[str], *, vocab_size: int, chosen: int, titles: tuple[str, str]
) -> go.Figure:
    """Return where the ones stand in a one-hot matrix [S, vocab_size]: one in each row, at the token's id.

    Args:
        ids: the tokens' ids.
        labels: one a position.
        vocab_size: number of columns.
        chosen: position to outline.
        titles: of the rows and the columns.
    """
    figure = theme.base_figure(90 + 24 * len(ids))
    figure.add_scatter(
        x=list(ids),
        y=list(range(len(ids))),
        mode="markers+text",
        text=[f"{token}" for token in ids],
        textposition=["middle right" if token < 0.8 * vocab_size else "middle left" for token in ids],
        customdata=[plotly_literal(label) for label in labels],
        hovertemplate="%{customdata}<br><b>1</b> · %{x}<extra></extra>",
        marker={
            "symbol": "square",
            "size": 11,
            "color": [theme.position_colour(position) for position in range(len(ids))],
            "line": {"color": theme.OUTLINE, "width": [2.5 if place == chosen else 0 for place in range(len(ids))]},
        },
        showlegend=False,
    )
    figure.update_yaxes(
        tickvals=list(range(len(ids))),
        ticktext=[plotly_literal(label) for label in labels],
        range=[len(ids) - 0.4, -0.6],
        showgrid=True,
        gridcolor=theme.GRID,
    )
    figure.update_xaxes(range=[-0.01 * vocab_size, 1.01 * vocab_size])
    figure.update_layout(margin_t=8)
    return _titled(figure, y=titles[0], x=titles[1])


def ranked(
    scores: ArrayLike,
    labels: Sequence[str],
    *,
    title: str,
    removed: Sequence[bool] | None = None,
    chosen: int | None = None,
) -> go.Figure:
    """Return likenesses as bars, the highest on top; `title` says which, the rest is as in `theme.bars`."""
    colours = [theme.CATEGORICAL[0]] * len(labels)
    figure = theme.bars(scores, labels, kind="signed", removed=removed, chosen=chosen, colours=colours)
    figure.update_layout(margin_t=8)
    return _titled(figure, x=title)


def forming(
    steps: Sequence[int], series: Mapping[str, Sequence[float]], *, now: int, titles: tuple[str, str]
) -> go.Figure:
    """Return cosines over training, one line a token.

    Args:
        steps: of the snapshots, which are spaced evenly.
        series: a token's label -> one cosine a snapshot.
        now: which of the steps to mark.
        titles: of the steps and the cosines.
    """
    figure = theme.lines([f"{step:,}" for step in steps], series, height=360)
    figure.update_traces(mode="lines+markers")
    figure.update_xaxes(type="category")
    figure.add_vline(x=list(steps).index(now), line={"color": theme.OUTLINE, "width": 1.5, "dash": "dot"})
    return _titled(figure, x=titles[0], y=titles[1])


def entries(tables: Mapping[str, ArrayLike], *, init_std: float, init_name: str, titles: tuple[str, str]) -> go.Figure:
    """Return how the numbers of several tables are distributed, beside the normal distribution they begin with.

    All share the same bins; a value is the share of a table's numbers in a bin.
    """
    arrays = [np.asarray(values, dtype=np.float64).ravel() for values in tables.values()]
    end = max(float(np.abs(values).max(initial=0.0)) for values in arrays) or 1.0
    edges = np.linspace(-end, end, _N_BINS + 1)
    below = np.array([0.5 * (1 + math.erf(edge / (init_std * math.sqrt(2)))) for edge in edges])
    shares = [np.histogram(values, edges)[0] / values.size for values in arrays] + [np.diff(below)]
    names = [*tables, init_name]
    figure = theme.lines((edges[:-1] + edges[1:]) / 2, dict(zip(names, shares, strict=True)), percent=True, height=320)
    for trace, name in zip(figure.data, names, strict=True):
        trace.name = name
    figure.data[-1].line.update(color=theme.REMOVED, dash="dot")
    return _titled(figure, x=titles[0], y=titles[1])


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
    places = np.asarray(coordinates, dtype=np.float64)
    n_axes = places.shape[1]
    size = {2: 7, 3: 4}[n_axes]
    names = np.array([plotly_literal(label) for label in labels], dtype=object)
    figure = theme.base_figure(660)
    hover = "<br>".join(["%{customdata}", *(f"%{{{axis}:.6g}}" for axis in "xyz"[:n_axes])]) + "<extra></extra>"

    def add(which: Sequence[int] | np.ndarray, **style: object) -> None:
        at = dict(zip("xyz", places[which].T, strict=False))
        kind = figure.add_scatter if n_axes == 2 else figure.add_scatter3d
        kind(**at, customdata=names[which], hovertemplate=hover, **style)

    if groups is None:
        bar = {"title": {"text": amount_title, "side": "right"}, "thickness": 8, "outlinewidth": 0}
        style = {"color": np.asarray(amounts), "colorscale": "Viridis", "cmin": 0.0, "colorbar": bar, "size": size}
        add(np.arange(len(places)), mode="markers", marker=style, showlegend=False)
    else:
        for colour, group in zip(theme.CATEGORICAL, group_order, strict=False):
            members = np.flatnonzero(np.array(groups, dtype=object) == group)
            if members.size:
                add(members, mode="markers", marker={"color": colour, "size": size, "opacity": 0.6}, name=group)
    named = {"mode": "markers+text"}
    ring = {"symbol": "circle-open", "line": {"width": 2}}
    near = list(near)
    sides = ("top center", "bottom center", "middle right", "middle left")  # in turn, so that fewer names collide
    around = [sides[place % 4] for place in range(len(near))]
    grey = {**ring, "size": size + 5, "color": theme.REMOVED}
    add(near, text=names[near], textposition=around, marker=grey, name=near_name, **named)
    outlined = {**ring, "size": size + 8, "color": theme.OUTLINE}
    bold = f"<b>{names[chosen]}</b>"
    add([chosen], text=[bold], textposition="top center", marker=outlined, name=names[chosen], **named)

    titles = {f"{name}axis_title_text": title for name, title in zip("xyz", axes, strict=False)}
    if n_axes == 3:
        figure.update_layout(
            scene={**titles, "aspectmode": "data", "bgcolor": "rgba(0, 0, 0, 0)"}, dragmode="turntable"
        )
    else:
        figure.update_layout(**titles, dragmode="pan")
        for update in figure.update_xaxes, figure.update_yaxes:
            update(showgrid=True, gridcolor=theme.GRID, zeroline=True, zerolinecolor=theme.GRID)
        figure.update_yaxes(scaleanchor="x", scaleratio=1)  # distances are alike in every direction
    return figure


def by_layer(places: Sequence[str], cosines: Sequence[float], *, title: str) -> go.Figure:
    """Return cosines from the table to the last hidden state as a line, with exact numbers on hover."""
    figure = theme.lines(list(places), {title: cosines}, height=400)
    numbers = [f"{value:.3f}" for value in cosines]
    figure.update_traces(mode="lines+markers+text", text=numbers, textposition="top center")
    figure.update_xaxes(type="category")
    figure.update_yaxes(range=[min(0.0, *cosines) - 0.08, 1.12])
    return _titled(figure, y=title)


def _titled(figure: go.Figure, *, x: str = "", y: str = "") -> go.Figure:
    figure.update_layout(xaxis_title_text=x, yaxis_title_text=y)
    return figure
