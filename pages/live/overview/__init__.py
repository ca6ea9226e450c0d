"""The overview: the whole way from a text to its next token, drawn and reshaped in the browser by the lab's kernel."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import ArrayLike

from pages.live.overview.labels import labels
from pages.live.part import part


def overview(
    told: Mapping[str, Any], logits: np.ndarray | None, *, key: str, stamp: int, on_act: Callable[[Any], None]
) -> None:
    """Show the overview; one on a page.

    The logits travel alone, as their own bytes, and only when they change; a number at their end says to which of the
    other messages they belong.

    Args:
        told: what `pages.stages.overview` makes of a pass; arrays through `packed`.
        logits: float32 [V] by id; None where they are not told.
        key: unique on the page.
        stamp: of these logits; another number for other ones.
        on_act: called with what the reader did, before the page runs again. It comes from the browser: check it.
    """

    def acted() -> None:
        on_act(st.session_state[key].get("act"))

    data = b"" if logits is None else np.ascontiguousarray(logits, dtype="<f4").tobytes()
    part("sampling_lab/channel")(key=f"{key}.logits", data=data + stamp.to_bytes(4, "little"), height=0)
    part("overview")(key=key, data={**told, "stamp": stamp, "labels": labels()}, on_act_change=acted)


def packed(values: ArrayLike) -> dict[str, Any]:
    """Return an array for the scripts: its shape, and its float32 numbers as text, as bytes inside a mapping travel."""
    array = np.asarray(values, dtype="<f4")
    return {"shape": array.shape, "numbers": b64encode(array.tobytes()).decode()}
