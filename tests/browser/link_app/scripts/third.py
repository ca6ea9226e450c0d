"""A fragment with the slider, and a button that changes what stands around it; the text around counts the full runs."""

import streamlit as st

from pages.common import link, widgets


def show() -> None:
    st.text(f"THIRD layer={widgets.slider('layer', 'Layer', 0, 10, 2)}")
    st.button("Write", on_click=lambda: st.session_state.update({"prompt": "written"}))


st.session_state["runs"] = st.session_state.get("runs", 0) + 1
st.text(f"RUNS {st.session_state['runs']}")
link.fragment(show)
st.text("AFTER")
