"""Pictures of a mixture of experts: which token goes where, and how busy each expert is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pages.figures import theme
from pages.figures.axes import titled
from pages.figures.figure import Figure


def routing(weights: ArrayLike, tokens: Sequence[str], position: int, titles: tuple[str, str, str]) -> Figure:
    """Return the weight of each expert for each token, the chosen token outlined; cells not chosen are empty.

    Args:
        weights: [expert, position]; NaN where an expert was not chosen.
        tokens: a label for each position.
        position: the column to outline.
        titles: of the experts, the tokens and the weights.
    """
    experts = list(map(str, range(len(np.asarray(weights)))))
    figure = theme.heatmap(weights, experts, tokens, kind="probability")
    theme.outline_column(figure, position)
    return titled(figure, titles[0], titles[1], titles[2])


def loads(shares: ArrayLike, block: int, titles: tuple[str, str, str]) -> Figure:
    """Return the share of choices that fell on each expert in each block, one block outlined.

    Args:
        shares: [block, expert].
        block: the row to outline.
        titles: of the blocks, the experts and the shares.
    """
    n_blocks, n_experts = np.shape(shares)
    rows, columns = list(map(str, range(n_blocks))), list(map(str, range(n_experts)))
    figure = theme.heatmap(shares, rows, columns, kind="probability", limit=float(np.max(shares)))
    theme.outline_row(figure, block)
    titled(figure, titles[0], titles[1], titles[2])
    figure.update_xaxes(title_text=f"<br><br>{titles[1]}")  # between two short numbers it stays as high as they are
    return figure
