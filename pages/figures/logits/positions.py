"""Pictures of next tokens and of texts: probabilities, surprisal, one token followed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.axes import tilt
from pages.figures.figure import Figure

MODEL, GRAMMAR = theme.CATEGORICAL[0], theme.CATEGORICAL[4]
_ALL_NAMED, _SOME_NAMED = 40, 20  # tokens of a text on an axis: all of a short one, some of a longer one


def next_tokens(
    labels: Sequence[str], model: ArrayLike, grammar: ArrayLike | None, names: tuple[str, str], chosen: int | None
) -> Figure:
    """Return the most probable next tokens as bars; beside each, when known, the grammar's own probability.

    Args:
        labels: one per token.
        model: its probability under the model.
        grammar: its probability under the grammar, or None.
        names: of the two.
        chosen: index of the token to outline.
    """
    figure = theme.bars(model, labels, kind="probability", chosen=chosen)
    if grammar is None:
        return figure
    other = theme.bars(grammar, labels, kind="probability", colours=[GRAMMAR] * len(labels))
    figure.add_trace(other.data[0])
    figure.update_traces(showlegend=False, constraintext="none")
    for bars, name, colour in zip(tuple(figure.data), names, (MODEL, GRAMMAR), strict=True):
        bars.offsetgroup = name
        # The legend's own bars are empty: they are free of the outline of the chosen one.
        figure.add_bar(x=[None], y=[None], orientation="h", name=name, marker_color=colour, offsetgroup=name)
    end = max(figure.layout.xaxis.range[1], other.layout.xaxis.range[1])
    figure.update_layout(
        barmode="group", showlegend=True, height=90 + 42 * len(labels), bargap=0.25, xaxis_range=[0, end]
    )
    return figure


def surprisal(
    tokens: Sequence[str], model: ArrayLike, grammar: ArrayLike | None, names: tuple[str, str], titles: tuple[str, str]
) -> Figure:
    """Return the surprisal of each token that came, in bits, as upright bars; beside each the grammar's.

    Args:
        tokens: a label for each token but the first, which nothing foresees.
        model: bits under the model.
        grammar: bits under the grammar; not finite where it never says this; or None.
        names: of the two.
        titles: of the axis of tokens and that of bits.
    """
    figure = theme.base_figure(340)
    series = [(names[0], model, MODEL)] + ([(names[1], grammar, GRAMMAR)] if grammar is not None else [])
    for name, bits, colour in series:
        values = np.asarray(bits, dtype=np.float64)
        figure.add_bar(
            x=np.arange(len(tokens)),
            y=np.where(np.isfinite(values), values, np.nan),
            name=name,
            marker={"color": colour},
            customdata=[plotly_literal(token) for token in tokens],
            hovertemplate=f"%{{customdata}}<br>{name}: <b>%{{y:.6g}}</b> bits<extra></extra>",
        )
    figure.update_layout(
        barmode="group",
        showlegend=len(series) > 1,
        xaxis=_token_axis(tokens, titles[0]),
        yaxis={"title_text": titles[1], "showgrid": True, "gridcolor": theme.GRID, "rangemode": "tozero"},
    )
    return tilt(figure)


def followed(
    tokens: Sequence[str], probs: ArrayLike, ranks: Sequence[int], titles: tuple[str, str], rank: str
) -> Figure:
    """Return the probability of one token as the next one at every position, with its rank.

    Args:
        tokens: a label for each position.
        probs: its probability after that position.
        ranks: its rank there.
        titles: of the positions and the probability.
        rank: the word for rank.
    """
    figure = theme.base_figure(300)
    figure.add_scatter(
        x=np.arange(len(tokens)),
        y=np.asarray(probs, dtype=np.float64),
        mode="lines+markers",
        line={"color": MODEL, "width": 2},
        customdata=[[plotly_literal(token), place] for token, place in zip(tokens, ranks, strict=True)],
        hovertemplate=f"%{{customdata[0]}}<br><b>%{{y:.4%}}</b><br>{rank} %{{customdata[1]}}<extra></extra>",
    )
    figure.update_layout(
        xaxis=_token_axis(tokens, titles[0]),
        yaxis={
            "title_text": titles[1],
            "tickformat": theme.PERCENT,
            "rangemode": "tozero",
            "showgrid": True,
            "gridcolor": theme.GRID,
        },
    )
    return tilt(figure)


def losses(bits: ArrayLike, labels: Sequence[str], title: str) -> Figure:
    """Return bits per token of some texts, as bars."""
    figure = theme.bars(bits, labels, kind="amount")
    figure.update_layout(xaxis_title_text=title)
    return figure


def _token_axis(tokens: Sequence[str], title: str) -> dict[str, object]:
    """Return the axis of a text's tokens; the labels of a long one are the slowest part of its picture to draw."""
    every = 1 if len(tokens) <= _ALL_NAMED else math.ceil(len(tokens) / _SOME_NAMED)
    return {
        "title_text": title,
        "tickmode": "array",
        "tickvals": list(range(0, len(tokens), every)),
        "ticktext": [plotly_literal(token) for token in tokens[::every]],
    }
