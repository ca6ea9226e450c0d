"""Charts of a training under way, as Vega-Lite: new points are added in place, where plotly would draw all anew.

A specification depends on what is drawn, not on how far the training is; what grows is the data beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from pages.figures import theme

STEP, VALUE, SERIES, KIND = "step", "value", "series", "kind"
# Two columns: of three, the last would be cut where a chart stands beside another, and on a phone.
_LEGEND = {"title": None, "orient": "top", "columns": 2, "labelLimit": 200}
_TEXT = {"titleFontWeight": "normal"}


def long_table(series: Mapping[tuple[str, str], tuple[Sequence[float], Sequence[float]]]) -> pd.DataFrame:
    """Return the points of all lines as rows; a line is known by its series (colour) and its kind (dash).

    >>> long_table({("not", "model"): ([0, 20], [0.1, 0.6])})[STEP].tolist()
    [0, 20]
    """
    rows = [
        (step, value, name, kind)
        for (name, kind), (steps, values) in series.items()
        for step, value in zip(steps, values, strict=True)
    ]
    return pd.DataFrame(rows, columns=[STEP, VALUE, SERIES, KIND])


def lines(
    names: Sequence[str],
    kinds: Sequence[str],
    *,
    last_step: int,
    x_title: str,
    y_title: str,
    colours: Sequence[str] = theme.CATEGORICAL,
    percent: bool = False,
    height: int = 320,
) -> dict[str, Any]:
    """Return the specification of lines over the steps, for the data of `long_table`.

    Args:
        names: the series, one colour each.
        kinds: the kinds of line; the first is solid, the second dashed.
        last_step: the end of the axis, so that it stays put while lines grow.
        x_title, y_title: labels.
        colours: one a series.
        percent: values are probabilities, on an axis from 0 to 1; else losses, on a logarithmic axis.
        height: pixels.
    """
    y_scale = {"domain": [0, 1]} if percent else {"type": "log", "nice": False}
    y_axis = {"format": "%", "tickCount": 5} if percent else {"values": [0.5, 0.6, 0.8, 1, 1.5, 2, 3, 5, 8]}
    several = len(kinds) > 1
    return {
        "height": height,
        "mark": {"type": "line", "interpolate": "linear", "strokeWidth": 2, "clip": True},
        "encoding": {
            "x": {
                "field": STEP,
                "type": "quantitative",
                "title": x_title,
                "scale": {"domain": [0, last_step], "nice": False},
                "axis": {"grid": False, **_TEXT},
            },
            "y": {
                "field": VALUE,
                "type": "quantitative",
                "title": y_title,
                "scale": y_scale,
                "axis": {**y_axis, "gridColor": "#8A8F98", "gridOpacity": 0.25, "domain": False, **_TEXT},
            },
            "color": {
                "field": SERIES,
                "type": "nominal",
                "scale": {"domain": list(names), "range": list(colours[: len(names)])},
                "legend": _LEGEND,
            },
            "strokeDash": {
                "field": KIND,
                "type": "nominal",
                "scale": {"domain": list(kinds), "range": [[1, 0], [5, 4]][: len(kinds)]},
                "legend": _LEGEND if several else None,
            },
            "tooltip": [
                {"field": SERIES, "type": "nominal", "title": " "},
                {"field": STEP, "type": "quantitative", "title": x_title},
                {"field": VALUE, "type": "quantitative", "title": y_title, "format": ".4%" if percent else ".5f"},
            ],
        },
    }


def bars(names: Sequence[str], kinds: Sequence[str], *, x_title: str, height: int = 320) -> dict[str, Any]:
    """Return the specification of two bars per series, one per kind; the data are as in `long_table`, steps unused."""
    return {
        "height": height,
        "mark": {"type": "bar"},
        "encoding": {
            "y": {
                "field": SERIES,
                "type": "nominal",
                "sort": list(names),
                "title": None,
                "axis": {**_TEXT, "ticks": False},
            },
            "yOffset": {"field": KIND, "type": "nominal", "sort": list(kinds)},
            "x": {
                "field": VALUE,
                "type": "quantitative",
                "title": x_title,
                "scale": {"domain": [0, 1]},
                "axis": {"format": "%", "tickCount": 5, "gridColor": "#8A8F98", "gridOpacity": 0.25, **_TEXT},
            },
            "color": {
                "field": KIND,
                "type": "nominal",
                "scale": {"domain": list(kinds), "range": [theme.CATEGORICAL[0], "#8A8F98"]},
                "legend": _LEGEND,
            },
            "tooltip": [
                {"field": SERIES, "type": "nominal", "title": " "},
                {"field": KIND, "type": "nominal", "title": " "},
                {"field": VALUE, "type": "quantitative", "title": x_title, "format": ".4%"},
            ],
        },
    }


def token_map(groups: Sequence[str], *, height: int = 420) -> dict[str, Any]:
    """Return the specification of tokens as points, some with their names; data: x, y, token, name, script.

    Args:
        groups: the scripts, one colour each.
        height: pixels.
    """
    place = {
        axis: {
            "field": axis,
            "type": "quantitative",
            "axis": {"labels": False, "ticks": False, "title": None, "grid": False, "domain": False},
            "scale": {"zero": False, "nice": False, "padding": 12},
        }
        for axis in ("x", "y")
    }
    colour = {
        "field": "script",
        "type": "nominal",
        "scale": {"domain": list(groups), "range": list(theme.CATEGORICAL[: len(groups)])},
        "legend": _LEGEND,
    }
    tooltip = [{"field": "token", "type": "nominal", "title": " "}]
    return {
        "height": height,
        "layer": [
            {"mark": {"type": "circle", "size": 22, "opacity": 0.6}, "encoding": {**place, "color": colour}},
            {
                "mark": {"type": "text", "dy": -8, "fontSize": 12},
                "encoding": {**place, "text": {"field": "name", "type": "nominal"}},
            },
        ],
        "encoding": {"tooltip": tooltip},
    }
