"""A Plotly figure as plain data: the attributes of Plotly's own reference, without its checks at each run.

A page makes its figures anew whenever a slider moves, and Plotly's Python objects spend tens of milliseconds a figure
on checking properties that never change. Here the same properties are dicts; the tests hold every figure of every
page to Plotly's own schema instead.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

_WITH_UNDERSCORE = ("error_x", "error_y", "paper_bgcolor", "plot_bgcolor")  # the names used here that have one
_CODES = {"float64": "f8", "float32": "f4", "int32": "i4", "uint8": "u1"}


class Properties(dict[str, Any]):
    """The properties of a Plotly object, also as attributes: `layout.xaxis.range`; one that is not set is None.

    One named like a method of dict, as a treemap's values, is read as `trace["values"]`.
    """

    def __init__(self, *given: Mapping[str, Any], **named: Any) -> None:
        super().__init__()
        self.update(*given, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def update(self, *given: Mapping[str, Any], **named: Any) -> Properties:  # type: ignore[override]
        """Set properties, those of nested objects one by one: `title_text="x"` is `title={"text": "x"}`.

        >>> Properties(title={"text": "x", "standoff": 8}).update(title_text="y")
        {'title': {'text': 'y', 'standoff': 8}}
        """
        for mapping in (*given, named):
            for path, value in mapping.items():
                name, _, rest = path.partition("_")
                if rest and path not in _WITH_UNDERSCORE:
                    value = {rest: value}
                else:
                    name = path
                if isinstance(value, Mapping):
                    nested = self.get(name)
                    if not isinstance(nested, Properties):
                        nested = self[name] = Properties()
                    nested.update(value)
                else:
                    self[name] = value
        return self


class Figure:
    """Traces and a layout, built with the methods of `plotly.graph_objects.Figure` that the pictures here need.

    >>> figure = Figure({"height": 300}).add_bar(y=[1, 2]).update_yaxes(rangemode="tozero")
    >>> figure.spec()["layout"]
    {'height': 300, 'yaxis': {'rangemode': 'tozero'}}
    """

    def __init__(self, layout: Mapping[str, Any] | None = None) -> None:
        self.data: list[Properties] = []
        self.layout = Properties(layout or {})

    def add_trace(self, trace: Mapping[str, Any]) -> Figure:
        """Add a trace with its "type", e.g. one of another figure."""
        self.data.append(Properties(trace))
        return self

    def add_bar(self, **properties: Any) -> Figure:
        """Add bars."""
        return self.add_trace({"type": "bar", **properties})

    def add_heatmap(self, **properties: Any) -> Figure:
        """Add a heat map."""
        return self.add_trace({"type": "heatmap", **properties})

    def add_scatter(self, **properties: Any) -> Figure:
        """Add lines, markers or texts."""
        return self.add_trace({"type": "scatter", **properties})

    def add_treemap(self, **properties: Any) -> Figure:
        """Add a treemap."""
        return self.add_trace({"type": "treemap", **properties})

    def add_annotation(self, **properties: Any) -> Figure:
        """Write a text."""
        self.layout.setdefault("annotations", []).append(Properties(properties))
        return self

    def add_shape(self, **properties: Any) -> Figure:
        """Draw a line or a rectangle."""
        self.layout.setdefault("shapes", []).append(Properties(properties))
        return self

    def add_hline(self, y: Any, **properties: Any) -> Figure:
        """Draw a horizontal line from side to side."""
        return self.add_shape(type="line", xref="x domain", x0=0, x1=1, yref="y", y0=y, y1=y, **properties)

    def add_vline(self, x: Any, **properties: Any) -> Figure:
        """Draw a vertical line from top to bottom."""
        return self.add_shape(type="line", xref="x", x0=x, x1=x, yref="y domain", y0=0, y1=1, **properties)

    def add_vrect(self, x0: Any, x1: Any, **properties: Any) -> Figure:
        """Shade the picture between two places on x."""
        return self.add_shape(type="rect", xref="x", x0=x0, x1=x1, yref="y domain", y0=0, y1=1, **properties)

    def update_layout(self, *given: Mapping[str, Any], **properties: Any) -> Figure:
        """Set properties of the layout."""
        self.layout.update(*given, **properties)
        return self

    def update_xaxes(self, **properties: Any) -> Figure:
        """Set properties of every x axis."""
        return self._update_axes("xaxis", properties)

    def update_yaxes(self, **properties: Any) -> Figure:
        """Set properties of every y axis."""
        return self._update_axes("yaxis", properties)

    def update_traces(self, selector: Mapping[str, Any] | None = None, **properties: Any) -> Figure:
        """Set properties of every trace, or of those that have the properties of `selector`."""
        for trace in self.data:
            if all(trace.get(name) == value for name, value in (selector or {}).items()):
                trace.update(properties)
        return self

    def spec(self) -> dict[str, Any]:
        """Return the figure as Plotly's scripts read it, arrays of numbers in base 64."""
        return {"data": _plain(self.data), "layout": _plain(self.layout)}

    def _update_axes(self, kind: str, properties: Mapping[str, Any]) -> Figure:
        self.layout.setdefault(kind, Properties())
        for name, axis in self.layout.items():
            if name.startswith(kind):
                axis.update(properties)
        return self


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it; what is not a number there is null."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, np.generic):
        return _plain(value.item())
    return [_plain(inner) for inner in value]


def _array(values: np.ndarray) -> Any:
    """Return numbers as Plotly's scripts take them in base 64, not a number included; all else as lists."""
    if values.dtype == np.int64 and values.size and np.abs(values).max() < 2**31:
        values = values.astype(np.int32)  # the scripts have no integers of 64 bits
    code = _CODES.get(values.dtype.name)
    if code is None or not values.size:
        return _plain(values.tolist())
    encoded = base64.b64encode(values.tobytes()).decode("ascii")
    shape = {"shape": ", ".join(map(str, values.shape))} if values.ndim > 1 else {}
    return {"dtype": code, "bdata": encoded, **shape}
