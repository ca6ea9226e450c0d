"""Figures of the generation page.

Labels are plain text that has been through `visible`; here they are only kept from being read as HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from pages.figures import theme


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
) -> go.Figure:
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
    names = [escape(label) for label in labels]
    n_rest = len(before) - len(ids)
    before_bars, after_bars = list(before[ids]), list(after[ids])
    out = [bool(flag) for flag in gone[ids]]
    if n_rest:
        names.append(escape(words.rest.format(n=n_rest)))
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
        name=escape(words.model),
        text=[escape(words.removed) if flag else "" for flag in out],
        textposition="outside",
        constraintext="none",
        cliponaxis=False,
        marker={
            "color": [theme.REMOVED if flag else "rgba(36, 132, 214, 0.25)" for flag in out],
            "pattern": {"shape": ["/" if flag else "" for flag in out], "size": 6, "solidity": 0.25},
        },
        customdata=[
            f"{name} · {escape(words.removed)}" if flag else name for name, flag in zip(names, out, strict=True)
        ],
        hovertemplate=hover,
    )
    line = [2.5 if index < len(ids) and ids[index] == chosen else 0 for index in range(len(names))]
    figure.add_bar(
        x=after_bars,
        y=rows,
        orientation="h",
        width=0.5,
        name=escape(words.drawn_from),
        text=["" if flag else theme.fmt_probability(value) for value, flag in zip(after_bars, out, strict=True)],
        textposition="outside",
        constraintext="none",
        cliponaxis=False,
        marker={"color": theme.CATEGORICAL[0], "line": {"color": theme.OUTLINE, "width": line}},
        customdata=names,
        hovertemplate=hover,
    )
    figure.update_xaxes(title_text=escape(words.axis))
    figure.update_yaxes(tickmode="array", tickvals=rows, ticktext=names, autorange="reversed")
    top = max([*before_bars, *after_bars])
    figure.update_xaxes(
        range=[0, 1.2 * top if top else 1], tickformat=theme.PERCENT, showgrid=True, gridcolor=theme.GRID
    )
    if top > 0.7:
        figure.update_xaxes(tickvals=[0, 0.2, 0.4, 0.6, 0.8, 1])  # no probability is more than 1
    return figure


def branches(
    parents: Sequence[int],
    labels: Sequence[str],
    strengths: Sequence[float],
    hints: Sequence[str],
    *,
    in_view: Sequence[bool],
    present: int,
    by_hand: Sequence[bool],
    x_title: str = "",
) -> go.Figure:
    """Return a tree of tokens, drawn from left to right; a branch runs in a lane of its own.

    Args:
        parents: index of each node's parent, -1 for the root; parents come before their children.
        labels: the tokens as plain text.
        strengths: 0..1, how strong a node's colour is.
        hints: what to say of each on hover, as plain text.
        in_view: whether a node belongs to the branch in view.
        present: index of the node the next token goes after; outlined.
        by_hand: whether a token was taken by hand; its marker is a diamond.
        x_title: what the distance from the left means.
    """
    depth, lane = _layout(parents)
    figure = theme.base_figure(110 + 34 * (max(lane, default=0) + 1))
    for shown, colour, width in ((False, theme.GRID, 2), (True, theme.CATEGORICAL[0], 3)):
        x: list[float | None] = []
        y: list[float | None] = []
        for node, parent in enumerate(parents):
            if parent >= 0 and in_view[node] == shown:
                x += [depth[parent], depth[parent] + 0.4, depth[node], None]
                y += [lane[parent], lane[node], lane[node], None]
        figure.add_scatter(
            x=x, y=y, mode="lines", line={"color": colour, "width": width}, hoverinfo="skip", showlegend=False
        )
    crowded = max(depth, default=0) > 40
    figure.add_scatter(
        x=depth,
        y=lane,
        mode="markers" if crowded else "markers+text",
        text=[escape(label if len(label) <= 10 else label[:9] + "…") for label in labels],
        textposition="top center",
        marker={
            "size": [15 if node == present else 10 for node in range(len(parents))],
            "symbol": ["diamond" if flag else "circle" for flag in by_hand],
            "color": list(strengths),
            "cmin": 0,
            "cmax": 1,
            "colorscale": theme.SEQUENTIAL,
            "line": {
                "color": [theme.OUTLINE if node == present else theme.CATEGORICAL[0] for node in range(len(parents))],
                "width": [3 if node == present else 1 for node in range(len(parents))],
            },
        },
        customdata=[escape(hint) for hint in hints],
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(visible=False, range=[max(lane, default=0) + 0.5, -0.8])
    figure.update_xaxes(tickformat="d", title_text=escape(x_title))
    return figure


def cache_times(
    with_cache: Sequence[float], without: Sequence[float], *, names: tuple[str, str], x_title: str, y_title: str
) -> go.Figure:
    """Return the milliseconds for the token at each length of the text, with and without the KV cache.

    Args:
        with_cache, without: seconds at length 1, 2, 3 ...
        names: for the legend.
        x_title, y_title: the axes' titles.
    """
    figure = theme.base_figure(320)
    lengths = np.arange(1, len(with_cache) + 1)
    for name, seconds, colour in zip(names, (with_cache, without), theme.CATEGORICAL, strict=False):
        figure.add_scatter(
            x=lengths,
            y=1000 * np.asarray(seconds, dtype=np.float64),
            name=escape(name),
            mode="lines",
            line={"color": colour, "width": 2},
            hovertemplate="%{y:.3g} ms",
        )
    figure.update_layout(hovermode="x unified")
    figure.update_xaxes(title_text=escape(x_title))
    figure.update_yaxes(title_text=escape(y_title), rangemode="tozero", showgrid=True, gridcolor=theme.GRID)
    return figure


def _layout(parents: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return each node's depth and lane: a first child stays in its parent's lane, every other takes a new one."""
    depth: list[int] = []
    lane: list[int] = []
    continued: set[int] = set()
    for parent in parents:
        depth.append(0 if parent < 0 else depth[parent] + 1)
        if parent >= 0 and parent not in continued:
            lane.append(lane[parent])
        else:
            lane.append(max(lane, default=-1) + 1)
        continued.add(parent)
    return depth, lane
