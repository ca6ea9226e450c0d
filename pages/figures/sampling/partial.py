"""Probabilities of which some are exact and others lie between two bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.figures import theme
from pages.figures.figure import Figure

_EXACT = 5e-7  # a width nobody could see, and no reader would call a bound


def bounds(labels: Sequence[str], low: ArrayLike, high: ArrayLike, removed: Sequence[bool], rest: str) -> Figure:
    """Return bars up to what is certain, and from there on a paler part up to what is possible.

    Args:
        labels: one per token, the last for all others together.
        low: the least each can be.
        high: the most.
        removed: which of them a filter certainly removes.
        rest: name of the paler part, for the legend.
    """
    certain, possible = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    figure = theme.bars(certain, labels, kind="probability", removed=removed)
    figure.data[0].update(
        text=[_said(*pair) for pair in zip(certain, possible, strict=True)],
        textposition="none" if (possible - certain > _EXACT).any() else "outside",
        hovertemplate="%{customdata}<br><b>%{text}</b><extra></extra>",
        name="",
        showlegend=False,
    )
    if (possible - certain > _EXACT).any():
        figure.add_bar(
            x=possible - certain,
            y=np.arange(len(certain)),
            orientation="h",
            name=rest,
            text=[_said(*pair) for pair in zip(certain, possible, strict=True)],
            textposition="outside",
            cliponaxis=False,
            customdata=figure.data[0].customdata,
            hovertemplate="%{customdata}<br><b>%{text}</b><extra></extra>",
            marker={"color": theme.CATEGORICAL[0], "opacity": 0.35},
        )
        figure.update_layout(barmode="stack", showlegend=True)
    # Room for the numbers behind the longest bar: two of them, on a phone too.
    room = 1.3 if (possible - certain <= _EXACT).all() else 1.7
    figure.update_layout(xaxis_range=[0, room * float(possible.max(initial=1e-9))])
    return figure


def _said(low: float, high: float) -> str:
    if high - low <= _EXACT:
        return theme.fmt_probability(high)
    return f"{theme.fmt_probability(low)} – {theme.fmt_probability(high)}"
