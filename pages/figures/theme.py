"""The one visual language: colours, number formats, and the base builders every page's figures start from.

Backgrounds are transparent, text colours are left to the page, and scales run from transparent to full colour, so
that one figure fits light and dark. Labels are passed as plain text; they are made literal here, never by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pages.common.escape import plotly_literal
from pages.figures.figure import Figure

Kind = Literal["probability", "signed", "amount"]

# Okabe and Ito's colours, told apart by colour-blind eyes; their yellow is left out: it vanishes on white.
CATEGORICAL = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1")
REMOVED = "rgba(138, 143, 152, 0.55)"
MASKED = "rgba(138, 143, 152, 0.14)"
OUTLINE = "#D55E00"
INK = "#000037"  # stands for dark text on a light page and light text on a dark one: Streamlit puts it in
GRID = "rgba(138, 143, 152, 0.25)"
SEQUENTIAL = [[0.0, "rgba(36, 132, 214, 0)"], [0.4, "rgba(36, 132, 214, 0.5)"], [1.0, "rgba(36, 132, 214, 1)"]]
DIVERGING = [[0.0, "rgba(36, 132, 214, 1)"], [0.5, "rgba(140, 140, 140, 0.04)"], [1.0, "rgba(222, 98, 0, 1)"]]
PERCENT = ".3~%"  # tick labels of probabilities
_NUMBER_ROOM = 56  # pixels
_MAX_LABELLED_CELLS = 20_000  # above this, hover names cells by number: labels a cell would outweigh the picture
_MAX_TICKS = 48
_MAX_COLUMN_TICKS = 32
_TICK_HEIGHT = 15  # pixels
_AROUND = 130  # pixels of a heat map's height that its scale and the labels below it take
_FULL_UNDER_TEXT = 0.7  # the most of a scale's colour under text


def position_colour(position: int) -> str:
    """Return the colour a token keeps on every page, by its position; neighbours differ by the golden angle.

    >>> position_colour(0), position_colour(1)
    ('hsl(205, 62%, 50%)', 'hsl(343, 62%, 50%)')
    """
    return f"hsl({round(205 + position * 137.508) % 360}, 62%, 50%)"


def fmt_probability(p: float) -> str:
    """Return a probability in percent, two decimals; what would round to nothing keeps its order of magnitude.

    >>> fmt_probability(0.69714), fmt_probability(0.0), fmt_probability(0.0000123)
    ('69.71 %', '0 %', '1.2e-03 %')
    """
    if p == 0 or p >= 0.00005:
        return "0 %" if p == 0 else f"{100 * p:.2f} %"
    return f"{100 * p:.1e} %"


def fmt_logit(value: float) -> str:
    """Return a logit, score or difference with three decimals and a true minus sign.

    >>> fmt_logit(-1.25), fmt_logit(3.8)
    ('−1.250', '3.800')
    """
    return f"{value:.3f}".replace("-", "−")


def fmt_count(n: int) -> str:
    """Return an integer with thousands separated.

    >>> fmt_count(124439808)
    '124,439,808'
    """
    return f"{n:,}"


def base_figure(height: int | None = None, *, x_title: str = "", y_title: str = "") -> Figure:
    """Return an empty figure in the house style."""
    # "allow": the search for labels past the edge costs the browser a sixth of a figure; automargin keeps them inside.
    axis = {"showgrid": False, "zeroline": False, "automargin": True, "ticks": "", "ticklabeloverflow": "allow"}
    # In one call: plotly checks a whole layout at once in an eighth of the time that updates of it take.
    return Figure(
        {
            "height": height,
            "margin": {"l": 8, "r": 16, "t": 48, "b": 8},
            "paper_bgcolor": "rgba(0, 0, 0, 0)",
            "plot_bgcolor": "rgba(0, 0, 0, 0)",
            "colorway": CATEGORICAL,
            "hoverlabel": {"align": "left"},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
            "dragmode": False,
            "xaxis": axis | {"title": {"text": plotly_literal(x_title)}},
            "yaxis": axis | {"title": {"text": plotly_literal(y_title)}},
        }
    )


def heatmap(
    values: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    kind: Kind,
    row_title: str = "",
    column_title: str = "",
    value_title: str = "",
    masked: ArrayLike | None = None,
    limit: float | None = None,
    height: int | None = None,
) -> Figure:
    """Return a heat map with exact numbers on hover.

    Args:
        values: [row, column]; NaN cells are left empty.
        rows, columns: labels as plain text, in order; they may repeat.
        kind: "probability" (scale 0 to `limit`, 1 by default), "signed" (centred on 0), "amount" (from 0).
        row_title, column_title, value_title: what the axes and the colour mean, with the unit.
        masked: [row, column] booleans; these cells are grey and have no number.
        limit: the end of the scale; by default 1 for probabilities, else the largest magnitude.
        height: pixels; by default it follows the number of rows.
    """
    z = np.array(values, dtype=np.float64)
    if z.shape != (len(rows), len(columns)):
        raise ValueError(f"values have shape {z.shape}, the labels {len(rows)} rows and {len(columns)} columns.")
    hidden = np.zeros(z.shape, dtype=bool) if masked is None else np.array(masked, dtype=bool)
    z[hidden] = np.nan
    top = limit if limit is not None else 1.0 if kind == "probability" else _largest(z)
    figure = base_figure(height or _height(len(rows)), x_title=column_title, y_title=row_title)
    figure.update_layout(margin_t=0)  # to which the scale above the map adds its own height
    if hidden.any():
        figure.add_heatmap(
            z=np.where(hidden, 1.0, np.nan), colorscale=[[0, MASKED], [1, MASKED]], showscale=False, hoverinfo="skip"
        )
    figure.add_heatmap(
        z=z,
        zmin=-top if kind == "signed" else 0.0,
        zmax=top,
        colorscale=DIVERGING if kind == "signed" else SEQUENTIAL,
        xgap=1 if len(columns) <= 64 else 0,
        ygap=1 if len(rows) <= 64 else 0,
        hoverongaps=False,
        colorbar={
            "title": {"text": plotly_literal(value_title), "side": "top"},
            "orientation": "h",
            "thickness": 8,
            "outlinewidth": 0,
            "lenmode": "pixels",
            "len": 150,  # the title above has this room, on a phone too
            "x": 1,
            "xanchor": "right",
            "y": 1.0,
            "yanchor": "bottom",
            "nticks": 4,
            "tickformat": PERCENT if kind == "probability" else "",
        },
        **_hover(rows, columns, z.size),
    )
    figure.update_xaxes(**_ticks(columns, _MAX_COLUMN_TICKS), side="bottom")
    most = max(2, (figure.layout.height - _AROUND) // _TICK_HEIGHT)
    figure.update_yaxes(**_ticks(rows, min(_MAX_TICKS, most)), autorange="reversed")
    return figure


def bars(
    values: ArrayLike,
    labels: Sequence[str],
    *,
    kind: Kind,
    value_title: str = "",
    removed: Sequence[bool] | None = None,
    chosen: int | None = None,
    colours: Sequence[str] | None = None,
    height: int | None = None,
) -> Figure:
    """Return horizontal bars, the first label on top, with exact numbers on hover.

    Args:
        values: one number per label.
        labels: plain text; they may repeat.
        kind: "probability" (axis in percent from 0), "signed" (axis through 0), "amount" (from 0).
        value_title: what the length means, with the unit.
        removed: which bars a filter removed; they are grey and hatched.
        chosen: index of the bar to outline.
        colours: one colour per bar; by default one colour, or by sign when kind is "signed".
        height: pixels; by default it follows the number of bars.
    """
    x = np.array(values, dtype=np.float64)
    gone = np.zeros(len(x), dtype=bool) if removed is None else np.array(removed, dtype=bool)
    plain = [CATEGORICAL[1] if kind == "signed" and value > 0 else CATEGORICAL[0] for value in x]
    fill = [REMOVED if out else colour for colour, out in zip(colours or plain, gone, strict=True)]
    figure = base_figure(height or max(160, 60 + 26 * len(x)), x_title=value_title)
    figure.update_layout(margin_t=8)  # there is no legend to make room for
    figure.add_bar(
        x=x,
        y=np.arange(len(x)),
        orientation="h",
        text=[fmt_probability(v) if kind == "probability" else fmt_logit(v) for v in x],
        textposition="outside",
        cliponaxis=False,
        customdata=[plotly_literal(label) for label in labels],
        hovertemplate="%{customdata}<br><b>%{x:.6g}</b><extra></extra>",
        marker={
            "color": fill,
            "pattern": {"shape": ["/" if out else "" for out in gone], "size": 6, "solidity": 0.25},
            "line": {"color": OUTLINE, "width": [2.5 if index == chosen else 0 for index in range(len(x))]},
        },
    )
    figure.update_yaxes(**_ticks(labels), autorange="reversed")
    low, high = min(0.0, float(x.min(initial=0.0))), max(0.0, float(x.max(initial=0.0)))
    end_at(figure, high)
    if low < 0:
        figure.layout.xaxis.range[0] = low - 0.16 * (high - low)  # room for the numbers on the left
    figure.update_xaxes(showgrid=True, gridcolor=GRID)
    if kind == "probability":
        figure.update_xaxes(tickformat=PERCENT)
    if kind == "signed":
        figure.update_xaxes(zeroline=True, zerolinecolor=GRID, zerolinewidth=2)
    return figure


def end_at(figure: Figure, longest: float) -> None:
    """End the axis of bars at the longest of them; right of it the number at its end has room, on a phone too."""
    figure.update_layout(margin_r=_NUMBER_ROOM, xaxis_range=[0.0, longest or 1.0])


def lines(
    x: ArrayLike,
    series: Mapping[str, ArrayLike],
    *,
    x_title: str = "",
    y_title: str = "",
    percent: bool = False,
    colours: Sequence[str] = CATEGORICAL,
    height: int | None = None,
) -> Figure:
    """Return lines over a common x, one a name, with exact numbers on hover; at most as many as there are colours.

    Args:
        x: the common abscissa.
        series: name as plain text -> one y for each x.
        x_title, y_title: what the axes mean, with units.
        percent: y is a probability: axis in percent, from 0.
        colours: one per line, used in turn, with dashes from the second turn on.
        height: pixels.
    """
    figure = base_figure(height or 380, x_title=x_title, y_title=y_title)
    for index, (name, y) in enumerate(series.items()):
        turn, colour = divmod(index, len(colours))
        figure.add_scatter(
            x=np.asarray(x),
            y=np.asarray(y, dtype=np.float64),
            name=plotly_literal(name),
            mode="lines",
            line={"color": colours[colour], "width": 2, "dash": ("solid", "dash", "dot")[turn % 3]},
            hovertemplate="%{y:.6g}",
        )
    figure.update_layout(hovermode="x unified", showlegend=len(series) > 1)
    figure.update_yaxes(showgrid=True, gridcolor=GRID)
    if percent:
        figure.update_yaxes(tickformat=PERCENT, rangemode="tozero")
    return figure


def write_in_ink(spec: Mapping[str, Any]) -> None:
    """Give every text of a specification that has no colour the page's own, in place.

    Streamlit's grey for the labels of axes and scales has a contrast of 3.7 on white.
    """
    layout = spec["layout"]
    bars = [trace[where].get("colorbar") for trace in spec["data"] for where in ("marker", "line") if where in trace]
    scales = [trace.get("colorbar") for trace in spec["data"]] + bars
    axes = [part for name, part in layout.items() if name.startswith(("xaxis", "yaxis"))]
    for part in filter(None, [*axes, *scales]):
        part["tickfont"] = {"color": INK, **part.get("tickfont", {})}
        if isinstance(title := part.get("title"), dict):
            title["font"] = {"color": INK, **title.get("font", {})}
    for part in (layout, layout.setdefault("legend", {})):
        part["font"] = {"color": INK, **part.get("font", {})}


def outline_row(figure: Figure, row: int) -> None:
    """Outline a row of a heat map, the figure's last trace."""
    outline_cells(figure, (row, row), (0, len(figure.data[-1].z[row]) - 1))


def outline_column(figure: Figure, column: int) -> None:
    """Outline a column of a heat map, the figure's last trace."""
    outline_cells(figure, (0, len(figure.data[-1].z) - 1), (column, column))


def outline_cells(figure: Figure, rows: tuple[int, int], columns: tuple[int, int]) -> None:
    """Outline a rectangle of a heat map's cells, from the first row and column to the last of each, with them."""
    sides = {"x0": columns[0] - 0.5, "x1": columns[1] + 0.5, "y0": rows[0] - 0.5, "y1": rows[1] + 0.5}
    figure.add_shape(type="rect", **sides, line={"color": OUTLINE, "width": 2})


def write_in_cells(figure: Figure, texts: Sequence[Sequence[str]]) -> None:
    """Write into a heat map's cells in ink, which a heat map's own text does not take.

    No one colour can be read on every cell in light and dark: a cell of full colour asks for black, and the cells
    below it, on a dark page, for white. So the scale of a map with text ends before full colour, where ink still has
    a contrast of 4.5 (WCAG 2.2, success criterion 1.4.3) on either page.

    Args:
        figure: its last trace is the heat map, with columns 0, 1, ... and rows 0, 1, ...
        texts: [row][column], plain text.
    """
    cells = figure.data[-1]
    cells.colorscale = [[place, _fainter(colour)] for place, colour in cells.colorscale]
    figure.add_scatter(
        x=[column for line in texts for column in range(len(line))],
        y=[row for row, line in enumerate(texts) for _text in line],
        text=[plotly_literal(text) for line in texts for text in line],
        mode="text",
        textfont={"color": INK},
        hoverinfo="skip",
        showlegend=False,
    )


def _fainter(colour: str) -> str:
    """Return an rgba colour with less of it.

    >>> _fainter("rgba(222, 98, 0, 1)")
    'rgba(222, 98, 0, 0.7)'
    """
    paint, opacity = colour.removesuffix(")").rsplit(", ", 1)
    return f"{paint}, {_FULL_UNDER_TEXT * float(opacity):.3g})"


def _largest(z: np.ndarray) -> float:
    finite = np.abs(z[np.isfinite(z)])
    return float(finite.max()) if finite.size and finite.max() > 0 else 1.0


def _height(n_rows: int) -> int:
    return min(130 + max(26 * n_rows, min(60 * n_rows, 240)), 720)  # few rows are tall, many are thin


def _ticks(labels: Sequence[str], most: int = _MAX_TICKS) -> dict[str, object]:
    """Return tick settings for labels at 0, 1, 2 ..., thinned out when there are too many to read."""
    shown = range(0, len(labels), math.ceil(len(labels) / most) or 1)
    return {"tickmode": "array", "tickvals": list(shown), "ticktext": [_short(labels[index]) for index in shown]}


def _short(label: str, limit: int = 24) -> str:
    return plotly_literal(label if len(label) <= limit else label[: limit - 1] + "…")


def _hover(rows: Sequence[str], columns: Sequence[str], n_cells: int) -> dict[str, object]:
    if n_cells > _MAX_LABELLED_CELLS:
        return {"hovertemplate": "%{y} · %{x}<br><b>%{z:.6g}</b><extra></extra>"}
    across = [plotly_literal(label) for label in columns]
    names = [[f"{plotly_literal(row)} · {column}" for column in across] for row in rows]
    return {"text": names, "hovertemplate": "%{text}<br><b>%{z:.6g}</b><extra></extra>"}
