"""A next-token distribution before and after the settings.

Labels are plain text that has been through `visible`; here they are only kept from being read as HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure


@dataclass(frozen=True)
class Wording:
    """Names of the parts of a distribution, in the reader's language."""

    model: str = "the model's (T = 1)"
    drawn_from: str = "drawn from"
    removed: str = "removed"
    rest: str = "the other {n:,} tokens"
    axis: str = "probability"


def distribution(
    initial: ArrayLike,
    final: ArrayLike,
    removed: ArrayLike,
    shown: Sequence[int],
    labels: Sequence[str],
    *,
    chosen: int | None = None,
    wording: Wording | None = None,
) -> Figure:
    """Return a next-token distribution over the whole vocabulary: some tokens as bars, all others as one.

    Each token has a light bar, the model's own probability, and on it a full one, what the settings made of it; a
    token that was removed has a grey, hatched bar alone.

    Args:
        initial: [V] probabilities as the model gave them.
        final: [V] probabilities after the settings.
        removed: [V] booleans, what the settings removed.
        shown: ids to draw, in order; the first on top.
        labels: their names as plain text; they may repeat.
        chosen: the id that was drawn, to be outlined; it has to be among those shown.
        wording: names for the legend.
    """
    words = wording or Wording()
    before, after = np.asarray(initial, dtype=np.float64), np.asarray(final, dtype=np.float64)
    gone = np.asarray(removed, dtype=bool)
    ids = list(shown)
    names = [plotly_literal(label) for label in labels]
    n_rest = len(before) - len(ids)
    before_bars, after_bars = list(before[ids]), list(after[ids])
    out = [bool(flag) for flag in gone[ids]]
    if n_rest:
        names.append(plotly_literal(words.rest.format(n=n_rest)))
        before_bars.append(max(before.sum() - sum(before_bars), 0.0))
        after_bars.append(max(after.sum() - sum(after_bars), 0.0))
        out.append(False)
    rows = np.arange(len(names))
    figure = theme.base_figure(100 + 26 * len(names))
    figure.update_layout(barmode="overlay", legend={"traceorder": "normal"})
    hover = "%{customdata}<br>%{fullData.name}: <b>%{x:.6g}</b><extra></extra>"
    figure.add_bar(
        x=before_bars,
        y=rows,
        orientation="h",
        width=0.82,
        name=plotly_literal(words.model),
        text=[plotly_literal(words.removed) if flag else "" for flag in out],
        textposition="outside",
        constraintext="none",
        cliponaxis=False,
        marker={
            "color": [theme.REMOVED if flag else "rgba(36, 132, 214, 0.25)" for flag in out],
            "pattern": {"shape": ["/" if flag else "" for flag in out], "size": 6, "solidity": 0.25},
        },
        customdata=[
            f"{name} · {plotly_literal(words.removed)}" if flag else name for name, flag in zip(names, out, strict=True)
        ],
        hovertemplate=hover,
    )
    line = [2.5 if index < len(ids) and ids[index] == chosen else 0 for index in range(len(names))]
    figure.add_bar(
        x=after_bars,
        y=rows,
        orientation="h",
        width=0.5,
        name=plotly_literal(words.drawn_from),
        text=["" if flag else theme.fmt_probability(value) for value, flag in zip(after_bars, out, strict=True)],
        textposition="outside",
        constraintext="none",
        cliponaxis=False,
        marker={"color": theme.CATEGORICAL[0], "line": {"color": theme.OUTLINE, "width": line}},
        customdata=names,
        hovertemplate=hover,
    )
    figure.update_xaxes(title_text=plotly_literal(words.axis))
    figure.update_yaxes(tickmode="array", tickvals=rows, ticktext=names, autorange="reversed")
    top = max([*before_bars, *after_bars])
    theme.end_at(figure, top)
    figure.update_xaxes(tickformat=theme.PERCENT, showgrid=True, gridcolor=theme.GRID)
    if top > 0.7:
        figure.update_xaxes(tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])  # no probability is more than 1
    return figure
