"""Temperature 0 along a text: how far the best token is ahead, and how far other ways of running it move a logit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures.figure import Figure
from pages.figures.theme import CATEGORICAL, GRID, OUTLINE, base_figure


def margins_and_differences(
    labels: Sequence[str],
    margins: ArrayLike,
    differences: Mapping[str, ArrayLike],
    changed: ArrayLike,
    *,
    titles: tuple[str, str],
    names: tuple[str, str],
) -> Figure:
    """Return the margin of each step as a point, and each way's largest difference of a logit as a line.

    Args:
        labels: what each step is called, plain text.
        margins: between the two best logits of each step; 0 lies on the lower edge.
        differences: a way's name -> its largest difference of any logit at each step.
        changed: whether some way chose another token there.
        titles: of the axes.
        names: of the points in the legend: the margin, where the choice changes.
    """
    x, points, other = np.arange(1, len(labels) + 1), np.asarray(margins), np.asarray(changed, dtype=bool)
    amounts = [np.asarray(values, dtype=np.float64) for values in differences.values()]
    positive = np.concatenate([points, *amounts])
    least = positive[positive > 0].min(initial=1.0) / 2  # a logarithmic axis has no 0
    literal = np.array([plotly_literal(label) for label in labels], dtype=object)
    figure = base_figure(380, x_title=titles[0], y_title=titles[1])
    for (name, values), colour in zip(zip(differences, amounts, strict=True), CATEGORICAL[1:], strict=False):
        figure.add_scatter(
            x=x,
            y=np.where(values > 0, values, np.nan),
            name=plotly_literal(name),
            mode="lines",
            line={"color": colour, "width": 1.5},
            hovertemplate="%{y:.3g}",
        )
    for chosen, colour, symbol, name in (
        (~other, CATEGORICAL[0], "circle", names[0]),
        (other, OUTLINE, "x", names[1]),
    ):
        figure.add_scatter(
            x=x[chosen],
            y=np.maximum(points[chosen], least),
            name=name,
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 8},
            customdata=np.stack([literal[chosen], points[chosen]], axis=-1) if chosen.any() else None,
            hovertemplate="%{customdata[0]}: %{customdata[1]:.3g}",
        )
    figure.update_yaxes(type="log", showgrid=True, gridcolor=GRID, exponentformat="power")
    figure.update_layout(hovermode="x unified")
    return figure
