"""Figures of the embedding page. Titles are the page's own words; labels of tokens are made literal here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

_N_BINS = 81
_MOST_TICKS = 12  # on the axis of dimensions


def rows(
    values: ArrayLike, labels: Sequence[str], *, chosen: int, limit: float, titles: tuple[str, str, str]
) -> Figure:
    """Return vectors as the rows of a heat map, [row, dimension], with one row outlined.

    Args:
        values: [row, dimension].
        labels: one per row.
        chosen: index of the row to outline.
        limit: the end of the colour scale, the same for figures that are compared.
        titles: of the rows, the dimensions and the values.
    """
    values = np.asarray(values)
    width = values.shape[1]
    height = 140 + 24 * len(values)
    figure = theme.heatmap(values, labels, list(map(str, range(width))), kind="signed", limit=limit, height=height)
    _titled(figure, y=titles[0], x=titles[1])
    ticks = list(range(0, width, 16 * math.ceil(width / (16 * _MOST_TICKS))))
    figure.update_xaxes(tickvals=ticks, ticktext=list(map(str, ticks)))
    figure.update_traces(colorbar_title_text=titles[2])
    theme.outline_row(figure, chosen)
    return figure


def one_hot(
    ids: Sequence[int], labels: Sequence[str], *, vocab_size: int, chosen: int, titles: tuple[str, str]
) -> Figure:
    """Return where the ones stand in a one-hot matrix [S, vocab_size]: one in each row, at the token's id.

    Args:
        ids: the tokens' ids.
        labels: one per position.
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
) -> Figure:
    """Return likenesses as bars, the highest on top; `title` says which, the rest is as in `theme.bars`."""
    colours = [theme.CATEGORICAL[0]] * len(labels)
    figure = theme.bars(scores, labels, kind="signed", removed=removed, chosen=chosen, colours=colours)
    low, high = figure.layout.xaxis.range  # two of these stand side by side, and the numbers need their room
    figure.update_layout(margin_t=8, xaxis_range=[low, high + 0.12 * (high - low)])
    return _titled(figure, x=title)


def forming(
    steps: Sequence[int], series: Mapping[str, Sequence[float]], *, now: int, titles: tuple[str, str]
) -> Figure:
    """Return cosines over training, one line per token.

    Args:
        steps: of the snapshots, which are spaced evenly.
        series: a token's label -> one cosine per snapshot.
        now: which of the steps to mark.
        titles: of the steps and the cosines.
    """
    figure = theme.lines([f"{step:,}" for step in steps], series, height=360)
    figure.update_traces(mode="lines+markers")
    figure.update_xaxes(type="category")
    figure.add_vline(x=list(steps).index(now), line={"color": theme.OUTLINE, "width": 1.5, "dash": "dot"})
    return _titled(figure, x=titles[0], y=titles[1])


def entries(tables: Mapping[str, ArrayLike], *, init_std: float, init_name: str, titles: tuple[str, str]) -> Figure:
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


def small_map(
    coordinates: ArrayLike, labels: Sequence[str], *, marked: Sequence[int], titles: tuple[str, str]
) -> Figure:
    """Return points in two dimensions, small enough to stand beside others, some of them marked.

    Args:
        coordinates: [N, 2].
        labels: one per point.
        marked: indices of points to ring; the first of them is outlined and named.
        titles: of the axes.
    """
    x, y = np.asarray(coordinates, dtype=np.float64).T
    marked = list(marked)
    figure = theme.base_figure(300)
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        marker={"size": 4, "color": theme.CATEGORICAL[0], "opacity": 0.4},
        customdata=[plotly_literal(label) for label in labels],
        hovertemplate="%{customdata}<br>%{x:.6g}<br>%{y:.6g}<extra></extra>",
        showlegend=False,
    )
    figure.add_scatter(
        x=x[marked],
        y=y[marked],
        mode="markers+text",
        text=[f"<b>{plotly_literal(labels[index])}</b>" for index in marked[:1]] + [""] * (len(marked) - 1),
        textposition="top center",
        marker={
            "symbol": "circle-open",
            "size": [13] + [9] * (len(marked) - 1),
            "color": [theme.OUTLINE] + [theme.REMOVED] * (len(marked) - 1),
            "line": {"width": 2},
        },
        hoverinfo="skip",
        cliponaxis=False,
        showlegend=False,
    )
    for update in figure.update_xaxes, figure.update_yaxes:
        update(showgrid=True, gridcolor=theme.GRID, nticks=5)
    figure.update_yaxes(scaleanchor="x", scaleratio=1)
    figure.update_layout(margin_t=8)
    return _titled(figure, x=titles[0], y=titles[1])


def cosines(tables: Mapping[str, ArrayLike], *, titles: tuple[str, str]) -> Figure:
    """Return how the cosines between pairs of rows are distributed, one line per table, in the same bins.

    Args:
        tables: name -> cosines of its pairs.
        titles: of the cosine and of the share of pairs.
    """
    edges = np.linspace(-1, 1, _N_BINS + 1)
    shares = {name: np.histogram(values, edges)[0] / np.size(values) for name, values in tables.items()}
    figure = theme.lines((edges[:-1] + edges[1:]) / 2, shares, percent=True, height=320)
    return _titled(figure, x=titles[0], y=titles[1])


def by_layer(places: Sequence[str], cosines: Sequence[float], *, title: str) -> Figure:
    """Return cosines from the table to the last hidden state as a line, with exact numbers on hover."""
    figure = theme.lines(list(places), {title: cosines}, height=400)
    if len(cosines) <= 12:  # beyond that the numbers would lie over one another; hovering has them
        numbers = [f"{value:.3f}" for value in cosines]
        figure.update_traces(mode="lines+markers+text", text=numbers, textposition="top center")
    else:
        figure.update_traces(mode="lines+markers")
    figure.update_xaxes(type="category")
    figure.update_yaxes(range=[min(0.0, *cosines) - 0.08, 1.12])
    return _titled(figure, y=title)


def _titled(figure: Figure, *, x: str = "", y: str = "") -> Figure:
    figure.update_layout(xaxis_title_text=x, yaxis_title_text=y)
    return figure
