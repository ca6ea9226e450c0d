"""The whole way from a text to its next token on one screen: every number the model's own, every part a way in."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.common import engines, link, page
from pages.common.text import _
from pages.stages.overview import engine, local


def show() -> None:
    """Show the way, through a local model or in front of an engine."""
    served = engines.chosen()
    if served is not None:
        engine.show(served)
        link.stop()
    local.show()


st.html(Path(__file__).with_name("page.css"))
page.header(
    _("The whole way"),
    _("From a text to its next token, and back to the start."),
)
link.fragment(show)
page.try_next(
    page.Suggestion(
        _("Swap who likes whom: what changes, and from which block on?"), "overview", {"prompt": "小红喜欢小明"}
    ),
    page.Suggestion(
        _("The usual pairing: temperature 0.8 and top-p 0.9"), "overview", {"temperature": 0.8, "top_p": 0.9}
    ),
    page.Suggestion(
        _("A larger model trained on English text: 30 blocks"),
        "overview",
        {"model": "smollm2-135m-instruct", "prompt": "The capital of France is"},
    ),
    page.Suggestion(_("From the beginning: how a text becomes tokens"), "tokenization"),
)
