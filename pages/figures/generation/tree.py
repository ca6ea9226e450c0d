"""Texts that share their beginnings, as a tree of tokens from left to right.

Labels are plain text that has been through `visible`; here they are only kept from being read as HTML.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.figure import Figure

CLOSE = 6  # tokens from left to right, beyond which a phone has no room for what is written at them
_CROWDED = 40  # tokens from left to right, beyond which they are not written out
_LANE = 44  # pixels
_BELOW = 0.36  # of a lane, from a node to what is written below it: clear of the widest line


@dataclass(frozen=True)
class Path:
    """A way through the tree that stands out.

    Attributes:
        nodes: the numbers of its nodes.
        name: for the legend; "" for none.
        colour: of its line.
    """

    nodes: Collection[int]
    name: str = ""
    colour: str = theme.CATEGORICAL[0]


def tree(
    parents: Sequence[int],
    labels: Sequence[str],
    strengths: Sequence[float],
    hints: Sequence[str],
    *,
    paths: Sequence[Path],
    present: int | None = None,
    by_hand: Collection[int] = (),
    ends: Mapping[int, str] | None = None,
    x_title: str = "",
) -> Figure:
    """Return a tree; a branch runs in a lane of its own.

    Args:
        parents: index of each node's parent, -1 for the root; parents come before their children.
        labels: the tokens as plain text.
        strengths: 0..1, how strong a node's colour is.
        hints: what to say of each on hover, as plain text.
        paths: what stands out; where several run together, the first is the widest.
        present: the node to outline.
        by_hand: nodes whose marker is a diamond.
        ends: node -> what is written below it.
        x_title: what the distance from the left means.
    """
    depth, lane = layout(parents)
    deepest, lanes = max(depth, default=0), max(lane, default=0) + 1
    figure = theme.base_figure(110 + _LANE * lanes)
    everywhere = set().union(*(path.nodes for path in paths))
    others = Path([node for node in range(len(parents)) if node not in everywhere], colour=theme.GRID)
    for index, path in enumerate([others, *paths]):
        x: list[float | None] = []
        y: list[float | None] = []
        for node in sorted(path.nodes):
            if parents[node] >= 0:
                x += [depth[parents[node]], depth[parents[node]] + 0.4, depth[node], None]
                y += [lane[parents[node]], lane[node], lane[node], None]
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            name=plotly_literal(path.name),
            line={"color": path.colour, "width": 3 + 4 * (len(paths) - index) if index else 2},
            hoverinfo="skip",
            showlegend=bool(path.name),
        )
    figure.add_scatter(
        x=depth,
        y=lane,
        mode="markers" if deepest > _CROWDED else "markers+text",
        text=[plotly_literal(label if len(label) <= 18 else label[:17] + "…") for label in labels],
        # The last of a few reach to the left: on a phone there is no room on the right for half of what is written.
        textposition=["top left" if 0 < place == deepest <= CLOSE else "top center" for place in depth],
        marker={
            "size": [15 if node == present else 10 for node in range(len(parents))],
            "symbol": ["diamond" if node in by_hand else "circle" for node in range(len(parents))],
            "color": list(strengths),
            "cmin": 0,
            "cmax": 1,
            "colorscale": theme.SEQUENTIAL,
            "line": {
                "color": [theme.OUTLINE if node == present else theme.CATEGORICAL[0] for node in range(len(parents))],
                "width": [3 if node == present else 1 for node in range(len(parents))],
            },
        },
        customdata=[plotly_literal(hint) for hint in hints],
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
    )
    if ends:
        figure.add_scatter(
            x=[depth[node] for node in ends],
            y=[lane[node] + _BELOW for node in ends],
            mode="text",
            text=[plotly_literal(text) for text in ends.values()],
            textposition="middle left",
            hoverinfo="skip",
            showlegend=False,
        )
    figure.update_yaxes(visible=False, range=[lanes - 0.5, -0.8])
    step = max(round(deepest / 12), 1)
    figure.update_xaxes(title_text=plotly_literal(x_title), tickvals=list(range(0, deepest + 1, step)))
    left, right = (0.13, 0.04) if deepest <= CLOSE else (0.07, 0.07)  # of the whole: for half of what is written there
    margin = max(deepest, 1)
    figure.update_xaxes(range=[-left * margin, deepest + right * margin])
    return figure


def layout(parents: Sequence[int]) -> tuple[list[int], list[int]]:
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
