"""How tests open a page, read what it shows, run its snippet and press its buttons, without a browser.

app = open_page("sampling", prompt="我喜欢", top_k="9")      # as a fresh visitor of that address
table_with(app, "final"), told(app), figures(app), part(app, "token_groups")
press(app, "sampling.draw")
printed(app)                                                  # by the page's lines of Python
"""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import lmcore

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.parent.name for path in ROOT.glob("pages/stages/*/page.py"))
MODELS = lmcore.builtin.names()
NOTHING_TO_CHOOSE = {"compare.map"}  # a tensor of two models, which no view is about
"""Heat maps whose cells are about nothing that a page shows."""

# A fresh visitor makes Streamlit read what every installed package says of itself, in search of components: five
# sixths of the time a page takes. In a run of the tests the packages stay as they are.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def open_page(page: str, **address: str) -> AppTest:
    """Open a page as a fresh visitor with this address, in English unless it says otherwise."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    for name, value in {"lang": "en", **address}.items():
        app.query_params[name] = value
    app._page_hash = calc_hash(page)  # `switch_page` knows the pages' addresses only after a run, on another page
    return well(app.run())


def go_to(app: AppTest, page: str) -> AppTest:
    """Go to another page in the same session."""
    return well(app.switch_page(f"pages/stages/{page}/page.py").run())


def well(app: AppTest) -> AppTest:
    """Return the app after checking that no code of it failed; a page may still say that something is wrong."""
    assert not app.exception, "\n".join(line for each in app.exception for line in [each.message, *each.stack_trace])
    charts = {key_of(chart.proto.id): json.loads(chart.proto.spec)["data"] for chart in app.get("plotly_chart")}
    heat_maps = {key for key, traces in charts.items() if any(trace.get("type") == "heatmap" for trace in traces)}
    dead = heat_maps - {told["chart"] for told in parts(app, "cells")} - NOTHING_TO_CHOOSE
    assert not dead, f"a click on a cell of {sorted(dead)} does nothing"
    return app


def key_of(widget_id: str) -> str:
    """Return the key that a widget was made with."""
    return widget_id.removeprefix("$$ID-").partition("-")[2]


def clean(app: AppTest) -> AppTest:
    """Return the app after checking that it says nothing is wrong."""
    assert not well(app).error, [each.value for each in app.error]
    return app


def told(app: AppTest) -> str:
    """Return what the reader is told in sentences."""
    told_in = (app.title, app.markdown, app.info, app.warning, app.error, app.text, app.caption)
    return "\n".join(each.value for elements in told_in for each in elements)


def tables(app: AppTest) -> list[pd.DataFrame]:
    """Return the page's tables of numbers."""
    return [element.value for element in app.dataframe]


def table_with(app: AppTest, column: str) -> pd.DataFrame:
    """Return the first table that has a column."""
    return next(each for each in tables(app) if column in each.columns)


def figures(app: AppTest) -> list[go.Figure]:
    """Return the page's figures, each held to Plotly's schema: what it has no name for is an error."""
    return [go.Figure(json.loads(element.proto.spec)) for element in app.get("plotly_chart")]


def decoded(value: Any) -> Any:
    """Return a figure's specification with its arrays as lists, so that how they travel does not matter."""
    if isinstance(value, dict) and "bdata" in value:
        array = np.frombuffer(base64.b64decode(value["bdata"]), value["dtype"])
        shape = value.get("shape")
        return decoded(array.reshape([int(n) for n in shape.split(",")] if shape else -1).tolist())
    if isinstance(value, dict):
        return {name: decoded(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [decoded(inner) for inner in value]
    return None if value != value else value


def parts(app: AppTest, name: str) -> list[Any]:
    """Return what the live parts whose name contains `name` were given: bytes, or data, in the order of the page."""
    protos = [element.proto for element in app.get("bidi_component")]
    return [
        proto.bytes or json.loads(proto.json or proto.mixed.json) for proto in protos if name in proto.component_name
    ]


def part(app: AppTest, name: str) -> Any:
    """Return what the first live part of that name was given."""
    found = parts(app, name)
    assert found, f"no {name} on the page, only {[each.proto.component_name for each in app.get('bidi_component')]}"
    return found[0]


def press(app: AppTest, key: str) -> AppTest:
    """Press a button."""
    return well(app.button(key=key).click().run())


def snippet(app: AppTest, place: int = -1) -> tuple[dict[str, Any], str]:
    """Run the page's lines of Python as they stand; return the names they give and what they print."""
    names: dict[str, Any] = {}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(app.code[place].value, "snippet", "exec"), names)
    return names, out.getvalue()


def printed(app: AppTest, place: int = -1) -> str:
    """Run the page's lines of Python as they stand and return what they print."""
    return snippet(app, place)[1]


def opener(page: str, **defaults: str) -> Callable[..., AppTest]:
    """Return `open_page` for one page, with an address that a test may change."""

    def open_(**address: str) -> AppTest:
        return open_page(page, **{**defaults, **address})

    return open_
