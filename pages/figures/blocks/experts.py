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
    figure.add_shape(
        type="rect",
        x0=position - 0.5,
        x1=position + 0.5,
        y0=-0.5,
        y1=len(experts) - 0.5,
        line={"color": theme.OUTLINE, "width": 2},
    )
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
    figure.add_shape(
        type="rect",
        x0=-0.5,
        x1=n_experts - 0.5,
        y0=block - 0.5,
        y1=block + 0.5,
        line={"color": theme.OUTLINE, "width": 2},
    )
    titled(figure, titles[0], titles[1], titles[2])
    figure.update_xaxes(title_text=f"<br>{titles[1]}")  # one line lower: it would meet the short numbers
    return figure
