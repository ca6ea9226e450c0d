"""A slider that both pages have, one whose range follows the prompt, one option, one switch, one link that sets."""

import streamlit as st

from pages.common import widgets

layer = widgets.slider("layer", "Layer", 0, 10, 2)
place = widgets.slider("place", "Place", 0, len(st.session_state["prompt"]) - 1, 1)
kind = widgets.choice("kind", "Kind", ["scores", "pattern"], "pattern")
flag = widgets.toggle("flag", "Flag")
st.text(f"FIRST layer={layer} place={place} kind={kind} flag={flag}")
st.page_link("scripts/second.py", label="set it", query_params={"layer": "4", "prompt": "set", "apply": "1"})
