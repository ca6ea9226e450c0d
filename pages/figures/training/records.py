"""Loss curves on record, against the loss of the grammar itself."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

GRAMMAR = "#8A8F98"
_TICKS = (0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 2, 3, 5, 8, 20, 50, 100, 200, 500, 1000, 2000)  # of logarithmic axes


def running_mean(values: ArrayLike, window: int) -> np.ndarray:
    """Return the mean of each value and up to window - 1 before it.

    >>> running_mean([4.0, 2.0, 0.0], 2).tolist()
    [4.0, 3.0, 1.0]
    """
    sums = np.concatenate([[0.0], np.cumsum(np.asarray(values, dtype=np.float64))])
    ends = np.arange(1, len(sums))
    starts = np.maximum(0, ends - window)
    return (sums[ends] - sums[starts]) / (ends - starts)


def curves(
    series: Mapping[str, tuple[ArrayLike, ArrayLike]],
    floor: float | None,
    *,
    chosen: str | None = None,
    perplexity: bool = False,
    floor_name: str,
    x_title: str,
    y_title: str,
) -> Figure:
    """Return losses over steps, with the grammar's own loss as a line.

    Args:
        series: name -> (steps, losses in nats per token).
        floor: the grammar's loss in nats per token.
        chosen: the name to draw thicker than the others.
        perplexity: show exp(loss) instead.
        floor_name, x_title, y_title: labels.
    """
    figure = theme.base_figure(440, x_title=x_title, y_title=y_title)
    last = max((int(np.max(steps)) for steps, _losses in series.values() if np.size(steps)), default=1)
    for index, (name, (steps, losses)) in enumerate(series.items()):
        y = np.asarray(losses, dtype=np.float64)
        figure.add_scatter(
            x=np.asarray(steps),
            y=np.exp(y) if perplexity else y,
            mode="lines",
            name=plotly_literal(name),
            line={"color": theme.CATEGORICAL[index % len(theme.CATEGORICAL)], "width": 3 if name == chosen else 1.5},
            opacity=1.0 if chosen in (None, name) else 0.65,
            hovertemplate="%{y:.5f}",
        )
    if floor is not None:
        level = float(np.exp(floor)) if perplexity else floor
        figure.add_scatter(
            x=[0, last],
            y=[level, level],
            mode="lines",
            name=plotly_literal(floor_name),
            line={"color": GRAMMAR, "width": 2, "dash": "dash"},
            hovertemplate="%{y:.5f}",
        )
    figure.update_layout(hovermode="x unified")
    # Logarithmic: the last tenths above the grammar's own loss are where models differ.
    figure.update_yaxes(
        type="log",
        showgrid=True,
        gridcolor=theme.GRID,
        tickmode="array",
        tickvals=_TICKS,
        ticktext=list(map(str, _TICKS)),
    )
    return figure
