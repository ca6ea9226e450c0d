"""Pictures of where a logit comes from: length and angle, dimensions, components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.axes import roomy, titled
from pages.figures.figure import Figure
from pages.figures.logits.lens import MAX_CELLS_WITH_TEXT


def length_and_angle(
    cosines: ArrayLike,
    lengths: ArrayLike,
    labels: Sequence[str],
    logits: ArrayLike,
    length: float,
    named: Sequence[int],
    target: int,
    titles: tuple[str, str, str],
) -> Figure:
    """Return every row of the head by its angle to h and its length, with curves of equal logit.

    A logit is length of h * length of row * cosine, so equal logits lie on a hyperbola. The curve drawn passes through
    the target: whatever lies beyond it has a larger logit.

    Args:
        cosines, lengths, logits: one for each row shown; the head's bias left out.
        labels: one for each row.
        length: of h.
        named: the rows to label, the most important first; one whose label would cover another's goes without.
        target: the row the curve passes through, outlined.
        titles: of cosine, row length and logit.
    """
    x, y = np.asarray(cosines, dtype=np.float64), np.asarray(lengths, dtype=np.float64)
    z = np.asarray(logits, dtype=np.float64)
    figure = theme.base_figure(460, x_title=titles[0])
    top = float(np.abs(z).max()) or 1.0
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        marker={
            "color": z,
            "colorscale": theme.DIVERGING,
            "cmin": -top,
            "cmax": top,
            "size": 6,
            "line": {"width": 0.5, "color": theme.REMOVED},
            "colorbar": {"title": {"text": titles[2], "side": "top"}, "thickness": 8, "outlinewidth": 0, "nticks": 5},
        },
        customdata=[plotly_literal(label) for label in labels],
        hovertemplate="%{customdata}<br>cos <b>%{x:.4f}</b>, ‖e‖ <b>%{y:.4f}</b><br>"
        "h · e <b>%{marker.color:.4f}</b><extra></extra>",
    )
    if x[target] > 0:
        curve = np.linspace(max(z[target] / length / (1.05 * y.max()), 1e-3), max(float(x.max()) * 1.05, 1e-2), 200)
        figure.add_scatter(
            x=curve,
            y=z[target] / length / curve,
            mode="lines",
            hoverinfo="skip",
            line={"color": theme.OUTLINE, "width": 1.5, "dash": "dot"},
        )
    apart = _apart(x, y, named)
    figure.add_scatter(
        x=x[apart],
        y=y[apart],
        mode="text",
        text=[plotly_literal(labels[row]) for row in apart],
        textposition="top left",
        hoverinfo="skip",
        cliponaxis=False,
    )
    figure.add_scatter(
        x=[x[target]],
        y=[y[target]],
        mode="markers",
        hoverinfo="skip",
        marker={"symbol": "circle-open", "size": 13, "color": theme.OUTLINE, "line": {"width": 2.5}},
    )
    figure.update_layout(
        showlegend=False,
        xaxis={
            "title_text": titles[0],
            "showgrid": True,
            "gridcolor": theme.GRID,
            "zeroline": True,
            "zerolinecolor": theme.GRID,
        },
        yaxis={
            "title_text": titles[1],
            "showgrid": True,
            "gridcolor": theme.GRID,
            "range": _lengths_axis(y),
        },
    )
    return figure


def dimensions(parts: ArrayLike, indices: Sequence[int], title: str) -> Figure:
    """Return what some dimensions add to a logit, as bars labelled by their index in d_model."""
    figure = roomy(theme.bars(parts, [f"#{index}" for index in indices], kind="signed"))
    figure.update_layout(xaxis_title_text=title)
    return figure


def contributions(values: ArrayLike, names: Sequence[str], title: str, limit: int, rest: str) -> Figure:
    """Return what components add to a logit, in the model's order; beyond `limit` the smallest are one bar.

    Args:
        values: one per component.
        names: of the components.
        title: what the bars are.
        limit: how many bars at most, the one for the rest not counted.
        rest: the label of the bar of those left out, e.g. "the others".
    """
    array = np.asarray(values, dtype=np.float64)
    kept = np.sort(np.argsort(-np.abs(array), kind="stable")[:limit])
    labels, shown = [names[index] for index in kept], list(array[kept])
    if len(kept) < len(array):
        labels, shown = [*labels, rest], [*shown, array.sum() - array[kept].sum()]
    figure = roomy(theme.bars(shown, labels, kind="signed", height=90 + 24 * len(shown)))
    figure.update_layout(xaxis_title_text=title)
    return figure


def contribution_grid(values: ArrayLike, blocks: Sequence[str], columns: Sequence[str], title: str) -> Figure:
    """Return what each head and MLP adds to a logit: one row per block, one column per head, the MLP last."""
    figure = theme.heatmap(values, blocks, columns, kind="signed")
    titled(figure, "", "", title)
    if np.size(values) <= MAX_CELLS_WITH_TEXT:
        theme.write_in_cells(
            figure, [[f"{round(value, 2) + 0.0:.2f}".replace("-", "−") for value in row] for row in np.asarray(values)]
        )
    return figure


def _lengths_axis(y: np.ndarray) -> list[float]:
    return [float(y.min()) * 0.95, float(y.max()) * 1.06]


def _apart(x: np.ndarray, y: np.ndarray, rows: Sequence[int]) -> list[int]:
    """Return the rows, in order, that keep a distance from those before them: enough for a label each."""
    low, high = _lengths_axis(y)
    kept: list[int] = []
    for row in rows:
        if all(abs(x[row] - x[o]) > 0.25 * np.ptp(x) or abs(y[row] - y[o]) > 0.06 * (high - low) for o in kept):
            kept.append(row)
    return kept
