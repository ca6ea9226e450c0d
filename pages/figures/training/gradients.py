"""One step of gradient descent, and the two parts of the gradient of an embedding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

INPUT_SIDE, OUTPUT_SIDE = theme.CATEGORICAL[0], theme.CATEGORICAL[1]
MAX_POINTS = 2000  # rows drawn of a large vocabulary
_FAINT = "rgba(138, 143, 152, 0.5)"


def loss_along(
    etas: ArrayLike,
    losses: ArrayLike,
    squared_norm: float,
    chosen: tuple[float, float],
    *,
    names: tuple[str, str],
    titles: tuple[str, str],
) -> Figure:
    """Return the loss after one step over the step's size eta, beside the first-order line L - eta |g|^2.

    Args:
        etas: sizes, from 0.
        losses: the loss after each; the first is L.
        squared_norm: |g|^2.
        chosen: the chosen eta and the loss after it.
        names: of the measured curve and of the line.
        titles: of the axes.
    """
    etas, losses = np.asarray(etas, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    line = losses[0] - etas * squared_norm
    figure = theme.lines(etas, {names[0]: losses, names[1]: line}, x_title=titles[0], y_title=titles[1], height=400)
    figure.data[0].update(mode="lines+markers", marker={"size": 5}, line={"shape": "spline"})
    figure.data[1].line.update(dash="dash", color=_FAINT)
    figure.add_hline(y=losses[0], line={"color": _FAINT, "width": 1})
    figure.add_scatter(
        x=[chosen[0]],
        y=[chosen[1]],
        mode="markers",
        marker={"size": 12, "color": "rgba(0, 0, 0, 0)", "line": {"color": theme.OUTLINE, "width": 2.5}},
        hoverinfo="skip",
        showlegend=False,
    )
    top, bottom = float(max(losses.max(), losses[0])), min(0.0, float(losses.min()))
    figure.update_yaxes(range=[bottom - 0.03 * (top - bottom), top + 0.06 * (top - bottom)])
    figure.update_xaxes(exponentformat="power")
    return figure


def moves(lengths: Sequence[float], names: Sequence[str], title: str) -> Figure:
    """Return the size of each part's update, as bars: three digits each, however small."""
    figure = theme.bars(lengths, names, kind="amount", value_title=title)
    figure.data[0].text = [f"{length:.3g}" for length in lengths]
    figure.update_xaxes(exponentformat="power")
    return figure


def step_sizes(
    etas: ArrayLike, losses: ArrayLike, start: float, chosen: float, *, x_title: str, y_title: str
) -> Figure:
    """Return the loss after one step over eta on a logarithmic axis, up to twice `start`, the loss without a step."""
    etas = np.asarray(etas, dtype=np.float64)
    figure = theme.base_figure(260, x_title=x_title, y_title=y_title)
    figure.add_scatter(
        x=etas,
        y=np.asarray(losses),
        mode="lines+markers",
        marker={"size": 4},
        line={"color": theme.CATEGORICAL[0], "width": 2},
        hovertemplate="η %{x:.4g}<br><b>%{y:.6f}</b><extra></extra>",
    )
    for x, y, colour in (
        ([etas[0], etas[-1]], [start, start], _FAINT),
        ([chosen, chosen], [0, 2 * start], theme.OUTLINE),
    ):
        figure.add_scatter(x=x, y=y, mode="lines", line={"color": colour, "width": 1}, hoverinfo="skip")
    figure.update_layout(showlegend=False)
    figure.update_xaxes(type="log", nticks=7, exponentformat="power")
    figure.update_yaxes(showgrid=True, gridcolor=theme.GRID, range=[0, 2 * start])
    return figure


def two_sides(
    labels: Sequence[str], first: ArrayLike, second: ArrayLike, names: tuple[str, str], value_title: str
) -> Figure:
    """Return the norms of the two parts of some rows' gradient as pairs of bars."""
    figure = theme.base_figure(110 + 32 * len(labels), x_title=value_title)
    for name, values, colour in zip(names, (first, second), (INPUT_SIDE, OUTPUT_SIDE), strict=True):
        figure.add_bar(
            x=np.asarray(values),
            y=np.arange(len(labels)),
            orientation="h",
            name=plotly_literal(name),
            marker={"color": colour},
            customdata=[plotly_literal(label) for label in labels],
            hovertemplate="%{customdata}<br><b>%{x:.6g}</b>",
        )
    figure.update_layout(barmode="group", bargap=0.25, legend={"traceorder": "normal"})
    figure.update_xaxes(showgrid=True, gridcolor=theme.GRID, rangemode="tozero")
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(labels))),
        ticktext=[plotly_literal(label) for label in labels],
        autorange="reversed",
    )
    return figure


def all_rows(
    first: ArrayLike,
    second: ArrayLike,
    label: Callable[[int], str],
    names: tuple[str, str],
    *,
    x_title: str,
    y_title: str,
) -> Figure:
    """Return the norm of every row's two parts, rows sorted by the second; a part that is 0 has no point.

    Args:
        first, second: norms [V] of the input side and of the output side.
        label: gives a row's label.
        names: of the two parts.
        x_title, y_title: labels.
    """
    first, second = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    order = np.argsort(-second, kind="stable")
    ranks = np.arange(len(order))
    # Of a large vocabulary every n-th row, and all that the lookup reached.
    drawn = (ranks % -(-len(order) // MAX_POINTS) == 0) | (first[order] > 0)
    order, ranks = order[drawn], ranks[drawn]
    figure = theme.base_figure(340, x_title=x_title, y_title=y_title)
    for name, values, colour, size in (
        (names[1], second, OUTPUT_SIDE, 3),
        (names[0], first, INPUT_SIDE, 9),
    ):
        sorted_values = values[order]
        present = sorted_values > 0
        figure.add_scatter(
            x=ranks[present],
            y=sorted_values[present],
            mode="markers",
            name=plotly_literal(name),
            marker={"color": colour, "size": size},
            customdata=[plotly_literal(label(row)) for row in order[present].tolist()],
            hovertemplate="%{customdata}<br><b>%{y:.4g}</b>",
        )
    figure.update_yaxes(type="log", showgrid=True, gridcolor=theme.GRID, nticks=6, exponentformat="power")
    return figure


def over_training(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    looks: Sequence[tuple[str, str]],
    *,
    x_title: str,
    y_title: str,
    signed: bool = False,
) -> Figure:
    """Return quantities over the steps of a training.

    Args:
        series: name -> (steps, values); a NaN leaves a gap.
        looks: colour and dash of each.
        x_title, y_title: labels.
        signed: values are cosines: the axis goes through 0 and is centred on it.
    """
    figure = theme.base_figure(320, x_title=x_title, y_title=y_title)
    for (name, (steps, values)), (colour, dash) in zip(series.items(), looks, strict=True):
        figure.add_scatter(
            x=np.asarray(steps),
            y=np.asarray(values, dtype=np.float64),
            mode="lines+markers",
            marker={"size": 4},
            line={"color": colour, "width": 2, "dash": dash},
            name=plotly_literal(name),
            hovertemplate="%{y:.5g}",
        )
    figure.update_layout(hovermode="x unified", showlegend=True)
    figure.update_yaxes(showgrid=True, gridcolor=theme.GRID)
    if signed:
        values = np.concatenate([np.asarray(values, dtype=np.float64) for _steps, values in series.values()])
        limit = 1.1 * max(np.nanmax(np.abs(values), initial=0.0), 0.1)
        figure.update_yaxes(range=[-limit, limit], zeroline=True, zerolinecolor=theme.GRID, zerolinewidth=2)
    else:
        figure.update_yaxes(rangemode="tozero")
    return figure


def touched(counts: ArrayLike, n_rows: int, *, names: tuple[str, str], x_title: str, y_title: str) -> Figure:
    """Return the share of rows with a gradient over the tokens read: through the lookup, and through the head, all."""
    counts = np.asarray(counts)
    figure = theme.lines(
        np.arange(1, len(counts) + 1),
        {names[0]: counts / n_rows, names[1]: np.ones(len(counts))},
        x_title=x_title,
        y_title=y_title,
        colours=(INPUT_SIDE, OUTPUT_SIDE),
        height=280,
    )
    figure.update_traces(hovertemplate="%{y:.2%}")
    figure.update_yaxes(range=[0, 1.06], tickformat=".0%")
    return figure
