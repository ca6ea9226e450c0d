"""Every view of the position page, with what readers type."""

from __future__ import annotations

import pytest

from tests.pages.harness import printed, tables, told
from tests.pages.position.page import FEW, run

VIEWS = (
    "order",
    "length",
    "distance",
    "compare",
    "sinusoidal",
    "learned",
    "rope",
    "scaling",
    "alibi",
    "relative",
)


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_runs_and_its_snippet_too(view: str, lang: str) -> None:
    app = run(**{"position.view": view, "lang": lang}, **FEW)
    assert not app.error and len(app.title) == 1
    assert app.title[0].value.isascii() == (lang == "en")
    assert len(printed(app)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("prompt", ["", "我", "\0\u202e<script>alert(1)</script> :red[x] $y$ 😊", "好" * 600])
def test_prompts_that_do_not_fit_are_met_with_numbers_or_a_sentence(view: str, prompt: str) -> None:
    app = run(prompt=prompt, **{"position.view": view}, **FEW)
    assert not app.error
    assert tables(app) or app.info or view == "length"  # that one asks for no prompt, and may still be measuring
    if prompt == "" and view in ("sinusoidal", "alibi", "relative", "rope"):
        assert "prompt above" in told(app)


def test_values_out_of_range_are_replaced_and_said() -> None:
    app = run(**{"position.view": "sinusoidal", "position.length": "64", "position.place": "900"})
    assert "900 is not a number from 0 to 63; showing 63." in told(app)
