"""A text whose chosen token is joined to the tokens it attends to, by arcs as wide as their weights."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st
from numpy.typing import ArrayLike

from pages.common.escape import visible
from pages.figures.theme import position_colour
from pages.live.part import part

_HTML = '<div class="frame"><svg aria-hidden="true"></svg><div class="text"></div></div>'


def attention_text(
    tokens: Sequence[bytes], pattern: ArrayLike, query: int, *, key: str, label: str, on_select: Callable[[int], None]
) -> None:
    """Show the text with the arcs of one query; the pointer shows those of any other.

    Args:
        tokens: each token's bytes.
        pattern: [query, key], weights that sum to 1 in each row.
        query: whose arcs are drawn.
        key: unique on the page.
        label: what it is, for screen readers.
        on_select: called with the position the reader chose, before the page runs again.
    """
    weights = np.asarray(pattern, dtype=np.float32)

    def chosen() -> None:
        position = st.session_state[key].get("position")
        if isinstance(position, int) and 0 <= position < len(tokens):
            on_select(position)

    part("attention_text", _HTML)(
        key=key,
        data={
            "tokens": [visible(token) for token in tokens],
            "colours": [position_colour(position) for position in range(len(tokens))],
            # Only what a query may see: row q has q + 1 entries. Bytes inside a mapping have to travel as text.
            "weights": b64encode(weights[np.tril_indices(len(tokens))].tobytes()).decode(),
            "query": query,
            "label": label,
        },
        on_position_change=chosen,
    )
