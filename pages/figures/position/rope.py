"""RoPE as pictures: pairs turned in their planes, which components form a pair, the score by difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

QUERY, KEY = theme.CATEGORICAL[0], theme.CATEGORICAL[1]
_FAINT = "rgba(138, 143, 152, 0.45)"
_ROW = 3.2  # from one row of planes to the next, in radii: a number has to fit between them on a phone too


def pair_planes(
    query: tuple[ArrayLike, ArrayLike],
    key: tuple[ArrayLike, ArrayLike],
    chosen: int,
    numbers: Sequence[int],
    *,
    names: tuple[str, str, str, str],
) -> Figure:
    """Return pairs of a query and a key as arrows, each pair in its own plane, before and after rotation.

    Args:
        query, key: pairs before and after, [n, 2] each; each plane has its own scale.
        chosen: index of the pair to outline.
        numbers: what each pair is called.
        names: of the query before and after, the key before and after.
    """
    arrows = [np.asarray(pairs, dtype=np.float64) for pairs in (*query, *key)]
    n_pairs = len(arrows[0])
    columns = min(8, n_pairs)
    rows = math.ceil(n_pairs / columns)
    figure = theme.base_figure(70 + 110 * rows)
    scale = np.maximum(np.max([np.linalg.norm(pairs, axis=1) for pairs in arrows], axis=0), 1e-12)
    centres = np.array([[2.4 * (pair % columns), -_ROW * (pair // columns)] for pair in range(n_pairs)])
    turn = np.linspace(0, 2 * math.pi, 49)
    for pair, (x, y) in enumerate(centres):
        rim = {"color": theme.OUTLINE, "width": 2} if pair == chosen else {"color": _FAINT, "width": 1}
        figure.add_scatter(
            x=x + np.cos(turn), y=y + np.sin(turn), mode="lines", line=rim, hoverinfo="skip", showlegend=False
        )
        figure.add_annotation(
            x=x, y=y + 1.0, yanchor="bottom", text=str(numbers[pair]), showarrow=False, borderpad=0, font={"size": 10}
        )
    styles = [(QUERY, "dot"), (QUERY, "solid"), (KEY, "dot"), (KEY, "solid")]
    for name, pairs, (colour, dash) in zip(names, arrows, styles, strict=True):
        ends = centres + pairs / scale[:, None]
        x, y = (_segments(centres[:, axis], ends[:, axis]) for axis in (0, 1))
        told = np.repeat(np.concatenate([np.array(numbers)[:, None], pairs], axis=1), 3, axis=0)
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines+markers",
            name=plotly_literal(name),
            line={"color": colour, "width": 2.5 if dash == "solid" else 1.5, "dash": dash},
            marker={"size": [0, 7 if dash == "solid" else 5, 0] * n_pairs},
            customdata=told,
            hovertemplate="%{customdata[0]}: (%{customdata[1]:.5f}, %{customdata[2]:.5f})",
        )
    figure.update_xaxes(visible=False, range=[-1.2, 2.4 * (columns - 1) + 1.2])
    figure.update_yaxes(visible=False, range=[-_ROW * (rows - 1) - 1.15, 2.2], scaleanchor="x")
    return figure


def _segments(starts: np.ndarray, ends: np.ndarray) -> list[float | None]:
    """Return coordinates of separate line segments for one trace."""
    return [value for start, end in zip(starts, ends, strict=True) for value in (float(start), float(end), None)]


def pair_plane(
    query: tuple[ArrayLike, ArrayLike], key: tuple[ArrayLike, ArrayLike], *, names: tuple[str, str, str, str]
) -> Figure:
    """Return one pair of a query and a key as arrows, before and after rotation, with the arcs they turned through.

    Args:
        query, key: the pair before and after, [2] each.
        names: of the query before and after, the key before and after.
    """
    arrows = [np.asarray(arrow, dtype=np.float64) for arrow in (*query, *key)]
    size = max(float(np.linalg.norm(arrow)) for arrow in arrows) or 1.0
    figure = theme.base_figure(300)
    figure.update_layout(showlegend=False, margin={"t": 16})
    for (before, after), colour in ((arrows[:2], QUERY), (arrows[2:], KEY)):
        start, end = (math.atan2(arrow[1], arrow[0]) for arrow in (before, after))
        turn = np.linspace(start, start + math.remainder(end - start, 2 * math.pi), 40)
        radius = float(np.linalg.norm(before))
        figure.add_scatter(
            x=radius * np.cos(turn),
            y=radius * np.sin(turn),
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            line={"color": colour, "width": 1},
        )
    for name, arrow, colour, dash in zip(names, arrows, (QUERY, QUERY, KEY, KEY), ("dot", "solid") * 2, strict=True):
        figure.add_scatter(
            x=[0, arrow[0]],
            y=[0, arrow[1]],
            mode="lines+markers",
            name=plotly_literal(name),
            line={"color": colour, "width": 3 if dash == "solid" else 2, "dash": dash},
            marker={"size": [0, 10 if dash == "solid" else 7]},
            hovertemplate="(%{x:.5f}, %{y:.5f})",
        )
    figure.update_xaxes(range=[-1.1 * size, 1.1 * size], zeroline=True, zerolinecolor=theme.GRID, nticks=4)
    figure.update_yaxes(
        range=[-1.1 * size, 1.1 * size], zeroline=True, zerolinecolor=theme.GRID, nticks=4, scaleanchor="x"
    )
    return figure


def layout_strip(d_head: int, *, names: Mapping[str, str], component: str, pair: str) -> Figure:
    """Return two rows of d_head cells, one a RoPE layout; cells of one pair have the same colour and number.

    `names` maps "half_split" and "interleaved" to what the rows are called.
    """
    half = d_head // 2
    pairs = {"half_split": [*range(half), *range(half)], "interleaved": [index // 2 for index in range(d_head)]}
    figure = theme.base_figure(190, x_title=component)
    hues = [[place / max(1, half - 1), theme.position_colour(place)] for place in range(half)]
    figure.add_heatmap(
        z=[pairs[layout] for layout in names],
        text=[[str(number) for number in pairs[layout]] for layout in names],
        texttemplate="%{text}" if d_head <= 40 else "",
        textfont={"color": "white", "size": 11},
        colorscale=hues if half > 1 else [[0, theme.position_colour(0)], [1, theme.position_colour(0)]],
        showscale=False,
        xgap=2,
        ygap=8,
        hovertemplate=f"{plotly_literal(component)} %{{x}} · {plotly_literal(pair)} %{{z}}<extra></extra>",
    )
    figure.update_yaxes(
        tickmode="array",
        tickvals=[0, 1],
        ticktext=[plotly_literal(name) for name in names.values()],
        autorange="reversed",
    )
    return figure


def score_by_difference(
    differences: ArrayLike,
    total: ArrayLike,
    pair: ArrayLike,
    here: int,
    *,
    names: tuple[str, str],
    titles: tuple[str, str],
) -> Figure:
    """Return the score over the difference of positions, with one pair's share of it, and where this text stands."""
    differences, total = np.asarray(differences), np.asarray(total)
    figure = theme.lines(
        differences, {names[0]: total, names[1]: pair}, x_title=titles[0], y_title=titles[1], height=340
    )
    figure.add_scatter(
        x=[here],
        y=total[differences == here],
        mode="markers",
        marker={"size": 12, "color": "rgba(0, 0, 0, 0)", "line": {"color": theme.OUTLINE, "width": 2.5}},
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_hline(y=0, line={"color": _FAINT, "width": 1})
    return figure


def square(scores: ArrayLike, *, row_title: str, column_title: str, value_title: str) -> Figure:
    """Return scores [query position, key position] from the least to the largest, so that diagonals stand out."""
    scores = np.asarray(scores, dtype=np.float64)
    figure = theme.base_figure(440, x_title=column_title, y_title=row_title)
    figure.add_heatmap(
        z=scores,
        colorscale=theme.SEQUENTIAL,
        xgap=1,
        ygap=1,
        colorbar={"title": {"text": plotly_literal(value_title)}, "thickness": 8, "outlinewidth": 0, "nticks": 5},
        hovertemplate="%{y}, %{x}<br><b>%{z:.6g}</b><extra></extra>",
    )
    figure.update_layout(margin={"t": 16})
    figure.update_yaxes(autorange="reversed", nticks=7)
    figure.update_xaxes(nticks=7)
    return figure
