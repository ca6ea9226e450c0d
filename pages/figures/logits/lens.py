"""Pictures of the logit lens: the most probable token, or one token's probability or rank, after every state."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures import theme
from pages.figures.axes import titled
from pages.figures.figure import Figure

MAX_CELLS_WITH_TEXT = 240
_WIDTH = 40  # Latin characters that fit into all columns of a heat map together


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
    titled(figure, "", titles[0], titles[1])
    room = _WIDTH // len(tokens)
    if len(states) * len(tokens) <= MAX_CELLS_WITH_TEXT and room >= 4:
        theme.write_in_cells(figure, [[_brief(text.rpartition("#")[0], room) for text in row] for row in texts])
    return figure


def lens_target(probs: ArrayLike, states: Sequence[str], tokens: Sequence[str], titles: tuple[str, str]) -> Figure:
    """Return the probability of one token after every state, [state, position]."""
    return titled(theme.heatmap(probs, states, tokens, kind="probability"), "", titles[0], titles[1])


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
    titled(figure, "", titles[0], titles[1])
    if len(states) * len(tokens) <= MAX_CELLS_WITH_TEXT:
        theme.write_in_cells(figure, [[f"{int(rank):,}" for rank in row] for row in values])
    return figure


def _tall(n_rows: int) -> int | None:
    """Return a height that leaves each of many rows room for a line of text; None for few, which have it anyway."""
    return 130 + 24 * n_rows if n_rows > 24 else None


def _brief(text: str, room: int) -> str:
    """Return as much of a text as fits; a Chinese character takes the room of two Latin ones.

    >>> _brief("capital", 7), _brief("capital", 6), _brief("今天天气", 6)
    ('capital', 'capit…', '今天…')
    """
    ends = list(accumulate(2 if east_asian_width(character) in "WF" else 1 for character in text))
    if not ends or ends[-1] <= room:
        return text
    return text[: sum(end < room for end in ends)] + "…"
