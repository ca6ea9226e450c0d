"""Figures of the tokenization page.

Labels are plain text that has been through `visible`; here they are only kept from being read as HTML.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure


def pieces_left(
    counts: Sequence[int], merges: Sequence[str], *, x_title: str = "", y_title: str = "", step: int | None = None
) -> Figure:
    """Return how many pieces are left after each merge, as a falling staircase.

    Args:
        counts: pieces after 0, 1, 2 ... merges.
        merges: what each merge joined, as plain text; one fewer than counts.
        x_title, y_title: the axes' titles.
        step: the number of merges to mark.
    """
    if len(merges) != len(counts) - 1:
        raise ValueError(f"there are {len(counts)} counts and {len(merges)} merges; give one merge fewer than counts.")
    figure = theme.base_figure(280)
    figure.add_scatter(
        x=list(range(len(counts))),
        y=list(counts),
        mode="lines+markers",
        line={"shape": "hv", "color": theme.CATEGORICAL[0], "width": 2},
        marker={"size": 5, "color": theme.CATEGORICAL[0]},
        customdata=["", *(plotly_literal(merge) for merge in merges)],
        hovertemplate="%{x}: <b>%{y}</b><br>%{customdata}<extra></extra>",
        showlegend=False,
    )
    if step is not None and 0 <= step < len(counts):
        figure.add_scatter(
            x=[step],
            y=[counts[step]],
            mode="markers",
            marker={"size": 13, "color": "rgba(0, 0, 0, 0)", "line": {"color": theme.OUTLINE, "width": 3}},
            hoverinfo="skip",
            showlegend=False,
        )
    figure.update_yaxes(title_text=plotly_literal(y_title), rangemode="tozero", showgrid=True, gridcolor=theme.GRID)
    figure.update_xaxes(title_text=plotly_literal(x_title), tickformat="d")
    return figure


def renamed_logits(
    before: ArrayLike,
    moved: ArrayLike,
    unmoved: ArrayLike,
    labels: Sequence[str],
    *,
    moved_name: str = "",
    unmoved_name: str = "",
    x_title: str = "",
    y_title: str = "",
) -> Figure:
    """Return every token's logit after its id was changed, against the one before.

    Args:
        before: [V] logits under the old ids, by old id.
        moved: [V] logits when the rows moved along, in the same order of tokens.
        unmoved: [V] logits when they did not.
        labels: [V] the tokens as plain text.
        moved_name, unmoved_name: names for the legend.
        x_title, y_title: the axes' titles.
    """
    x = np.asarray(before, dtype=np.float64)
    names = [plotly_literal(label) for label in labels]
    figure = theme.base_figure(460)
    for y, name, colour in (
        (unmoved, unmoved_name, theme.REMOVED),
        (moved, moved_name, theme.CATEGORICAL[0]),
    ):
        figure.add_scatter(
            x=x,
            y=np.asarray(y, dtype=np.float64),
            mode="markers",
            name=plotly_literal(name),
            marker={"size": 5, "color": colour},
            customdata=names,
            hovertemplate="%{customdata}<br>%{x:.6f} → <b>%{y:.6f}</b><extra></extra>",
        )
    figure.update_xaxes(title_text=plotly_literal(x_title), showgrid=True, gridcolor=theme.GRID)
    figure.update_yaxes(title_text=plotly_literal(y_title), showgrid=True, gridcolor=theme.GRID)
    return figure
