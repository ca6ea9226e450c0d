"""How far two runs are apart along a text, and what each tensor has to do with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.axes import roomy
from pages.figures.figure import Figure

_NAMED = 24  # tokens of a text along the axis


def along_the_text(
    tokens: Sequence[str], bits: ArrayLike, flips: Sequence[bool], chosen: int, titles: tuple[str, str], flipped: str
) -> Figure:
    """Return the divergence after each token as a line, the places marked where another token comes first.

    Args:
        tokens: a label for each place.
        bits: KL(A‖B) there; a place at which it is infinite is left out of the line.
        flips: whether the most probable token is another one.
        chosen: index of the place that is looked at.
        titles: of the places and of the bits.
        flipped: the word for such a place.
    """
    values = np.asarray(bits, dtype=np.float64)
    values = np.where(np.isfinite(values), values, np.nan)
    places = np.arange(len(tokens))
    names = [plotly_literal(token) for token in tokens]
    hover = "%{customdata}<br><b>%{y:.4g}</b> bits<extra></extra>"
    figure = theme.base_figure(260)
    figure.add_scatter(
        x=places,
        y=values,
        mode="lines+markers" if len(tokens) <= 80 else "lines",
        line={"color": theme.CATEGORICAL[0], "width": 2},
        marker={"size": 5},
        customdata=names,
        hovertemplate=hover,
        showlegend=False,
    )
    marked = np.flatnonzero(np.asarray(flips, dtype=bool))
    if len(marked):
        figure.add_scatter(
            x=marked,
            y=values[marked],
            mode="markers",
            name=flipped,
            marker={"color": theme.CATEGORICAL[1], "size": 9, "symbol": "diamond"},
            customdata=[names[place] for place in marked],
            hovertemplate=hover,
        )
    figure.add_vline(x=chosen, line={"color": theme.OUTLINE, "width": 1, "dash": "dot"})
    every = max(len(tokens) // _NAMED, 1)
    figure.update_layout(
        margin={"t": 28},
        showlegend=bool(len(marked)),
        xaxis={
            "title_text": titles[0],
            "tickmode": "array",
            "autotickangles": [0, -40, -90],
            "tickvals": places[::every].tolist(),
            "ticktext": names[::every],
        },
        yaxis={
            "title_text": titles[1],
            "rangemode": "tozero",
            "showgrid": True,
            "gridcolor": theme.GRID,
            "tickformat": "~g",  # 0.0003, where Plotly's own would be 300µ
        },
    )
    return figure


def parts(labels: Sequence[str], gone: ArrayLike, title: str) -> Figure:
    """Return the share of the difference that goes with each swap as bars; left of 0 where it grows."""
    figure = roomy(theme.bars(gone, labels, kind="signed"))
    figure.data[0].update(text=[_percent(value) for value in np.asarray(gone, dtype=np.float64)])
    figure.update_xaxes(tickformat=".0%", title_text=title)
    return figure


def _percent(share: float) -> str:
    """Return a share in whole percent with a true minus sign.

    >>> _percent(-0.021), _percent(-0.001)
    ('−2 %', '0 %')
    """
    return f"{round(100 * share):d} %".replace("-", "−")
