"""The next-token distribution before and after an intervention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

BEFORE, AFTER = theme.REMOVED, theme.CATEGORICAL[0]


def before_and_after(
    labels: Sequence[str], before: ArrayLike, after: ArrayLike | None, names: tuple[str, str], rest: str
) -> Figure:
    """Return two bars per token, its probability before and after, and two for all other tokens together.

    Args:
        labels: one per token, as plain text.
        before: one probability per token.
        after: likewise; None while nothing is changed: then there is one bar per token.
        names: of the two.
        rest: the label of all tokens not listed.
    """
    figure = theme.base_figure(110 + 38 * (len(labels) + 1))
    rows = np.arange(len(labels) + 1)
    shown = [plotly_literal(label) for label in (*labels, rest)]
    series = [(names[0], before, BEFORE)] + ([] if after is None else [(names[1], after, AFTER)])
    for name, probs, colour in series:
        values = np.asarray(probs, dtype=np.float64)
        values = np.append(values, max(1 - values.sum(), 0.0))
        figure.add_bar(
            x=values,
            y=rows,
            orientation="h",
            name=plotly_literal(name),
            marker={"color": [colour] * len(labels) + [theme.MASKED if colour == BEFORE else theme.REMOVED]},
            text=[theme.fmt_probability(value) for value in values],
            textposition="outside",
            constraintext="none",
            cliponaxis=False,
            customdata=shown,
            hovertemplate=f"%{{customdata}}<br>{plotly_literal(name)}: <b>%{{x:.6g}}</b><extra></extra>",
        )
    longest = max(float(np.max(bars.x)) for bars in figure.data)
    figure.update_layout(
        barmode="group",
        bargap=0.28,
        legend={"traceorder": "normal"},
        showlegend=after is not None,
        xaxis={"tickformat": theme.PERCENT},
        yaxis={"autorange": "reversed", "tickmode": "array", "tickvals": rows, "ticktext": shown},
    )
    theme.end_at(figure, longest)
    figure.update_xaxes(showgrid=True, gridcolor=theme.GRID)
    return figure
