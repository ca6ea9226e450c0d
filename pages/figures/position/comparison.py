"""With and without, and one order against another: attention matrices, stages of the model, next tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

ROUNDING = 1e-5  # relative differences below this are float32 rounding, not the model telling order


def scores(
    values: ArrayLike, labels: Sequence[str], *, probability: bool, limit: float | None, named: bool = True
) -> Figure:
    """Return a small causal matrix [query, key]: what lies in the future is grey, few cells show their numbers.

    Args:
        values: [query, key].
        labels: a name for each position.
        probability: whether the values are; else they are signed.
        limit: the end of the scale.
        named: whether the rows carry the names; beside a picture that has them, numbers are enough.
    """
    values = np.asarray(values, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
    n = len(labels)
    figure = theme.heatmap(
        values,
        labels,
        [str(position) for position in range(n)],  # rows carry the tokens; columns have no room for them
        kind="probability" if probability else "signed",
        limit=limit,
        masked=np.triu(np.ones((n, n), dtype=bool), 1),
        height=360,
    )
    if not named:
        figure.update_yaxes(ticktext=list(figure.layout.xaxis.ticktext))
    figure.data[-1].colorbar.len = 1.0
    end = figure.data[-1].zmax
    if not probability:  # three numbers, however narrow the picture is
        figure.data[-1].colorbar.update(
            tickvals=[-end, 0, end], ticktext=[theme.fmt_logit(tick) for tick in (-end, 0.0, end)]
        )
    if n <= 6:
        decimals = 3 if n <= 4 else 2  # as many as the cells have room for
        shown = [
            [f"{value:.1%}" if probability else f"{value:.{decimals}f}".replace("-", "−") for value in row]
            for row in values
        ]
        theme.write_in_cells(
            figure, [[cell if key <= query else "" for key, cell in enumerate(row)] for query, row in enumerate(shown)]
        )
    return figure


def slopes(values: ArrayLike, n_first: int, *, names: tuple[str, str], x_title: str, y_title: str) -> Figure:
    """Return ALiBi's slope of each head on a logarithmic scale; after the first `n_first` a second rule holds."""
    values = np.asarray(values, dtype=np.float64)
    heads = np.arange(len(values))
    figure = theme.base_figure(260, x_title=x_title, y_title=y_title)
    for name, part, colour in zip(names, (heads < n_first, heads >= n_first), theme.CATEGORICAL, strict=False):
        if part.any():
            figure.add_scatter(
                x=heads[part],
                y=values[part],
                name=plotly_literal(name),
                mode="lines+markers",
                line={"color": colour, "width": 1, "dash": "dot"},
                marker={"size": 10},
                hovertemplate="%{x}: <b>%{y:.8g}</b>",
            )
    figure.update_layout(showlegend=bool((heads >= n_first).any()))
    figure.update_xaxes(range=[-0.5, len(values) - 0.5], dtick=1 if len(values) <= 16 else 4)
    figure.update_yaxes(type="log", dtick=1, showgrid=True, gridcolor=theme.GRID)
    return figure


def stage_differences(values: ArrayLike, stages: Sequence[str], encodings: Sequence[str], value_title: str) -> Figure:
    """Return how far two texts are apart at each stage [stage, encoding]; 0 up to rounding is written as 0."""
    values = np.asarray(values, dtype=np.float64)
    figure = theme.heatmap(
        values, stages, encodings, kind="amount", value_title=value_title, height=130 + 32 * len(stages)
    )
    theme.write_in_cells(figure, [["0" if value < ROUNDING else f"{value:.3f}" for value in row] for row in values])
    figure.update_traces(textfont_size=11, selector={"mode": "text"})  # so that they stand apart on a phone
    figure.update_yaxes(tickfont_size=10)
    return figure


def differences(values: ArrayLike, tokens: Sequence[str], encodings: Sequence[str], value_title: str) -> Figure:
    """Return differences of probabilities [token, encoding] with the numbers in the cells; the scale ends at ±1."""
    values = np.asarray(values, dtype=np.float64)
    figure = theme.heatmap(
        values, tokens, encodings, kind="signed", limit=1.0, value_title=value_title, height=140 + 32 * len(tokens)
    )
    theme.write_in_cells(figure, [[_short_difference(value) for value in row] for row in values])
    figure.update_traces(textfont_size=10, selector={"mode": "text"})  # so that they stand apart on a phone
    return figure


def _short_difference(value: float) -> str:
    return "0" if abs(value) < 0.0005 else f"{value:+.3f}".replace("-", "−")


def two_distributions(
    labels: Sequence[str], first: ArrayLike, second: ArrayLike, names: tuple[str, str], value_title: str
) -> Figure:
    """Return two next-token distributions as pairs of bars, the first label on top."""
    figure = theme.base_figure(120 + 44 * len(labels), x_title=value_title)
    for name, probs, colour in zip(names, (first, second), theme.CATEGORICAL, strict=False):
        probs = np.asarray(probs, dtype=np.float64)
        figure.add_bar(
            x=probs,
            y=np.arange(len(labels)),
            orientation="h",
            name=plotly_literal(name),
            text=[theme.fmt_probability(p) for p in probs],
            textposition="outside",
            cliponaxis=False,
            marker={"color": colour},
            customdata=[plotly_literal(label) for label in labels],
            hovertemplate="%{customdata}<br><b>%{x:.6g}</b>",
        )
    figure.update_layout(barmode="group", bargap=0.25, legend={"traceorder": "normal"})
    theme.end_at(figure, max(float(np.asarray(probs).max()) for probs in (first, second)))
    figure.update_xaxes(tickformat=theme.PERCENT, showgrid=True, gridcolor=theme.GRID)
    figure.update_yaxes(
        tickmode="array",
        tickvals=list(range(len(labels))),
        ticktext=[plotly_literal(label) for label in labels],
        autorange="reversed",
    )
    return figure
