"""Several encodings in one picture: each keeps its colour, the grammar is a grey dashed line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from lmcore.analysis.position.length import Bins
from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

COLOURS: dict[str, str] = {
    "rope": theme.CATEGORICAL[0],
    "learned": theme.CATEGORICAL[1],
    "sinusoidal": theme.CATEGORICAL[2],
    "relative": theme.CATEGORICAL[3],
    "alibi": theme.CATEGORICAL[4],
    "none": theme.CATEGORICAL[6],
}
OTHER = theme.CATEGORICAL[5]
BASELINE = "rgb(138, 143, 152)"
_LEAST_WEIGHT = 1e-4  # where a logarithmic axis of weights may end
_BEYOND = "rgba(138, 143, 152, 0.10)"


def by_position(
    curves: Mapping[str, Bins],
    colours: Mapping[str, str],
    *,
    length: int,
    trained: int,
    ends: Mapping[str, int],
    baseline: str | None = None,
    note: str,
    end_note: str,
    x_title: str,
    y_title: str,
    logarithmic: bool = False,
) -> Figure:
    """Return means over bins of positions as lines; what lies beyond the trained length is shaded.

    Args:
        curves: name -> its bins.
        colours: name -> colour.
        length: how many positions the axis has.
        trained: the number of positions seen in training.
        ends: name -> number of positions after which there can be no number; such an end is marked.
        baseline: the name of the curve to draw grey and dashed.
        note: what the shade means.
        end_note: what an end means; short.
        x_title, y_title: what the axes mean, with units.
        logarithmic: whether the vertical axis is.
    """
    figure = theme.base_figure(380, x_title=x_title, y_title=y_title)
    figure.add_vrect(x0=trained - 0.5, x1=length - 0.5, fillcolor=_BEYOND, line_width=0, layer="below")
    for name, bins in curves.items():
        middle = (bins.starts + bins.ends) / 2
        plain = name == baseline
        figure.add_scatter(
            x=middle,
            y=bins.means,
            name=plotly_literal(name),
            mode="lines" if len(middle) > 1 else "markers",
            line={"color": BASELINE if plain else colours[name], "width": 2, "dash": "dash" if plain else "solid"},
            customdata=np.stack([bins.starts, bins.ends, bins.errors], axis=1),
            hovertemplate="%{customdata[0]:.0f}–%{customdata[1]:.0f}: <b>%{y:.4f}</b> ± %{customdata[2]:.4f}",
        )
    for name, end in ends.items():
        height = float(curves[name].means[-1])
        figure.add_scatter(
            x=[end - 0.5],
            y=[height],
            mode="markers",
            marker={"symbol": "x", "size": 11, "color": colours[name]},
            hoverinfo="skip",
            showlegend=False,
        )
        if height > 0:
            figure.add_annotation(
                x=end - 0.5,
                y=math.log10(height) if logarithmic else height,
                ax=-34,
                ay=-64,
                arrowwidth=1,
                arrowhead=0,
                arrowcolor=colours[name],
                standoff=7,
                text=plotly_literal(end_note),
            )
    figure.add_annotation(
        x=trained,
        xref="x",
        xanchor="left",
        y=1,
        yref="paper",
        yanchor="top",
        text=plotly_literal(note),
        showarrow=False,
        font={"size": 12},
    )
    figure.update_xaxes(range=[-0.5, length - 0.5])
    figure.update_yaxes(showgrid=True, gridcolor=theme.GRID)
    if logarithmic:
        figure.update_yaxes(type="log", nticks=6)
    else:
        figure.update_yaxes(rangemode="tozero")
    return figure


def by_distance(
    series: Mapping[str, ArrayLike],
    colours: Sequence[str],
    *,
    baseline: tuple[str, ArrayLike] | None = None,
    x_title: str,
    y_title: str,
    logarithmic: bool,
) -> Figure:
    """Return attention weights over the distance, one line per name; the baseline is grey and dashed.

    On a logarithmic axis a weight of exactly 0 has no point.
    """
    everything = {**series, **({baseline[0]: baseline[1]} if baseline else {})}
    figure = theme.base_figure(420, x_title=x_title, y_title=y_title)
    for index, (name, weights) in enumerate(everything.items()):
        weights = np.asarray(weights, dtype=np.float64)
        plain = index == len(series)
        turn, place = divmod(index, len(colours))
        figure.add_scatter(
            x=np.arange(len(weights)),
            y=np.where(weights > 0, weights, np.nan) if logarithmic else weights,
            name=plotly_literal(name),
            mode="lines" if len(weights) > 1 else "markers",
            line={
                "color": BASELINE if plain else colours[place],
                "width": 2,
                "dash": "dash" if plain else ("solid", "dash", "dot")[turn % 3],
            },
            text=[theme.fmt_probability(weight) for weight in weights],
            hovertemplate="%{x}: <b>%{text}</b>",
        )
    figure.update_yaxes(showgrid=True, gridcolor=theme.GRID, tickformat=theme.PERCENT)
    if logarithmic:
        # Weights that have vanished would squeeze all others into a stripe.
        least = min(np.min(weights, where=np.asarray(weights) > 0, initial=1.0) for weights in everything.values())
        most = max(np.max(weights) for weights in everything.values())
        low, high = math.log10(max(float(least), _LEAST_WEIGHT)), math.log10(float(most))
        figure.update_yaxes(type="log", dtick="D2" if high - low < 2 else 1, range=[low - 0.1, high + 0.1])
    else:
        figure.update_yaxes(rangemode="tozero")
    return figure


def mean_distances(values: ArrayLike, *, head_name: str, x_title: str, y_title: str) -> Figure:
    """Return the distance each head looks back, [block, head] in tokens: one dot per head, one row per block."""
    values = np.asarray(values, dtype=np.float64)
    n_blocks, n_heads = values.shape
    figure = theme.base_figure(max(300, 120 + 20 * n_blocks), x_title=x_title, y_title=y_title)
    figure.add_scatter(
        x=values.ravel(),
        y=np.repeat(np.arange(n_blocks), n_heads),
        mode="markers",
        marker={
            "size": 11,
            "color": [theme.CATEGORICAL[head % len(theme.CATEGORICAL)] for head in range(n_heads)] * n_blocks,
        },
        customdata=np.tile(np.arange(n_heads), n_blocks),
        hovertemplate=f"{plotly_literal(y_title)} %{{y}} · {plotly_literal(head_name)} %{{customdata}}"
        "<br><b>%{x:.3f}</b><extra></extra>",
    )
    figure.update_xaxes(rangemode="tozero", showgrid=True, gridcolor=theme.GRID)
    figure.update_yaxes(autorange="reversed", dtick=1 if n_blocks <= 12 else 5, showgrid=True, gridcolor=theme.GRID)
    return figure


def effect(values: ArrayLike, query: int, *, row_title: str, column_title: str) -> Figure:
    """Return a small heat map [query, key] of what an encoding does to a score; the future is empty.

    The scale is centred on 0. Cells go by number: they are positions. The row of `query` is outlined.
    """
    values = np.array(values, dtype=np.float32)
    values[np.triu_indices(len(values), 1)] = np.nan
    limit = float(np.nanmax(np.abs(values))) or 1.0
    figure = theme.base_figure(220, x_title=column_title, y_title=row_title)
    figure.add_heatmap(
        z=values,
        zmin=-limit,
        zmax=limit,
        colorscale=theme.DIVERGING,
        hoverongaps=False,
        colorbar={"thickness": 8, "outlinewidth": 0, "nticks": 5},
        hovertemplate="%{y}, %{x}<br><b>%{z:.5g}</b><extra></extra>",
    )
    theme.outline_row(figure, query)
    figure.update_layout(margin={"t": 8})
    figure.update_yaxes(autorange="reversed", nticks=5)
    figure.update_xaxes(nticks=5)
    return figure


def small_line(values: ArrayLike, *, colour: str, x_title: str) -> Figure:
    """Return one value for each distance as a small line."""
    values = np.asarray(values, dtype=np.float64)
    figure = theme.base_figure(190, x_title=x_title)
    figure.add_scatter(
        x=np.arange(len(values)),
        y=values,
        mode="lines",
        line={"color": colour, "width": 2},
        hovertemplate="%{x}: <b>%{y:.5g}</b><extra></extra>",
    )
    figure.update_layout(margin={"t": 8})
    figure.update_yaxes(showgrid=True, gridcolor=theme.GRID, nticks=5)
    return figure
