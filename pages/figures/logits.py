"""Pictures of logits: next tokens, surprisal, length and angle, logit lens, contributions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.blocks import roomy, tilt
from pages.figures.figure import Figure

MODEL, GRAMMAR = theme.CATEGORICAL[0], theme.CATEGORICAL[4]
MAX_CELLS_WITH_TEXT = 240
_WIDTH = 40  # Latin characters that fit into all columns of a heat map together


def next_tokens(
    labels: Sequence[str], model: ArrayLike, grammar: ArrayLike | None, names: tuple[str, str], chosen: int | None
) -> Figure:
    """Return the most probable next tokens as bars; beside each, when known, the grammar's own probability.

    Args:
        labels: one a token.
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
    every = max(1, len(tokens) // 40)
    figure.update_layout(
        barmode="group",
        showlegend=len(series) > 1,
        xaxis={
            "title_text": titles[0],
            "tickmode": "array",
            "tickvals": list(range(0, len(tokens), every)),
            "ticktext": [plotly_literal(token) for token in tokens[::every]],
        },
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
    every = max(1, len(tokens) // 40)
    figure.add_scatter(
        x=np.arange(len(tokens)),
        y=np.asarray(probs, dtype=np.float64),
        mode="lines+markers",
        line={"color": MODEL, "width": 2},
        customdata=[[plotly_literal(token), place] for token, place in zip(tokens, ranks, strict=True)],
        hovertemplate=f"%{{customdata[0]}}<br><b>%{{y:.4%}}</b><br>{rank} %{{customdata[1]}}<extra></extra>",
    )
    figure.update_layout(
        xaxis={
            "title_text": titles[0],
            "tickmode": "array",
            "tickvals": list(range(0, len(tokens), every)),
            "ticktext": [plotly_literal(token) for token in tokens[::every]],
        },
        yaxis={
            "title_text": titles[1], "tickformat": theme.PERCENT, "rangemode": "tozero", "showgrid": True,
            "gridcolor": theme.GRID,
        },
    )  # fmt: skip
    return tilt(figure)


def losses(bits: ArrayLike, labels: Sequence[str], title: str) -> Figure:
    """Return bits per token of some texts, as bars."""
    figure = theme.bars(bits, labels, kind="amount")
    figure.update_layout(xaxis_title_text=title)
    return figure


def dimensions(parts: ArrayLike, indices: Sequence[int], title: str) -> Figure:
    """Return what some dimensions add to a logit, as bars labelled by their index in d_model."""
    figure = roomy(theme.bars(parts, [f"#{index}" for index in indices], kind="signed"))
    figure.update_layout(xaxis_title_text=title)
    return figure


def length_and_angle(
    cosines: ArrayLike, lengths: ArrayLike, labels: Sequence[str], logits: ArrayLike, length: float,
    named: Sequence[int], target: int, titles: tuple[str, str, str],
) -> Figure:  # fmt: skip
    """Return every row of the head by its angle to h and its length, with curves of equal logit.

    A logit is length of h * length of row * cosine, so equal logits lie on a hyperbola. The curve drawn passes through
    the target: whatever lies beyond it has a larger logit.

    Args:
        cosines, lengths, logits: one for each row shown; the head's bias left out.
        labels: one for each row.
        length: of h.
        named: the rows to label, the most important first; one whose label would cover another's goes without.
        target: the row the curve passes through, outlined.
        titles: of cosine, row length and logit.
    """
    x, y = np.asarray(cosines, dtype=np.float64), np.asarray(lengths, dtype=np.float64)
    z = np.asarray(logits, dtype=np.float64)
    figure = theme.base_figure(460, x_title=titles[0])
    top = float(np.abs(z).max()) or 1.0
    figure.add_scattergl(
        x=x,
        y=y,
        mode="markers",
        marker={
            "color": z, "colorscale": theme.DIVERGING, "cmin": -top, "cmax": top, "size": 6,
            "line": {"width": 0.5, "color": theme.REMOVED},
            "colorbar": {"title": {"text": titles[2], "side": "top"}, "thickness": 8, "outlinewidth": 0, "nticks": 5},
        },
        customdata=[plotly_literal(label) for label in labels],
        hovertemplate="%{customdata}<br>cos <b>%{x:.4f}</b>, ‖e‖ <b>%{y:.4f}</b><br>"
        "h · e <b>%{marker.color:.4f}</b><extra></extra>",
    )  # fmt: skip
    if x[target] > 0:
        curve = np.linspace(max(z[target] / length / (1.05 * y.max()), 1e-3), max(float(x.max()) * 1.05, 1e-2), 200)
        figure.add_scatter(
            x=curve, y=z[target] / length / curve, mode="lines", hoverinfo="skip",
            line={"color": theme.OUTLINE, "width": 1.5, "dash": "dot"},
        )  # fmt: skip
    apart = _apart(x, y, named)
    figure.add_scatter(
        x=x[apart],
        y=y[apart],
        mode="text",
        text=[plotly_literal(labels[row]) for row in apart],
        textposition="top left",
        hoverinfo="skip",
        cliponaxis=False,
    )
    figure.add_scatter(
        x=[x[target]], y=[y[target]], mode="markers", hoverinfo="skip",
        marker={"symbol": "circle-open", "size": 13, "color": theme.OUTLINE, "line": {"width": 2.5}},
    )  # fmt: skip
    figure.update_layout(
        showlegend=False,
        xaxis={
            "title_text": titles[0], "showgrid": True, "gridcolor": theme.GRID, "zeroline": True,
            "zerolinecolor": theme.GRID,
        },
        yaxis={
            "title_text": titles[1], "showgrid": True, "gridcolor": theme.GRID,
            "range": _lengths_axis(y),
        },
    )  # fmt: skip
    return figure


def lens_tokens(
    probs: ArrayLike,
    texts: Sequence[Sequence[str]],
    states: Sequence[str],
    tokens: Sequence[str],
    titles: tuple[str, str],
) -> Figure:
    """Return the most probable token after every state, written in the cell, coloured by its probability.

    Args:
        probs: [state, position].
        texts: the token's label, [state][position]; in the cell it stands without its id, as far as there is room.
        states: names, the first on top.
        tokens: a label for each position.
        titles: of the positions and of the probability.
    """
    figure = theme.heatmap(probs, states, tokens, kind="probability", height=_tall(len(states)))
    cells = figure.data[-1]
    cells.hovertemplate = "%{y} · %{x}<br>%{customdata}<br><b>%{z:.4%}</b><extra></extra>"
    cells.customdata = [[plotly_literal(text) for text in row] for row in texts]
    cells.text = None
    _titled(figure, titles)
    room = _WIDTH // len(tokens)
    if len(states) * len(tokens) <= MAX_CELLS_WITH_TEXT and room >= 4:
        theme.write_in_cells(figure, [[_brief(text.rpartition("#")[0], room) for text in row] for row in texts])
    return figure


def lens_target(probs: ArrayLike, states: Sequence[str], tokens: Sequence[str], titles: tuple[str, str]) -> Figure:
    """Return the probability of one token after every state, [state, position]."""
    return _titled(theme.heatmap(probs, states, tokens, kind="probability"), titles)


def lens_ranks(
    ranks: ArrayLike, vocab_size: int, states: Sequence[str], tokens: Sequence[str], titles: tuple[str, str]
) -> Figure:
    """Return the rank of one token after every state, [state, position]: full colour at rank 1, none at the last.

    Colour follows the logarithm of the rank, as 1 and 10 differ more than 1,000 and 1,010.
    """
    values = np.asarray(ranks, dtype=np.float64)
    height = np.log(vocab_size / values)
    limit = float(np.log(max(vocab_size, 2)))
    figure = theme.heatmap(height, states, tokens, kind="amount", limit=limit, height=_tall(len(states)))
    cells = figure.data[-1]
    cells.customdata = np.asarray(ranks)
    cells.hovertemplate = f"%{{y}} · %{{x}}<br>{titles[1]} <b>%{{customdata:,}}</b><extra></extra>"
    cells.text = None
    shown = [rank for rank in (1, 10, 100, 1000, 10_000, 100_000) if rank < vocab_size]
    cells.colorbar.update(
        tickmode="array",
        tickvals=[float(np.log(vocab_size / rank)) for rank in shown],
        ticktext=[f"{n:,}" for n in shown],
    )
    _titled(figure, titles)
    if len(states) * len(tokens) <= MAX_CELLS_WITH_TEXT:
        theme.write_in_cells(figure, [[f"{int(rank):,}" for rank in row] for row in values])
    return figure


def contributions(values: ArrayLike, names: Sequence[str], title: str, limit: int, rest: str) -> Figure:
    """Return what components add to a logit, in the model's order; beyond `limit` the smallest are one bar.

    Args:
        values: one a component.
        names: of the components.
        title: what the bars are.
        limit: how many bars at most, the one for the rest not counted.
        rest: the label of the bar of those left out, e.g. "the others".
    """
    array = np.asarray(values, dtype=np.float64)
    kept = np.sort(np.argsort(-np.abs(array), kind="stable")[:limit])
    labels, shown = [names[index] for index in kept], list(array[kept])
    if len(kept) < len(array):
        labels, shown = [*labels, rest], [*shown, array.sum() - array[kept].sum()]
    figure = roomy(theme.bars(shown, labels, kind="signed", height=90 + 24 * len(shown)))
    figure.update_layout(xaxis_title_text=title)
    return figure


def contribution_grid(values: ArrayLike, blocks: Sequence[str], columns: Sequence[str], title: str) -> Figure:
    """Return what each head and MLP adds to a logit: a row a block, a column a head, the MLP last."""
    figure = theme.heatmap(values, blocks, columns, kind="signed")
    _titled(figure, ("", title))
    if np.size(values) <= MAX_CELLS_WITH_TEXT:
        theme.write_in_cells(
            figure, [[f"{round(value, 2) + 0.0:.2f}".replace("-", "−") for value in row] for row in np.asarray(values)]
        )
    return figure


def _tall(n_rows: int) -> int | None:
    """Return a height that leaves each of many rows room for a line of text; None for few, which have it anyway."""
    return 130 + 24 * n_rows if n_rows > 24 else None


def _titled(figure: Figure, titles: tuple[str, str]) -> Figure:
    figure.update_layout(xaxis_title_text=titles[0])
    figure.data[-1].colorbar.title.text = titles[1]
    return tilt(figure)


def _lengths_axis(y: np.ndarray) -> list[float]:
    return [float(y.min()) * 0.95, float(y.max()) * 1.06]


def _apart(x: np.ndarray, y: np.ndarray, rows: Sequence[int]) -> list[int]:
    """Return the rows, in order, that keep a distance from those before them: enough for a label each."""
    low, high = _lengths_axis(y)
    kept: list[int] = []
    for row in rows:
        if all(abs(x[row] - x[o]) > 0.25 * np.ptp(x) or abs(y[row] - y[o]) > 0.06 * (high - low) for o in kept):
            kept.append(row)
    return kept


def _brief(text: str, room: int) -> str:
    """Return as much of a text as fits; a Chinese character takes the room of two Latin ones.

    >>> _brief("capital", 7), _brief("capital", 6), _brief("今天天气", 6)
    ('capital', 'capit…', '今天…')
    """
    ends = list(accumulate(2 if east_asian_width(character) in "WF" else 1 for character in text))
    if not ends or ends[-1] <= room:
        return text
    return text[: sum(end < room for end in ends)] + "…"
