"""Whether stretching helps: loss against position of the built-in RoPE model, as trained and under each scaling."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial

import numpy as np
import streamlit as st

from lmcore import LanguageModel
from lmcore.analysis.position.length import Array, Bins, binned, losses_by_position
from lmcore.analysis.position.length_run import LengthRun, Measure, Windows
from lmcore.analysis.position.rope_extension import with_rope_scaling
from lmcore.config import RopeScaling
from pages.common import page, session
from pages.common.text import _
from pages.figures.position import encodings, scaling
from pages.stages.position.common import built_in_models, trained_length
from pages.stages.position.length import GRAMMAR, LENGTH, PER_BATCH, grammar_measure, held_out_losses

_RUN = "position.scaled_run"  # in the session: survives page changes
_BATCHES = 8
_BIN = 32
_REFRESH = 1.5  # seconds between two looks at the run


def show(scalings: Mapping[str, RopeScaling], titles: Mapping[str, str]) -> None:
    """Draw the section: a button, then the curves while they are measured."""
    name = built_in_models()["rope"]
    st.subheader(_("Does it help? Measured on {name}").format(name=name), anchor=False)
    st.markdown(
        _(
            "The model was trained on texts of {trained} tokens and nothing longer. Each scaling is applied to "
            "the same weights without further training, and reads {n} texts of {length} tokens."
        ).format(trained=trained_length(), n=_BATCHES * PER_BATCH, length=LENGTH)
    )
    run: LengthRun | None = st.session_state.get(_RUN)
    wanted = (name, *((name, item) for item in scalings.values()))
    if run is not None and run.running:
        st.button(_("Stop"), key="position.scaled_stop", on_click=run.stop)
    elif not _all_known(wanted):
        st.button(_("Measure"), key="position.scaled_start", on_click=_start, args=(name, scalings), type="primary")
    alive = run is not None and run.running
    st.fragment(_watch, run_every=_REFRESH if alive else None)(run, name, scalings, titles, alive)


def _all_known(subjects: tuple) -> bool:
    store = held_out_losses()
    return all(store.n_measured(subject, _BATCHES) == _BATCHES for subject in (GRAMMAR, *subjects))


def _start(name: str, scalings: Mapping[str, RopeScaling]) -> None:
    before: LengthRun | None = st.session_state.get(_RUN)
    if before is not None:
        before.stop()
        before.join()  # what it measures just now is not measured twice
    lm = session.language_model(name)
    measures: dict[Hashable, Measure] = {GRAMMAR: grammar_measure(), name: partial(losses_by_position, lm)}
    for item in scalings.values():
        measures[name, item] = partial(_scaled, lm, item)
    st.session_state[_RUN] = LengthRun(held_out_losses(), measures, _BATCHES)


def _scaled(lm: LanguageModel, item: RopeScaling, ids: Windows) -> Array:
    return losses_by_position(with_rope_scaling(lm, item), ids)


def _watch(
    run: LengthRun | None,
    name: str,
    scalings: Mapping[str, RopeScaling],
    titles: Mapping[str, str],
    was_alive: bool,
) -> None:
    alive = run is not None and run.running
    if run is not None and alive:
        st.progress(run.done, text=_("Measuring"))
    if run is not None:
        page.failure(run.error)
    curves = _curves(name, {titles[kind]: item for kind, item in scalings.items()})
    if len(curves) > 1:
        colours = {titles[kind]: colour for kind, colour in scaling.COLOURS.items()} | {_("unscaled"): scaling.PLAIN}
        grammar = _("the grammar itself")
        page.figure(
            encodings.by_position(
                {grammar if title == GRAMMAR else title: bins for title, bins in curves.items()},
                colours,
                length=LENGTH,
                trained=trained_length(),
                ends={},
                baseline=grammar,
                note=_("beyond the trained length"),
                end_note="",
                x_title=_("position (tokens)"),
                y_title=_("loss (nats per token)"),
            ),
            "position-scaling-loss",
            _("Loss against position of the model as trained and under each scaling, with the loss of the grammar."),
        )
    if was_alive and not alive:
        st.rerun()  # the whole page, once: the button changes


def _curves(name: str, scalings: Mapping[str, RopeScaling]) -> dict[str, Bins]:
    """Return what is known, on the texts that all have read."""
    store = held_out_losses()
    subjects = {GRAMMAR: GRAMMAR, _("unscaled"): name, **{title: (name, item) for title, item in scalings.items()}}
    found: dict[str, np.ndarray] = {}
    for title, subject in subjects.items():
        losses = store.measured(subject, _BATCHES)
        if losses is not None:
            found[title] = losses
    common = min((len(losses) for losses in found.values()), default=0)
    return {title: binned(losses[:common], _BIN) for title, losses in found.items()}
