"""The model as a diagram with its own sizes; blocks, heads and parts are chosen by clicking them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import streamlit as st

from pages.live.part import part

_HTML = '<div class="map" role="group"></div>'


@dataclass(frozen=True)
class MapPart:
    """A part of the diagram.

    Attributes:
        name: what it is called in the code and in traces.
        shape: the shape of what it gives, e.g. "[5, 128]".
        note: a second line, e.g. the shape of its weights.
        choice: the value it stands for, as (key, value); None when it only shows.
        selected: whether it is the one chosen.
    """

    name: str
    shape: str = ""
    note: str = ""
    choice: tuple[str, int | str] | None = None
    selected: bool = False


@dataclass(frozen=True)
class BlockMap:
    """One block opened: the residual stream, and the two branches that read it and add to it."""

    title: str
    states: tuple[MapPart, MapPart, MapPart]
    attention: Sequence[MapPart]
    heads: Sequence[MapPart]
    mlp: Sequence[MapPart]


@dataclass(frozen=True)
class ModelMap:
    """The whole model: what comes before the blocks, the blocks, what comes after; and the chosen block opened."""

    before: Sequence[MapPart]
    blocks: Sequence[MapPart]
    after: Sequence[MapPart]
    block: BlockMap

    def choices(self) -> set[tuple[str, int | str]]:
        """Return every choice that the diagram offers."""
        opened = self.block
        nodes = (*self.before, *self.blocks, *self.after, *opened.states, *opened.attention, *opened.heads, *opened.mlp)
        return {node.choice for node in nodes if node.choice is not None}


def model_map(diagram: ModelMap, *, key: str, label: str, on_choose: Callable[[str, int | str], None]) -> None:
    """Show the diagram.

    Args:
        diagram: what to show.
        key: unique on the page.
        label: what the diagram is, for screen readers.
        on_choose: called with the choice the reader clicked, before the page runs again.
    """

    def chosen() -> None:
        choice = st.session_state[key].get("choice")
        if isinstance(choice, (list, tuple)) and len(choice) == 2 and tuple(choice) in diagram.choices():
            on_choose(*choice)

    part("model_map", _HTML)(key=key, data={**asdict(diagram), "label": label}, on_choice_change=chosen)
