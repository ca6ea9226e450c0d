"""The parts of a model as a grid, one row per block: each cell a switch, coloured by a number where there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from pages.live.newest import Newest
from pages.live.part import part

_HTML = '<div class="grid" role="group"></div>'


@dataclass(frozen=True)
class Switch:
    """A switch of the grid.

    Attributes:
        choice: what it stands for.
        hint: what it is and its number, for the pointer and for screen readers.
        off: whether it is switched off.
        strength: 0..1, how full its colour is; None when its number is not known.
    """

    choice: str
    hint: str
    off: bool = False
    strength: float | None = None


@dataclass(frozen=True)
class BlockSwitches:
    """A block: its own switch, whose text is its name, and those of its parts."""

    name: str
    whole: Switch
    cells: Sequence[Switch]


def component_grid(
    columns: Sequence[str], rows: Sequence[BlockSwitches], *, key: str, label: str, on_choose: Callable[[str], None]
) -> None:
    """Show the grid.

    Args:
        columns: a heading for each part of a block.
        rows: the blocks, from top to bottom.
        key: unique on the page.
        label: what the grid is, for screen readers.
        on_choose: called with the choice of the switch the reader pressed, before the page runs again.
    """
    choices = {cell.choice for row in rows for cell in (row.whole, *row.cells)}

    newest = Newest(key)

    def take(choice: object) -> None:
        if isinstance(choice, str) and choice in choices:
            on_choose(choice)

    part("component_grid", _HTML)(
        key=key,
        data={**newest.data(), "columns": list(columns), "rows": [asdict(row) for row in rows], "label": label},
        on_choice_change=newest.taking("choice", take),
    )
