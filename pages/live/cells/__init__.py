"""A heat map that can be clicked: the cell the reader chose, told to the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pages.live.newest import Newest
from pages.live.part import part

_HTML = '<div class="cells"></div>'


@dataclass(frozen=True)
class HeatMapCell:
    """A cell of a heat map.

    Attributes:
        row, column: from 0, as the figure has them.
        trace: which of the figure's traces it is in.
    """

    row: int
    column: int
    trace: int


def cells(chart: str, shapes: Sequence[tuple[int, ...]], on_choose: Callable[[HeatMapCell], None]) -> None:
    """Let the cells of a Plotly heat map be chosen.

    Args:
        chart: the key of the chart, which is on the page already.
        shapes: of the figure's traces, (rows, columns) of those that have cells.
        on_choose: called with a cell, before the page runs again.
    """
    key = f"{chart}.cells"
    newest = Newest(key)

    def take(value: object) -> None:
        if not (isinstance(value, list) and len(value) == 3 and all(isinstance(n, int) and n >= 0 for n in value)):
            return
        cell = HeatMapCell(*value)
        rows, columns = shapes[cell.trace] if cell.trace < len(shapes) and len(shapes[cell.trace]) == 2 else (0, 0)
        if cell.row < rows and cell.column < columns:
            on_choose(cell)

    part("cells", _HTML)(
        key=key,
        data={**newest.data(), "chart": chart},
        on_cell_change=newest.taking("cell", take),
        height=0,
    )
