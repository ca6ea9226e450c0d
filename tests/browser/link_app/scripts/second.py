"""The slider that both pages have, then a stop."""

import streamlit as st

from pages.common import link, widgets

layer = widgets.slider("layer", "Layer", 0, 10, 2)
st.text(f"SECOND layer={layer}")
st.page_link("scripts/second.py", label="set again", query_params={"layer": "9", "apply": "1"})
link.stop()
