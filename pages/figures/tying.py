"""Figures of the page on weight tying and parameters. Names and titles are the page's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from pages.figures import theme


def stored(cases: Mapping[str, tuple[int, int]], *, names: tuple[str, str], value_title: str) -> go.Figure:
    """Return, for each case, the numbers stored for the embedding and those stored again for the head."""
    figure = theme.base_figure(130 + 44 * len(cases))
    for part, (name, colour) in enumerate(zip(names, theme.CATEGORICAL, strict=False)):
        figure.add_bar(
            x=[numbers[part] for numbers in cases.values()],
            y=[escape(case) for case in cases],
            name=escape(name),
            orientation="h",
            marker_color=colour,
            text=[theme.fmt_count(numbers[part]) if numbers[part] else "" for numbers in cases.values()],
            insidetextanchor="middle",
            hovertemplate="%{y}<br>" + escape(name) + "<br><b>%{x:,}</b><extra></extra>",
        )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(showgrid=True, gridcolor=theme.GRID, tickformat=",", title_text=value_title)
    return figure


def stacked(
    totals: Mapping[str, Mapping[str, float]],
    *,
    group_names: Mapping[str, str],
    value_title: str,
    share: bool = False,
) -> go.Figure:
    """Return one bar a model (or a count of it), its groups of parameters or of compute laid end to end.

    Args:
        totals: label -> group -> amount.
        group_names: group -> its name on screen, in the order of colours; a group keeps its colour in every figure.
        value_title: what the length means.
        share: draw each amount as a part of its bar's sum, so that all bars are equally long.
    """
    figure = theme.base_figure(130 + (24 if share else 52) * len(totals))
    labels = [escape(label) for label in totals]
    sums = [sum(groups.values()) for groups in totals.values()]
    for (group, name), colour in zip(group_names.items(), theme.CATEGORICAL, strict=True):
        amounts = [groups.get(group, 0) for groups in totals.values()]
        if not any(amounts):
            continue
        parts = [amount / total for amount, total in zip(amounts, sums, strict=True)]
        figure.add_bar(
            x=parts if share else amounts,
            y=labels,
            name=escape(name),
            orientation="h",
            marker_color=colour,
            customdata=list(zip(amounts, parts, strict=True)),
            hovertemplate=f"%{{y}}<br>{escape(name)}<br>"
            "<b>%{customdata[0]:,.15~g}</b> · %{customdata[1]:.2%}<extra></extra>",
        )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_xaxes(
        showgrid=True, gridcolor=theme.GRID, tickformat=".0%" if share else "~s", title_text=value_title
    )
    if share:
        figure.update_xaxes(range=[0, 1])
    return figure


def treemap(rows: Sequence[tuple[str, str, str, int]], *, group_names: Mapping[str, str], root: str) -> go.Figure:
    """Return tensors as areas within their groups, in proportion to their parameters.

    Args:
        rows: name, group, formula in numbers and count of each tensor.
        group_names: as in `stacked`.
        root: the name of the whole.
    """
    colours = dict(zip(group_names, theme.CATEGORICAL, strict=True))
    present = [group for group in group_names if any(row[1] == group for row in rows)]
    sums = {group: sum(row[3] for row in rows if row[1] == group) for group in present}
    figure = theme.base_figure(460)
    figure.add_treemap(
        ids=["root", *present, *(f"{group}/{name}" for name, group, _, _ in rows)],
        labels=[escape(text) for text in (root, *(group_names[g] for g in present), *(row[0] for row in rows))],
        parents=["", *("root" for _ in present), *(group for _, group, _, _ in rows)],
        values=[sum(sums.values()), *sums.values(), *(row[3] for row in rows)],
        customdata=["", *("" for _ in present), *(f"{formula} = " for _, _, formula, _ in rows)],
        branchvalues="total",
        marker={"colors": ["rgba(0, 0, 0, 0)", *(colours[g] for g in present), *(colours[row[1]] for row in rows)]},
        texttemplate="%{label}<br>%{value:,}",
        hovertemplate="%{label}<br>%{customdata}<b>%{value:,}</b><br>%{percentRoot:.2%}<extra></extra>",
        tiling={"pad": 2},
        pathbar={"visible": False},
    )
    figure.update_layout(margin={"l": 0, "r": 0, "t": 8, "b": 0})
    return figure


def row_cosines(cosines: ArrayLike, *, x_title: str, y_title: str) -> go.Figure:
    """Return how many rows have which cosine, in 40 bins from -1 to 1."""
    counts, edges = np.histogram(np.asarray(cosines, dtype=np.float64), bins=40, range=(-1.0, 1.0))
    figure = theme.base_figure(300)
    figure.add_bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts,
        width=np.diff(edges) * 0.94,
        customdata=np.stack([edges[:-1], edges[1:]], axis=1),
        marker_color=theme.CATEGORICAL[0],
        hovertemplate="%{customdata[0]:.2f} … %{customdata[1]:.2f}<br><b>%{y:,}</b><extra></extra>",
    )
    figure.update_xaxes(range=[-1.02, 1.02], zeroline=True, zerolinecolor=theme.GRID, title_text=x_title)
    figure.update_yaxes(showgrid=True, gridcolor=theme.GRID, title_text=y_title)
    return figure


def memory(lengths: Sequence[int], series: Mapping[str, Sequence[float]], *, x_title: str, y_title: str) -> go.Figure:
    """Return memory against the number of cached tokens, one line a kind."""
    figure = theme.lines(list(lengths), series, height=320)
    for trace, name in zip(figure.data, series, strict=True):
        trace.name = escape(name)
    figure.update_yaxes(rangemode="tozero", title_text=y_title)
    figure.update_xaxes(tickformat=",", title_text=x_title)
    return figure
