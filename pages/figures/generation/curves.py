"""Curves and bars of the generation page: time and memory, probabilities along a text, measures of several texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure


def against_length(
    lengths: Sequence[int],
    series: Mapping[str, Sequence[float]],
    *,
    x_title: str,
    y_title: str,
    unit: str,
) -> Figure:
    """Return amounts from 0 against the length of a text, one line per name, a marker where it was measured.

    Args:
        lengths: in tokens.
        series: name -> an amount for each length.
        x_title, y_title: the axes' titles.
        unit: what an amount is counted in, for the hover.
    """
    figure = theme.base_figure(340, x_title=x_title, y_title=y_title)
    for (name, amounts), colour in zip(series.items(), theme.CATEGORICAL, strict=False):
        figure.add_scatter(
            x=list(lengths),
            y=np.asarray(amounts, dtype=np.float64),
            name=plotly_literal(name),
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"size": 5},
            hovertemplate="%{y:.4g} " + plotly_literal(unit),
        )
    figure.update_layout(hovermode="x unified", showlegend=len(series) > 1)
    figure.update_yaxes(rangemode="tozero", showgrid=True, gridcolor=theme.GRID)
    if len(lengths) <= 10:
        figure.update_xaxes(tickvals=list(lengths))
    return figure


def log_probs_along(
    labels: Sequence[str], series: Mapping[str, Sequence[float]], *, x_title: str, y_title: str
) -> Figure:
    """Return log-probabilities of a text's tokens, one line per name; a token that was removed interrupts its line.

    Args:
        labels: the tokens, plain text.
        series: name -> ln P for each token; -inf where it could not be drawn.
        x_title, y_title: the axes' titles.
    """
    figure = theme.base_figure(340, x_title=x_title, y_title=y_title)
    literal = [plotly_literal(label) for label in labels]
    for (name, values), colour in zip(series.items(), theme.CATEGORICAL, strict=False):
        amounts = np.asarray(values, dtype=np.float64)
        figure.add_scatter(
            x=list(range(1, len(labels) + 1)),
            y=np.where(np.isfinite(amounts), amounts, np.nan),
            name=plotly_literal(name),
            mode="lines+markers",
            line={"color": colour, "width": 2},
            marker={"size": 5},
            customdata=literal,
            hovertemplate="%{customdata}: %{y:.4f}",
        )
    figure.update_layout(hovermode="x unified")
    figure.update_yaxes(rangemode="tozero", showgrid=True, gridcolor=theme.GRID)
    return figure


def along_text(
    probs: Sequence[float],
    hints: Sequence[str],
    rounds: Sequence[tuple[int, int]],
    *,
    x_title: str,
    y_title: str,
) -> Figure:
    """Return the probability of each token of a text, the rounds of a circle shaded in turn.

    Args:
        probs: one probability per token.
        hints: what to say of each on hover, as plain text.
        rounds: first token and the one after the last of each round.
        x_title, y_title: the axes' titles.
    """
    figure = theme.base_figure(340, x_title=x_title, y_title=y_title)
    for number, (start, stop) in enumerate(rounds):
        fill = "rgba(213, 94, 0, 0.18)" if number % 2 == 0 else "rgba(213, 94, 0, 0.07)"
        figure.add_vrect(x0=start - 0.5, x1=stop - 0.5, fillcolor=fill, line_width=0, layer="below")
    figure.add_scatter(
        x=list(range(len(probs))),
        y=np.asarray(probs, dtype=np.float64),
        mode="lines+markers",
        line={"color": theme.CATEGORICAL[0], "width": 2},
        marker={"size": 6},
        customdata=[plotly_literal(hint) for hint in hints],
        hovertemplate="%{customdata}<br><b>%{y:.6g}</b><extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(range=[0, 1.04], tickformat=theme.PERCENT, showgrid=True, gridcolor=theme.GRID)
    return figure


def measures(values: Mapping[str, Sequence[float | None]], names: Sequence[str], *, y_title: str) -> Figure:
    """Return numbers from 0 to 1 as groups of bars.

    Args:
        values: measure -> one number for each of the names; None where it is not defined.
        names: what is compared, at most as many as there are colours.
        y_title: the axis' title.
    """
    figure = theme.base_figure(320, y_title=y_title)
    for index, name in enumerate(names):
        heights = [row[index] for row in values.values()]
        figure.add_bar(
            x=[plotly_literal(measure) for measure in values],
            y=heights,
            name=plotly_literal(name),
            text=["–" if height is None else f"{height:.3f}" for height in heights],
            textposition="outside",
            cliponaxis=False,
            marker={"color": theme.CATEGORICAL[index]},
            hovertemplate="%{x}: <b>%{y:.6g}</b><extra>%{fullData.name}</extra>",
        )
    figure.update_layout(barmode="group", showlegend=True)
    figure.update_yaxes(range=[0, 1.12], tickvals=[0, 0.25, 0.5, 0.75, 1], showgrid=True, gridcolor=theme.GRID)
    return figure
