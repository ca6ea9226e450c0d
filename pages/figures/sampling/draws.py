"""Pictures of the sampling page that change slowly; what moves with a slider is drawn in the browser."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures.figure import Figure
from pages.figures.theme import CATEGORICAL, GRID, base_figure


def observed_against_expected(
    labels: Sequence[str],
    observed: ArrayLike,
    expected: ArrayLike,
    *,
    drawn: str,
    expected_title: str,
    y_title: str,
) -> Figure:
    """Return bars of what was drawn with a mark where each was expected, and its standard deviation.

    Args:
        labels: plain text; they may repeat.
        observed: how often each token was drawn.
        expected: how often it was expected, n p; the whisker is sqrt(expected), an upper bound of sqrt(n p (1 - p)),
            and ends at no draw.
        drawn, expected_title: names in the legend.
        y_title: what is counted.
    """
    x = np.arange(len(labels))
    counts, means = np.asarray(observed), np.asarray(expected, dtype=np.float64)
    deviations = np.sqrt(means)
    figure = base_figure(340, y_title=y_title)
    literal = [plotly_literal(label) for label in labels]
    figure.add_bar(
        x=x,
        y=counts,
        name=drawn,
        marker_color=CATEGORICAL[5],
        customdata=literal,
        hovertemplate="%{customdata}<br><b>%{y:,}</b><extra></extra>",
    )
    figure.add_scatter(
        x=x,
        y=means,
        name=expected_title,
        mode="markers",
        marker={"color": CATEGORICAL[1], "symbol": "line-ew-open", "size": 18, "line": {"width": 3}},
        error_y={"array": deviations, "arrayminus": np.minimum(deviations, means), "thickness": 1.5, "width": 4},
        customdata=literal,
        hovertemplate="%{customdata}<br><b>%{y:,.2f}</b><extra></extra>",
    )
    figure.update_xaxes(tickmode="array", tickvals=x, ticktext=literal)
    figure.update_yaxes(showgrid=True, gridcolor=GRID, rangemode="tozero")
    return figure
