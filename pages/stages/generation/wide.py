"""Room for a tree that cannot be read in the width of a phone: it keeps its width there, and is scrolled."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.figures.generation.tree import CLOSE


def wide(deepest: int) -> DeltaGenerator:
    """Return the container to draw a tree in that has `deepest` tokens from left to right; one on a page."""
    if deepest <= CLOSE:
        return st.container()
    st.html(Path(__file__).with_name("wide.css"))
    return st.container(key="generation-wide")
