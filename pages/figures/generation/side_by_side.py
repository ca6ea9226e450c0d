"""Several distributions over the same tokens, bar by bar.

Labels are plain text that has been through `visible`; here they are only kept from being read as HTML.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure


def side_by_side(
    labels: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    axis: str,
    chosen: int | None = None,
    removed: Collection[int] = (),
) -> Figure:
    """Return one group of bars a token, one bar a distribution.

    Args:
        labels: the tokens' names as plain text, the first on top; they may repeat.
        series: a distribution's name -> a probability for each of the tokens; at most as many as there are colours.
        axis: the axis' title.
        chosen: the place of the token whose bars are outlined.
        removed: the places of tokens that may not be drawn: the first distribution's bar is grey and hatched there.
    """
    places, rows = np.arange(len(labels)), [plotly_literal(label) for label in labels]
    figure = theme.base_figure(84 + (13 * len(series) + 8) * len(labels))
    for number, ((name, probs), colour) in enumerate(zip(series.items(), theme.CATEGORICAL, strict=False)):
        out = [number == 0 and place in removed for place in range(len(labels))]
        figure.add_bar(
            x=list(probs),
            y=places,
            orientation="h",
            name=plotly_literal(name),
            text=[theme.fmt_probability(p) for p in probs],
            textposition="outside",
            constraintext="none",
            textfont={"size": 10},
            cliponaxis=False,
            marker={
                "color": [theme.REMOVED if flag else colour for flag in out],
                "pattern": {"shape": ["/" if flag else "" for flag in out], "size": 6, "solidity": 0.25},
                "line": {
                    "color": theme.OUTLINE,
                    "width": [2 if place == chosen else 0 for place in range(len(labels))],
                },
            },
            customdata=rows,
            hovertemplate="%{customdata}<br>%{fullData.name}: <b>%{x:.6g}</b><extra></extra>",
        )
    top = max((max(probs) for probs in series.values()), default=0.0)
    figure.update_layout(barmode="group", bargap=0.22, bargroupgap=0.04, legend={"traceorder": "normal"})
    figure.update_yaxes(tickmode="array", tickvals=places, ticktext=rows, autorange="reversed")
    figure.update_xaxes(
        title_text=plotly_literal(axis),
        range=[0, 1.18 * top if top else 1],
        tickformat=theme.PERCENT,
        showgrid=True,
        gridcolor=theme.GRID,
    )
    if top > 0.7:
        figure.update_xaxes(tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])  # no probability is more than 1
    return figure
