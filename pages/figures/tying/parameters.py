"""Figures of the page on weight tying and parameters. Names and titles are the page's own words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

T = TypeVar("T")


def stored(cases: Mapping[str, tuple[int, int]], *, names: tuple[str, str], value_title: str) -> Figure:
    """Return, for each case, the numbers stored for the embedding and those stored again for the head."""
    figure = theme.base_figure(130 + 44 * len(cases))
    for part, (name, colour) in enumerate(zip(names, theme.CATEGORICAL, strict=False)):
        figure.add_bar(
            x=[numbers[part] for numbers in cases.values()],
            y=[plotly_literal(case) for case in cases],
            name=plotly_literal(name),
            orientation="h",
            marker_color=colour,
            text=[theme.fmt_count(numbers[part]) if numbers[part] else "" for numbers in cases.values()],
            insidetextanchor="middle",
            hovertemplate="%{y}<br>" + plotly_literal(name) + "<br><b>%{x:,}</b><extra></extra>",
        )
    figure.update_layout(barmode="stack", legend={"traceorder": "normal"})
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(showgrid=True, gridcolor=theme.GRID, tickformat=",", title_text=value_title)
    return figure


def stacked(
    totals: Mapping[str, Mapping[Any, float]],
    *,
    group_names: Mapping[str, str],
    value_title: str,
    share: bool = False,
) -> Figure:
    """Return one bar per model (or a count of it), its groups of parameters or of compute laid end to end.

    Args:
        totals: label -> group -> amount.
        group_names: group -> its name on screen, in the order of colours; a group keeps its colour in every figure.
        value_title: what the length means.
        share: draw each amount as a part of its bar's sum, so that all bars are equally long.
    """
    figure = theme.base_figure(130 + (24 if share else 52) * len(totals))
    labels = [plotly_literal(label) for label in totals]
    sums = [sum(groups.values()) for groups in totals.values()]
    for (group, name), colour in zip(group_names.items(), theme.CATEGORICAL, strict=True):
        amounts = [groups.get(group, 0) for groups in totals.values()]
        if not any(amounts):
            continue
        parts = [amount / total for amount, total in zip(amounts, sums, strict=True)]
        figure.add_bar(
            x=parts if share else amounts,
            y=labels,
            name=plotly_literal(name),
            orientation="h",
            marker_color=colour,
            customdata=list(zip(amounts, parts, strict=True)),
            hovertemplate=f"%{{y}}<br>{plotly_literal(name)}<br>"
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


def treemap(rows: Sequence[tuple[str, str, str, int]], *, group_names: Mapping[str, str], root: str) -> Figure:
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
        labels=[plotly_literal(text) for text in (root, *(group_names[g] for g in present), *(row[0] for row in rows))],
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


def row_cosines(cosines: ArrayLike, *, x_title: str, y_title: str) -> Figure:
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


def memory(lengths: Sequence[int], series: Mapping[str, Sequence[float]], *, x_title: str, y_title: str) -> Figure:
    """Return memory against the number of cached tokens, one line per kind."""
    figure = theme.lines(list(lengths), series, height=320)
    for trace, name in zip(figure.data, series, strict=True):
        trace.name = plotly_literal(name)
    figure.update_yaxes(rangemode="tozero", title_text=y_title)
    figure.update_xaxes(tickformat=",", title_text=x_title)
    return figure


def claimed_and_computed(
    labels: Sequence[str], first: Sequence[float], second: Sequence[float], *, names: tuple[str, str]
) -> Figure:
    """Return two probabilities for each label as pairs of bars: what is claimed, grey, and what is computed."""
    figure = theme.base_figure(96 + 40 * len(labels))
    for name, values, colour in zip(names, (first, second), (theme.REMOVED, theme.CATEGORICAL[0]), strict=True):
        figure.add_bar(
            x=list(values),
            y=[plotly_literal(label) for label in labels],
            orientation="h",
            name=plotly_literal(name),
            marker_color=colour,
            text=[theme.fmt_probability(value) for value in values],
            textposition="outside",
            constraintext="none",
            textfont={"size": 11},
            cliponaxis=False,
            hovertemplate="%{y}<br><b>%{x:.4%}</b>",
        )
    figure.update_layout(barmode="group", bargap=0.25, legend={"traceorder": "normal"})
    figure.update_yaxes(autorange="reversed", type="category")
    theme.end_at(figure, max(*first, *second))
    figure.update_xaxes(tickformat=theme.PERCENT, showgrid=True, gridcolor=theme.GRID)
    return figure


def cosines(labels: Sequence[str], values: Sequence[float], *, value_title: str) -> Figure:
    """Return a cosine for each label as a bar from 0, on an axis from -1 to 1."""
    figure = theme.bars(values, labels, kind="signed", value_title=value_title, height=110 + 20 * len(labels))
    figure.update_xaxes(range=[-1.15, 1.15])
    return figure


_HOLDING_X = 0.46, 0.62, 0.86  # of the plot's width: where names end, Parameters and storages


def holding(held: Sequence[tuple[str, int, str, str]], *, titles: tuple[str, str, str]) -> Figure:
    """Return names on the left, the Parameters they mean in the middle, and the storages of these on the right.

    Args:
        held: name, number of the Parameter, letter of the storage, and what the storage is; one for each name.
        titles: of the three columns.
    """
    n_rows = len(held)
    left, middle, right = _HOLDING_X
    names = _column((name for name, _parameter, _storage, _text in held), left, n_rows)
    parameters = _column((parameter for _name, parameter, _storage, _text in held), middle, n_rows)
    storages = _column((storage for _name, _parameter, storage, _text in held), right, n_rows)
    storage_of = {parameter: storage for _name, parameter, storage, _text in held}
    about = {storage: plotly_literal(text) for _name, _parameter, storage, text in held}
    colours = {storage: theme.CATEGORICAL[ord(storage) - ord("A")] for storage in storages}

    figure = theme.base_figure(60 + 108 * n_rows)
    for name, parameter, storage, _text in held:
        ends = names[name], parameters[parameter], storages[storage]
        figure.add_scatter(
            x=[x for x, _y in ends], y=[y for _x, y in ends], mode="lines", line={"color": theme.REMOVED, "width": 2}
        )
    figure.update_traces(hoverinfo="skip")
    _marks(figure, names, list(names), "middle left", marker={"size": 1, "color": theme.GRID})
    _marks(
        figure,
        parameters,
        [f"P{parameter}" for parameter in parameters],
        marker={"symbol": "circle", "size": 32, "color": [colours[storage_of[p]] for p in parameters]},
    )
    _marks(
        figure,
        storages,
        list(storages),
        marker={"symbol": "square", "size": 42, "color": list(colours.values())},
        hover=list(about.values()),
    )
    for storage, (x, y) in storages.items():
        text = "<br>".join(about[storage].split(" · "))
        figure.add_annotation(x=x, y=y, text=text, showarrow=False, yanchor="top", yshift=-21, font={"size": 11})
    for x, title, anchor in zip(_HOLDING_X, titles, ("right", "center", "center"), strict=True):
        figure.add_annotation(
            x=x,
            y=-0.9,
            text=plotly_literal(title),
            showarrow=False,
            xanchor=anchor,
            font={"size": 12},
        )
    figure.update_layout(showlegend=False, margin={"l": 0, "r": 0, "t": 0, "b": 0})
    figure.update_xaxes(range=[0, 1], visible=False)
    figure.update_yaxes(range=[n_rows - 0.1, -1.1], visible=False)
    return figure


def _column(entries: Iterable[T], x: float, n_rows: int) -> dict[T, tuple[float, float]]:
    """Return where a column's entries stand, equal ones in one place, in the middle of all rows."""
    unique = list(dict.fromkeys(entries))
    return {entry: (x, (n_rows - len(unique)) / 2 + row) for row, entry in enumerate(unique)}


def _marks(
    figure: Figure,
    places: Mapping[T, tuple[float, float]],
    texts: Sequence[str],
    position: str = "middle center",
    *,
    marker: Mapping[str, object],
    hover: Sequence[str] | None = None,
) -> None:
    """Draw one column: a mark with its text at each place."""
    figure.add_scatter(
        x=[x for x, _y in places.values()],
        y=[y for _x, y in places.values()],
        mode="markers+text",
        marker={**marker, "line": {"width": 0}},
        text=[plotly_literal(text) for text in texts],
        textposition=position,
        textfont={"size": 13, "color": "white" if position == "middle center" else None},
        customdata=hover or [plotly_literal(text) for text in texts],
        hovertemplate="%{customdata}<extra></extra>",
        cliponaxis=False,
    )
