"""What a page shows and prints, read from an AppTest."""

from __future__ import annotations

import contextlib
import io

import pandas as pd
from streamlit.testing.v1 import AppTest


def tables(app: AppTest) -> list[pd.DataFrame]:
    return [element.value for element in app.dataframe]


def told(app: AppTest) -> str:
    return "\n".join(element.value for element in [*app.markdown, *app.info, *app.caption, *app.text])


def printed(code: str) -> str:
    """Run a page's snippet and return what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "snippet", "exec"), {})
    return out.getvalue()
