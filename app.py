"""The explorer's router: page list, language, prompt bar. Run it with `streamlit run app.py`."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.common import bar, link
from pages.common.text import _

ROOT = Path(__file__).parent


def stages() -> list[tuple[str, str]]:
    """Return the pages in the order of the pipeline: file name and title."""
    return [
        ("tokenization", _("Tokenization")),
        ("embedding", _("Embedding lookup")),
        ("position", _("Position encoding")),
        ("blocks", _("Transformer blocks")),
        ("logits", _("LM head and logits")),
        ("sampling", _("Sampling")),
        ("generation", _("Generation")),
        ("tying", _("Weight tying and parameters")),
        ("training", _("Joint training")),
    ]


def main() -> None:
    """Draw what is around the page, then the page."""
    st.set_page_config(page_title="Language model explorer", page_icon="🔎", layout="wide")
    link.begin()
    st.html(ROOT / "pages" / "common" / "style.css")
    with st.sidebar:
        bar.language_switch()
    pages = [
        st.Page(f"pages/stages/{name}.py", title=f"{number} · {title}", url_path=name)
        for number, (name, title) in enumerate(stages(), start=1)
        if (ROOT / "pages" / "stages" / f"{name}.py").exists()
    ]
    page = st.navigation(pages)
    with st.container(key="prompt-bar"):
        bar.prompt_bar()
    page.run()
    link.publish()


main()
