"""RoPE scaling as pictures: what is kept of each frequency, angles and scores beyond the trained length."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

COLOURS = {
    "linear": theme.CATEGORICAL[1],
    "ntk": theme.CATEGORICAL[2],
    "yarn": theme.CATEGORICAL[3],
    "llama3": theme.CATEGORICAL[4],
}
PLAIN = theme.CATEGORICAL[0]
_FAINT = "rgba(138, 143, 152, 0.7)"


def by_pair(
    values: Mapping[str, ArrayLike],
    colours: Mapping[str, str],
    chosen: str,
    pair: int | None,
    *,
    x_title: str,
    y_title: str,
    logarithmic: bool,
) -> Figure:
    """Return one number for each pair of dimensions under several scalings, the chosen one drawn thick.

    Args:
        values: name -> [pair].
        colours: name -> colour.
        chosen: the name to draw thick.
        pair: the pair to mark, if any.
        x_title, y_title: what the axes mean, with units.
        logarithmic: whether the vertical axis is.
    """
    figure = theme.base_figure(340, x_title=x_title, y_title=y_title)
    for name, line in values.items():
        figure.add_scatter(
            x=np.arange(len(np.asarray(line))),
            y=np.asarray(line, dtype=np.float64),
            name=plotly_literal(name),
            mode="lines+markers",
            line={"color": colours[name], "width": 3 if name == chosen else 1.5},
            marker={"size": 5 if name == chosen else 3},
            hovertemplate="%{y:.6g}",
        )
    if pair is not None:
        figure.add_vline(x=pair, line={"color": theme.OUTLINE, "width": 1})
    figure.update_layout(hovermode="x unified")
    figure.update_yaxes(showgrid=True, gridcolor=theme.GRID)
    if logarithmic:
        figure.update_yaxes(type="log", dtick=1, exponentformat="power")
    return figure


def angles(
    lines: Mapping[str, float],
    colours: Mapping[str, str],
    *,
    trained: int,
    length: int,
    note: str,
    x_title: str,
    y_title: str,
) -> Figure:
    """Return angles over the position, straight lines; shaded is what training has seen, in both directions.

    Args:
        lines: name -> radians per position; the first is unscaled.
        colours: name -> colour.
        trained: positions seen in training.
        length: positions drawn.
        note: what the shade means.
        x_title, y_title: what the axes mean, with units.
    """
    figure = theme.base_figure(340, x_title=x_title, y_title=y_title)
    seen = next(iter(lines.values())) * (trained - 1)
    figure.add_shape(
        type="rect",
        x0=0,
        x1=trained - 1,
        y0=0,
        y1=seen,
        fillcolor="rgba(138, 143, 152, 0.16)",
        line_width=0,
        layer="below",
    )
    figure.add_hline(y=seen, line={"color": _FAINT, "width": 1, "dash": "dash"})
    x = np.unique(np.linspace(0, length - 1, min(length, 257)).round())
    for name, frequency in lines.items():
        figure.add_scatter(
            x=x,
            y=frequency * x,
            name=plotly_literal(name),
            mode="lines",
            line={"color": colours[name], "width": 2.5},
            hovertemplate="%{y:.5g} rad",
        )
    figure.add_annotation(
        x=length - 1, y=seen, text=plotly_literal(note), showarrow=False, xanchor="right", yanchor="top"
    )
    figure.update_layout(hovermode="x unified")
    figure.update_xaxes(range=[0, length - 1])
    figure.update_yaxes(rangemode="tozero")
    return figure


def over_distance(
    lines: Mapping[str, ArrayLike], colours: Mapping[str, str], *, trained: int, note: str, x_title: str, y_title: str
) -> Figure:
    """Return scores over the difference of positions; a line marks where training ended."""
    figure = theme.base_figure(340, x_title=x_title, y_title=y_title)
    for name, line in lines.items():
        values = np.asarray(line, dtype=np.float64)
        figure.add_scatter(
            x=np.arange(len(values)),
            y=values,
            name=plotly_literal(name),
            mode="lines",
            line={"color": colours[name], "width": 2},
            hovertemplate="%{y:.5g}",
        )
    figure.add_vline(x=trained, line={"color": _FAINT, "width": 1, "dash": "dash"})
    figure.add_annotation(
        x=trained, xanchor="left", y=1, yref="paper", yanchor="top", text=plotly_literal(note), showarrow=False
    )
    figure.update_layout(hovermode="x unified")
    figure.update_yaxes(showgrid=True, gridcolor=theme.GRID)
    return figure
