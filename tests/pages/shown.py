"""What a page shows and prints, read from an AppTest."""

from __future__ import annotations

import contextlib
import io
import json

import pandas as pd
import plotly.graph_objects as go
from streamlit.testing.v1 import AppTest


def tables(app: AppTest) -> list[pd.DataFrame]:
    return [element.value for element in app.dataframe]


def figures(app: AppTest) -> list[go.Figure]:
    """Return the page's figures, each held to Plotly's schema: what it has no name for is an error."""
    return [go.Figure(json.loads(element.proto.spec)) for element in app.get("plotly_chart")]


def told(app: AppTest) -> str:
    return "\n".join(element.value for element in [*app.markdown, *app.info, *app.caption, *app.text])


def printed(code: str) -> str:
    """Run a page's snippet and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "snippet", "exec"), {})
    return out.getvalue()
