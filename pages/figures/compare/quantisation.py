"""Weights before and after quantisation, where they lie on the levels, how errors grow, and what size costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

BEFORE, AFTER = theme.CATEGORICAL[0], theme.CATEGORICAL[1]
_MOST_LINES = 33  # levels that are drawn as lines; of 255 the lines would be the picture
_FAINT = "rgba(138, 143, 152, 0.5)"


def piece_of_weights(
    before: ArrayLike,
    after: ArrayLike,
    codes: Sequence[int],
    levels: Sequence[float],
    *,
    first: int,
    names: tuple[str, str],
    x_title: str,
    y_title: str,
) -> Figure:
    """Return weights before and after, each moved along a stroke to the level it is put on.

    Args:
        before, after: one number per weight.
        codes: q of each, written below it.
        levels: the values that weights of this block can be read back as; drawn as lines where they are few.
        first: the place of the first weight in its row.
        names: of the weights before and after.
        x_title, y_title: the axes' titles.
    """
    old, new = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    places = list(range(len(old)))
    figure = theme.base_figure(380, x_title=x_title, y_title=y_title)
    if len(levels) <= _MOST_LINES:
        for level in levels:
            figure.add_hline(y=float(level), line={"color": theme.GRID, "width": 1})
    strokes = [end for low, high in zip(old.tolist(), new.tolist(), strict=True) for end in (low, high, None)]
    figure.add_scatter(
        x=[place for place in places for _end in range(3)],
        y=strokes,
        mode="lines",
        line={"color": _FAINT, "width": 3},
        hoverinfo="skip",
        showlegend=False,
    )
    hints = [
        f"{first + place}<br>w {a:.6g} → w′ {b:.6g}<br>q {q}<br>w′ − w {b - a:.3g}".replace("-", "−")
        for place, a, b, q in zip(places, old, new, codes, strict=True)
    ]
    for values, name, symbol, colour in ((old, names[0], "circle-open", BEFORE), (new, names[1], "circle", AFTER)):
        figure.add_scatter(
            x=places,
            y=values,
            name=plotly_literal(name),
            mode="markers",
            marker={"symbol": symbol, "size": 9, "color": colour, "line": {"color": colour, "width": 2}},
            customdata=hints,
            hovertemplate="%{customdata}<extra></extra>",
        )
    figure.update_xaxes(
        tickmode="array",
        tickvals=places,
        ticktext=[f"{q}".replace("-", "−") for q in codes],
        autotickangles=[0, 90],  # upright on a narrow screen
        tickfont={"size": 10},
    )
    figure.update_yaxes(zeroline=True, zerolinecolor=_FAINT)
    return figure


def on_levels(
    edges: ArrayLike, shares: ArrayLike, levels: Sequence[int], *, clipped: str, x_title: str, y_title: str
) -> Figure:
    """Return where weights lie between the levels of their blocks, as a histogram in units of the scale.

    Args:
        edges: of the bins, one more than `shares`.
        shares: of the weights in each bin.
        levels: drawn as lines where they are few; what lies more than half a step beyond them is shaded.
        clipped: what is written over that.
        x_title, y_title: the axes' titles.
    """
    ends, heights = np.asarray(edges, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    figure = theme.base_figure(300, x_title=x_title, y_title=y_title)
    figure.add_bar(
        x=(ends[:-1] + ends[1:]) / 2,
        y=heights,
        width=np.diff(ends),
        marker={"color": BEFORE, "line": {"width": 0}},
        hovertemplate="%{x:.3g}<br><b>%{y:.4%}</b><extra></extra>",
    )
    if len(levels) <= _MOST_LINES:
        for level in levels:
            figure.add_vline(x=level, line={"color": AFTER, "width": 1})
        figure.update_xaxes(tickmode="array", tickvals=list(levels))
    for low, high in ((float(ends[0]), levels[0] - 0.5), (levels[-1] + 0.5, float(ends[-1]))):
        inside = (ends[:-1] >= low - 1e-9) & (ends[1:] <= high + 1e-9)
        if heights[inside].sum() > 0:
            figure.add_vrect(x0=low, x1=high, fillcolor=theme.MASKED, line_width=0, layer="below")
            figure.add_annotation(
                x=(low + high) / 2,
                xref="x",
                y=1,
                yref="y domain",
                text=plotly_literal(clipped),
                showarrow=False,
                textangle=-90,
                yanchor="top",
            )
    figure.update_layout(bargap=0, showlegend=False)
    figure.update_yaxes(showgrid=True, gridcolor=theme.GRID, tickformat=theme.PERCENT)
    return figure


def in_sigmas(
    edges: ArrayLike, shares: ArrayLike, k: float, *, names: tuple[str, str], titles: Sequence[str]
) -> Figure:
    """Return the histogram of a matrix over the distance from its mean in standard deviations, beside a normal one.

    Args:
        edges: of the bins, one more than `shares`, in sigma.
        shares: of the weights in each bin; the axis is logarithmic, so that few outliers are seen.
        k: beyond so many sigma a weight is an outlier.
        names: of the matrix and of the normal distribution.
        titles: of the axes.
    """
    ends, heights = np.asarray(edges, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    middles, widths = (ends[:-1] + ends[1:]) / 2, np.diff(ends)
    normal = np.exp(-(middles**2) / 2) / np.sqrt(2 * np.pi) * widths
    floor = 10 ** np.floor(np.log10(heights[heights > 0].min(initial=1.0)))
    figure = theme.base_figure(300, x_title=titles[0], y_title=titles[1])
    figure.add_bar(
        x=middles,
        y=np.where(heights > 0, heights, np.nan),
        width=widths,
        name=plotly_literal(names[0]),
        marker={"color": BEFORE, "line": {"width": 0}},
        hovertemplate="%{x:.3g} σ<br><b>%{y:.3g}</b><extra></extra>",
    )
    figure.add_scatter(
        x=middles,
        y=np.where(normal >= floor / 2, normal, np.nan),
        name=plotly_literal(names[1]),
        mode="lines",
        line={"color": AFTER, "width": 2},
        hoverinfo="skip",
    )
    for side in (-k, k):
        figure.add_vline(x=side, line={"color": _FAINT, "width": 1, "dash": "dash"})
    figure.update_layout(bargap=0)
    figure.update_yaxes(type="log", exponentformat="power", showgrid=True, gridcolor=theme.GRID)
    figure.layout.yaxis.range = [float(np.log10(floor / 2)), 0.0]
    return figure


def through_blocks(places: Sequence[str], series: Mapping[str, ArrayLike], *, x_title: str, y_title: str) -> Figure:
    """Return relative errors of hidden states along the model, in percent from 0, a line per name."""
    figure = theme.lines(list(range(len(places))), series, x_title=x_title, y_title=y_title, percent=True, height=360)
    for line in figure.data:
        line.update(mode="lines+markers", marker={"size": 6}, hovertemplate="%{y:.3%}")
    step = max(1, len(places) // 12)
    shown = [*range(0, len(places) - max(1, len(places) // 6), step), len(places) - 1]  # the last is a long word
    figure.update_xaxes(
        tickmode="array", tickvals=shown, ticktext=[plotly_literal(places[i]) for i in shown], tickangle=0
    )
    return figure


def against_size(
    sizes: Sequence[float],
    values: Sequence[float],
    errors: Sequence[float],
    labels: Sequence[str],
    *,
    x_title: str,
    y_title: str,
    logarithmic: bool,
    level: tuple[float, str] | None = None,
) -> Figure:
    """Return a cost of variants of a model against their size, with error bars, a point each.

    Args:
        sizes: in MB, on a logarithmic axis.
        values, errors: the cost and its standard error.
        labels: what is written beside each point.
        x_title, y_title: the axes' titles.
        logarithmic: whether the cost's axis is; values that are not above 0 are left out of it then.
        level: a value that all are compared with, as a line, and what is written on it.
    """
    shown = [i for i in range(len(sizes)) if values[i] > 0 or not logarithmic]
    shown.sort(key=lambda i: sizes[i])
    figure = theme.base_figure(400, x_title=x_title, y_title=y_title)
    if level is not None:
        figure.add_hline(y=level[0], line={"color": AFTER, "width": 2, "dash": "dash"})
        figure.add_annotation(
            x=0,
            xref="x domain",
            y=_at(level[0], logarithmic),
            yref="y",
            text=plotly_literal(level[1]),
            showarrow=False,
            xanchor="left",
            yanchor="bottom",
        )
    figure.add_scatter(
        x=[sizes[i] for i in shown],
        y=[values[i] for i in shown],
        error_y={"type": "data", "array": [errors[i] for i in shown], "color": _FAINT, "thickness": 1.5, "width": 4},
        text=[plotly_literal(labels[i]) for i in shown],
        textposition="top right",
        mode="lines+markers+text",
        line={"color": _FAINT, "width": 1, "dash": "dot"},
        marker={"size": 9, "color": BEFORE},
        cliponaxis=False,
        hovertemplate="%{text}<br>%{x:.4g} MB<br><b>%{y:.6g}</b> ± %{error_y.array:.2g}<extra></extra>",
    )
    figure.update_layout(showlegend=False)
    figure.update_xaxes(type="log", tickformat=".3~g", showgrid=True, gridcolor=theme.GRID, dtick="D2")
    figure.update_yaxes(showgrid=True, gridcolor=theme.GRID)
    if logarithmic:
        figure.update_yaxes(type="log", exponentformat="power")
        seen = [values[i] for i in shown] + ([level[0]] if level and level[0] > 0 else [])
        if seen and max(seen) < 100 * min(seen):  # a narrower axis may have no 1, 2 or 5 on it
            figure.update_yaxes(dtick="D2" if max(seen) > 10 * min(seen) else "D1")
    return figure


def _at(value: float, logarithmic: bool) -> float:
    """Return where an annotation stands: on a logarithmic axis at the logarithm."""
    return float(np.log10(value)) if logarithmic and value > 0 else value
