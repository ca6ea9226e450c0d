"""Sampling: how temperature, filters and penalties reshape the distribution a token is drawn from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
import torch

import lmcore
from lmcore import Reshaped, SamplingSettings
from lmcore.model_card import ModelCard
from pages.common import engines, link, page, session
from pages.common.text import _
from pages.live.sampling_lab import sampling_lab
from pages.stages.sampling import (
    drawing,
    engine,
    history,
    knobs,
    origins,
    pasted,
    remembered,
    sources,
    tables,
    through,
    ties,
    worked,
    written,
)
from pages.stages.sampling import engines as presets


def show() -> None:
    """Show the logits chosen, how they are reshaped, and what is drawn from them."""
    with st.container():  # however many elements are in it, what follows stays in its place and is not mounted anew
        knobs.remember()
        served = engines.chosen()
        if served is None:
            source = sources.choose(beside=pasted.show)
        else:
            pasted.show()
            source = engine.choose(served)
    lab = st.container()  # above the history, which it needs to know
    with st.container():
        edited = history.choose(source)
    if not np.isfinite(source.logits.max()):
        st.error(
            _(
                "The logits at this position contain NaN or infinity, because numbers in the model overflowed. "
                "There is no distribution, and nothing can be drawn."
            )
        )
        link.stop()
    source = replace(source, history=edited.history, history_code=edited.code)
    vocab_size = len(source.logits)
    settings = knobs.settings(vocab_size)
    result = _reshaped(source, settings)
    card = session.language_model().card if served is None else ModelCard()
    with lab:
        sampling_lab(
            source.logits,
            source.token,
            knobs.for_lab(vocab_size),
            key="sampling_lab",
            history=source.history,
            result=result,
            model=card.sampling,
            on_settings=knobs.take,
        )
    origins.show(settings, card)
    if result is not None:
        remembered.show(result, source.history, source.token, "sampling.remembered")
    page.equation(
        # A narrow page breaks the line between what stands in braces.
        r"{p_i = \frac{e^{z_i / T}}{\sum_{j=1}^{V} e^{z_j / T}}}, \qquad \allowbreak {"
        + rf"V = {vocab_size:,}".replace(",", "{,}")
        + rf"}}, \quad \allowbreak {{T = {settings.temperature:g}}}"
    )
    if served is None and st.session_state["source"] == "worked":
        worked.show()

    if (refusal := knobs.refusal(vocab_size)) is not None:
        st.info(refusal)
        link.stop()
    if result is None:
        st.info(_("These penalties and biases leave no token, or overflow. Use smaller ones."))
        link.stop()
    if served is None and st.session_state["source"] == "model":
        through.show(settings, tables.call_of(settings))
        ties.show()
    st.subheader(_("The numbers"), anchor=False)
    if vocab_size > tables.MAX_ROWS:
        st.caption(_("The {n:,} most probable of {size:,} tokens.").format(n=tables.MAX_ROWS, size=vocab_size))
    frame, formats = tables.numbers(source, result)
    page.numbers_table(frame, "sampling", formats, lambda: tables.as_json(frame, settings, result))
    if vocab_size > tables.MAX_ROWS:
        st.caption(_("All {size:,} tokens:").format(size=vocab_size))

        def whole() -> pd.DataFrame:
            return tables.numbers(source, result, vocab_size)[0]

        page.downloads("sampling-whole", whole, lambda: tables.as_json(whole(), settings, result))
    drawing.show(source, result)
    presets.show(source, result)
    page.snippet(tables.snippet(source, settings))
    written.show(source, settings)


def _reshaped(source: sources.Source, settings: SamplingSettings) -> Reshaped | None:
    """Return what the settings make of the logits; None where they leave no token, or overflow."""
    try:
        return lmcore.reshape(torch.from_numpy(source.logits), settings, source.history)
    except ValueError:
        return None


page.header(
    _("Sampling"),
    _(
        "Softmax turns logits into probabilities. Temperature, filters and penalties change them before a token is "
        "drawn."
    ),
)
link.fragment(show)
page.try_next(
    page.Suggestion(
        _("The usual pairing: temperature 0.8 and top-p 0.9"), "sampling", {"temperature": 0.8, "top_p": 0.9}
    ),
    page.Suggestion(_("Temperature 0: greedy, one candidate"), "sampling", {"temperature": 0.0}),
    page.Suggestion(_("The worked example under T = 0.5"), "sampling", {"source": "worked", "temperature": 0.5}),
    page.Suggestion(_("Draw, append, repeat: generate a text with these settings"), "generation"),
)
