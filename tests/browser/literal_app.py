"""Hostile texts through each way a page has to show a token, for test_literal.py."""

import pandas as pd
import streamlit as st

from pages.common import link, page
from pages.common.server import around_the_pages
from pages.common.text import markdown_literal, visible
from pages.figures import theme
from pages.live.token_strip import token_strip
from tests.pages.hostile import TEXTS


def main() -> None:
    """Draw every text."""
    link.begin()
    for number, text in enumerate(TEXTS):
        with st.container(key=f"markdown-{number}"):
            st.markdown(f"before {markdown_literal(text)} after")
            st.caption(markdown_literal(text))
    with st.container(key="labels"):
        for number, text in enumerate(TEXTS):
            st.toggle(markdown_literal(text), key=f"toggle-{number}")
    st.session_state.setdefault("chosen", 1)
    token_strip(
        TEXTS,
        range(len(TEXTS)),
        key="strip",
        label="Texts",
        selected=st.session_state["chosen"],
        on_select=lambda index: st.session_state.update(chosen=index),
    )
    st.text(f"CHOSEN {st.session_state['chosen']}")
    labels = [visible(text) for text in TEXTS]
    page.figure(theme.bars(range(len(TEXTS)), labels, kind="amount", height=900), "bars", "Bars")
    page.numbers_table(pd.DataFrame({"text": labels}), "texts")


if __name__ == "__main__":
    main()
else:
    app = st.App(__file__, **around_the_pages())
