"""Draw tokens from the reshaped distribution, and hold what came against what was expected."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch

from lmcore import Reshaped
from lmcore.sampling import chi_square, draw_many, new_generator
from pages.common import page, widgets
from pages.common.text import _, visible
from pages.figures.sampling.draws import observed_against_expected
from pages.stages.sampling.sources import Source

MAX_DRAWS = 100_000
MAX_SEED = 2**32 - 1
SHOWN = 15
_DRAWN, _GENERATOR = "sampling.drawn", "sampling.generator"


def show(source: Source, result: Reshaped) -> None:
    """Offer to draw; show what was drawn as long as it was drawn from this distribution.

    Looking draws nothing. Each session has one generator of its own; a press puts it at the start of the seed's stream,
    so that the same seed gives the same draws whatever was drawn before.
    """
    st.subheader(_("Draw from it"), anchor=False)
    controls, picture = page.workbench()
    with controls:
        n = widgets.number("draws", _("Draws"), 1, MAX_DRAWS, 1000, help=_("At most {n:,}.").format(n=MAX_DRAWS))
        seed = widgets.number("seed", _("Seed"), 0, MAX_SEED, 0)
        pressed = st.button(
            _("Draw"), key="sampling.draw", type="primary", help=_("The same seed gives the same draws.")
        )
    drawn_from = (source.code, result.settings, n, seed)
    if pressed:
        st.session_state[_DRAWN] = (drawn_from, draw_many(result, n, _generator(seed)))
    last = st.session_state.get(_DRAWN)
    with picture:
        if result.candidates == 1:
            st.text(_("One candidate is left: every draw gives it, and the seed has no effect."))
        if last is None or last[0] != drawn_from:
            st.info(_("Nothing has been drawn from this distribution yet."))
            return
        _show_drawn(source, result, last[1])


def _generator(seed: int) -> torch.Generator:
    generator: torch.Generator = st.session_state.setdefault(_GENERATOR, new_generator(seed))
    return generator.manual_seed(seed)


def _show_drawn(source: Source, result: Reshaped, drawn: torch.Tensor) -> None:
    n = len(drawn)
    observed = torch.bincount(drawn, minlength=result.start.vocab_size)
    order = torch.sort(result.probs, descending=True, stable=True).indices[: min(SHOWN, result.candidates)]
    names = [visible(source.token(token)) for token in order.tolist()]
    expected = (result.probs[order] * n).numpy()
    chart = observed_against_expected(
        names, observed[order].numpy(), expected, drawn=_("drawn"), expected_title=_("expected"), y_title=_("draws")
    )
    alt = _("Bars: the number of times each token was drawn. Marks: the expected number.")
    page.figure(chart, "sampling-draws", alt)
    test = chi_square(observed, result)
    if test.dof == 0:
        st.text(_("With one cell there is nothing to compare."))
    else:
        st.text(
            _("χ² = {statistic:.3f}, {dof} degrees of freedom, p = {p:.4f}: {verdict}").format(
                statistic=test.statistic,
                dof=test.dof,
                p=test.p_value,
                verdict=_("as expected for this distribution.")
                if test.p_value >= 0.01
                else _("less than one time in a hundred."),
            )
        )
        st.caption(_("Tokens expected fewer than 5 times are combined into one cell."))
    table = pd.DataFrame({"draw": range(1, n + 1), "id": drawn.tolist()})
    table["token"] = table["id"].map({token: visible(source.token(token)) for token in set(drawn.tolist())})
    page.download(_("Download the draws"), "draws.csv", lambda: table.to_csv(index=False).encode("utf-8-sig"))
