"""Sliders keep the value chosen last when their bounds change."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.pages.harness import well


def test_a_slider_whose_bounds_change_keeps_the_value_chosen_last() -> None:
    def script() -> None:
        import streamlit as st

        from pages.common import link, widgets

        link.begin()
        if st.session_state.get("high", 10):
            st.text(str(widgets.slider("place", "Place", 0, st.session_state.get("high", 10), 9)))

    def shown(high: int) -> int:
        app.session_state["high"] = high
        return int(well(app.run()).text[-1].value)

    app = AppTest.from_function(script)
    assert shown(10) == 9
    app.session_state["high"] = 0  # the slider is away for a while, and Streamlit keeps its value under another name
    well(app.run())
    assert shown(10) == 9
    well(app.slider[0].set_value(7).run())
    assert shown(20) == 7
    well(app.slider[0].set_value(2).run())
    assert shown(5) == 2
    assert shown(1) == 1
    assert shown(20) == 1
