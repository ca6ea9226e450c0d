"""Position tables as pictures: heat map, clock hands, waves, wavelengths."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

SINE, COSINE = theme.CATEGORICAL[0], theme.CATEGORICAL[4]
_FAINT = "rgba(138, 143, 152, 0.45)"


def table(values: ArrayLike, *, chosen: int | None, row_title: str, column_title: str, value_title: str) -> Figure:
    """Return a position table [position, dimension] as a heat map with the chosen position outlined."""
    values = np.asarray(values)
    figure = theme.heatmap(
        values,
        [str(position) for position in range(values.shape[0])],
        [str(dimension) for dimension in range(values.shape[1])],
        kind="signed",
        row_title=row_title,
        column_title=column_title,
        value_title=value_title,
        height=460,
    )
    figure.update_xaxes(tickmode="auto", nticks=12)  # the labels are the indices
    figure.update_yaxes(tickmode="auto", nticks=12)
    if chosen is not None:
        theme.outline_row(figure, chosen)
    return figure


def clocks(frequencies: ArrayLike, position: int, pairs: Sequence[int], chosen: int, pair_name: str) -> Figure:
    """Return one clock per pair of dimensions: the hand's angle is position times frequency, its end (cos, sin).

    Args:
        frequencies: radians per position of every pair.
        position: where the hands stand; small dots show where they stood before.
        pairs: the pairs to draw.
        chosen: the pair to outline.
        pair_name: the word for a pair in titles, e.g. "pair".
    """
    frequencies = np.asarray(frequencies, dtype=np.float64)
    figure = theme.base_figure(230)
    turn = np.linspace(0, 2 * math.pi, 73)
    for place, pair in enumerate(pairs):
        centre = 2.6 * place
        rim = theme.OUTLINE if pair == chosen else _FAINT
        past = frequencies[pair] * np.arange(max(0, position - 60), position)
        angle = frequencies[pair] * position
        figure.add_scatter(
            x=centre + np.cos(turn), y=np.sin(turn), mode="lines", line={"color": rim, "width": 1.5}, hoverinfo="skip"
        )
        figure.add_scatter(
            x=centre + np.cos(past),
            y=np.sin(past),
            mode="markers",
            marker={"size": 4, "color": SINE, "opacity": np.linspace(0.08, 0.5, len(past))},
            hoverinfo="skip",
        )
        figure.add_scatter(
            x=[centre, centre + math.cos(angle)],
            y=[0, math.sin(angle)],
            mode="lines+markers",
            line={"color": SINE, "width": 3},
            marker={"size": [0, 9]},
            customdata=[[pair, angle, math.sin(angle), math.cos(angle)]] * 2,
            hovertemplate=f"{plotly_literal(pair_name)} %{{customdata[0]}}<br>%{{customdata[1]:.6g}} rad<br>"
            "sin %{customdata[2]:.6f}<br>cos %{customdata[3]:.6f}<extra></extra>",
        )
        figure.add_annotation(x=centre, y=1.32, text=f"{plotly_literal(pair_name)} {pair}", showarrow=False)
    figure.update_layout(showlegend=False, margin={"l": 8, "r": 8, "t": 8, "b": 8})
    figure.update_xaxes(visible=False, range=[-1.2, 2.6 * (len(pairs) - 1) + 1.2])
    figure.update_yaxes(visible=False, range=[-1.15, 1.6], scaleanchor="x")
    return figure


def waves(frequency: float, length: int, position: int, *, names: tuple[str, str], x_title: str) -> Figure:
    """Return sine and cosine of one pair over the positions, with the chosen position marked."""
    x = np.arange(length)
    smooth = np.linspace(0, length - 1, max(length, 800)) if length > 1 else x
    figure = theme.base_figure(260, x_title=x_title)
    for name, wave, colour in ((names[0], np.sin, SINE), (names[1], np.cos, COSINE)):
        figure.add_scatter(
            x=smooth,
            y=wave(frequency * smooth),
            mode="lines",
            line={"color": colour, "width": 1.5},
            name=plotly_literal(name),
            hoverinfo="skip",
        )
        figure.add_scatter(
            x=x,
            y=wave(frequency * x),
            mode="markers",
            marker={"color": colour, "size": 4 if length <= 160 else 2},
            name=plotly_literal(name),
            showlegend=False,
            hovertemplate="%{x}<br><b>%{y:.6f}</b>",
        )
        figure.add_scatter(
            x=[position],
            y=[wave(frequency * position)],
            mode="markers",
            hoverinfo="skip",
            showlegend=False,
            marker={"size": 12, "color": "rgba(0, 0, 0, 0)", "line": {"color": theme.OUTLINE, "width": 2.5}},
        )
    figure.add_vline(x=position, line={"color": theme.OUTLINE, "width": 1})
    figure.update_yaxes(range=[-1.15, 1.15], showgrid=True, gridcolor=theme.GRID, nticks=3)
    return figure


def wavelengths(lengths: ArrayLike, chosen: int, *, shown: int, x_title: str, y_title: str, note: str) -> Figure:
    """Return the wavelength of every pair on a logarithmic scale; `shown` positions are marked with a line."""
    lengths = np.asarray(lengths)
    figure = theme.base_figure(280, x_title=x_title, y_title=y_title)
    figure.add_scatter(
        x=np.arange(len(lengths)),
        y=lengths,
        mode="lines+markers",
        line={"color": SINE, "width": 1.5},
        marker={
            "size": [11 if pair == chosen else 5 for pair in range(len(lengths))],
            "color": [theme.OUTLINE if pair == chosen else SINE for pair in range(len(lengths))],
        },
        hovertemplate="%{x}<br><b>%{y:.6g}</b><extra></extra>",
    )
    # A trace, not a shape: labels of shapes are misplaced on logarithmic axes.
    figure.add_scatter(
        x=[0, max(1, len(lengths) - 1)],
        y=[shown, shown],
        mode="lines+text",
        line={"color": _FAINT, "dash": "dash"},
        text=["", plotly_literal(note)],
        textposition="top left",
        hoverinfo="skip",
    )
    figure.update_layout(showlegend=False)
    figure.update_yaxes(type="log", showgrid=True, gridcolor=theme.GRID, nticks=5)
    return figure
