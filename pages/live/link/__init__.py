"""Write the page's state into the browser's address, without a new entry in its history."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import streamlit as st

_FOLDER = Path(__file__).parent


@st.cache_resource(show_spinner=False)
def _part():  # noqa: ANN202 - streamlit does not name the type of a mounted part
    return st.components.v2.component("explorer_link", js=(_FOLDER / "link.js").read_text(encoding="utf-8"))


def show_in_address(run: int, parameters: dict[str, str]) -> None:
    """Make the browser's address say `parameters`, e.g. {"prompt": "今天天气", "layer": "2"}.

    `run` differs from run to run, so that the script runs even when the parameters are the same as before: turning
    to a page clears the address.
    """
    _part()(key="explorer_link", data={"query": urlencode(parameters), "run": run}, height=0)
