"""Settings over a text: how many tokens they keep at each position, against how uncertain the model is there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures.figure import Figure
from pages.figures.theme import CATEGORICAL, GRID, INK, OUTLINE, base_figure


def kept_against_entropy(
    labels: Sequence[str],
    entropy_bits: ArrayLike,
    candidates: ArrayLike,
    possible: ArrayLike,
    *,
    titles: tuple[str, str],
    names: tuple[str, str, str],
) -> Figure:
    """Return a point for each position: its entropy at T = 1 and how many tokens can be drawn, on a scale of powers.

    Args:
        labels: each position's token that came, plain text.
        entropy_bits, candidates: of each position.
        possible: whether its token could have been drawn.
        titles: of the axes.
        names: in the legend: could be drawn, could not, as many as the effective candidates.
    """
    x, y, could = np.asarray(entropy_bits), np.asarray(candidates), np.asarray(possible, dtype=bool)
    figure = base_figure(340, x_title=titles[0], y_title=titles[1])
    literal = np.array([plotly_literal(label) for label in labels], dtype=object)
    marks = ((could, CATEGORICAL[0], "circle", names[0]), (~could, OUTLINE, "x", names[1]))
    for chosen, colour, symbol, name in marks:
        figure.add_scatter(
            x=x[chosen],
            y=y[chosen],
            name=name,
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 8, "opacity": 0.75},
            customdata=literal[chosen].tolist(),
            hovertemplate="%{customdata}<br>%{x:.3f} · %{y:,}<extra></extra>",
        )
    line = np.linspace(0, max(float(x.max(initial=0)), 1), 2)
    figure.add_scatter(
        x=line, y=2**line, name=names[2], mode="lines", line={"color": INK, "width": 1, "dash": "dot"}, hoverinfo="skip"
    )
    top = max(float(y.max(initial=1)), float(2 ** line[-1]))
    ticks = [step * 10**power for power in range(len(str(int(top)))) for step in (1, 2, 5)]
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=[f"{tick:,}" for tick in ticks])
    figure.update_yaxes(showgrid=True, gridcolor=GRID)
    figure.update_xaxes(rangemode="tozero")
    return figure
