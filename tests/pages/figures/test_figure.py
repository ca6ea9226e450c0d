"""Figures as plain data against plotly's own objects, under the same calls."""

import base64
import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from pages.figures.figure import Figure
from tests.pages.harness import decoded


def build(figure: Any) -> Any:
    """Call every method on a figure, plotly's or ours."""
    figure.update_layout({"xaxis": {"title": {"text": "x", "standoff": 3}}, "yaxis": {"automargin": True}})
    figure.add_heatmap(z=np.array([[1.0, np.nan], [3.5, -2.0]]), colorscale=[[0, "red"], [1, "blue"]], zmin=-2)
    figure.add_heatmap(z=np.eye(2, dtype=np.float32), colorbar={"title": {"text": "amount"}}, xaxis="x2")
    figure.add_bar(x=np.arange(3), y=["a", "b", "c"], text=["1", "2", "3"], marker={"line": {"width": [0, 2.5, 0]}})
    figure.add_scatter(x=[1, 2], y=[float("nan"), 2.0], mode="lines", line={"dash": "dot"}, customdata=["p", "q"])
    figure.add_scatter(x=np.zeros(0), y=np.array([], dtype=np.int64), mode="markers")
    figure.add_treemap(labels=["root"], parents=[""], values=[np.float64(1.5)])
    figure.add_annotation(text="here", x=1, y=2, showarrow=False)
    figure.add_shape(type="rect", x0=0, x1=1, y0=0, y1=1, line={"color": "black"})
    figure.add_hline(y=2, line={"width": 1})
    figure.add_vline(x=3, line={"width": 2, "dash": "dash"})
    figure.add_vrect(x0=1, x1=2, fillcolor="grey", line_width=0, layer="below")
    figure.update_layout(xaxis2={"anchor": "y"}, margin_t=8, xaxis_title_text="rewritten", paper_bgcolor="white")
    figure.update_xaxes(showgrid=True, tickfont_size=10)
    figure.update_yaxes(range=[0, 1])
    figure.update_traces(hoverinfo="skip")
    figure.update_traces(line_shape="hv", selector={"mode": "lines"})
    figure.data[0].update(zmax=4, colorbar_len=0.5)
    figure.data[1].colorbar.title.text = "changed"
    figure.layout.yaxis.title = {"text": "set"}
    return figure


def test_the_same_calls_give_the_same_figure_as_plotly() -> None:
    ours = build(Figure({"height": 300})).spec()
    reference = json.loads(build(go.Figure(layout={"height": 300})).to_json())
    del reference["layout"]["template"]  # pages add it
    assert decoded(json.loads(json.dumps(ours))) == decoded(reference)


def test_arrays_travel_in_base_64_and_what_scripts_have_no_numbers_for_as_lists() -> None:
    figure = Figure().add_bar(x=np.array([2**40, 1]), y=np.array([1.5, np.nan]), text=np.array(["a", "b"]))
    figure.add_bar(x=np.array([True, False]), y=[np.float32(0.5), float("inf")], base=None)
    first, second = figure.spec()["data"]
    assert first["x"] == [2**40, 1] and first["text"] == ["a", "b"]
    assert np.frombuffer(base64.b64decode(first["y"]["bdata"]), "f8")[0] == 1.5
    assert second == {"type": "bar", "x": [True, False], "y": [0.5, None]}


def test_a_trace_added_to_another_figure_is_a_copy() -> None:
    source = Figure().add_bar(x=[1], marker={"color": "red"})
    other = Figure().add_trace(source.data[0])
    other.update_traces(marker_color="blue")
    assert source.data[0].marker.color == "red"
    with pytest.raises(AttributeError):
        source.data[0].marker.__wrapped__  # noqa: B018 - what copying and pickling ask for is not a property
