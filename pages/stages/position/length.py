"""What happens beyond the trained length: loss against position for each encoding, measured while one looks on."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from itertools import islice
from typing import Any

import pandas as pd
import streamlit as st

import lmcore
from lmcore.analysis.position.length import HELD_OUT_SEED, Bins, binned, grammar_losses_by_position, losses_by_position
from lmcore.analysis.position.length_run import HeldOutLosses, LengthRun, Measure
from lmcore.corpus import Truth, windows
from pages.common import page, session, widgets
from pages.common.shared import shared
from pages.common.text import _
from pages.figures.position import encodings as figures
from pages.stages.position.common import built_in_models, encoding_titles, steps_trained, trained_length

GRAMMAR = "grammar"
LENGTH = 512  # four times what the models were trained on
PER_BATCH = 2  # windows: one that starts a document, one that does not
_MOST_WINDOWS = 128
_RUN = "position.length_run"  # in the session: survives page changes
_REFRESH = 1.5  # seconds between two looks at the run

CODE = """
import lmcore
from lmcore.analysis.position.length import HELD_OUT_SEED, binned, grammar_losses_by_position, losses_by_position
from lmcore.corpus import Truth, windows

tokenizer = lmcore.builtin.tokenizer()
text = next(windows(HELD_OUT_SEED, {n}, {length}, tokenizer))         # ids [{n}, {more}], no model was trained on them
grammar = grammar_losses_by_position(Truth(tokenizer), text)      # [{n}, {length}]
for name in {names}:
    losses = losses_by_position(lmcore.load(name), text)
    excess = losses - grammar[:, : losses.shape[1]]
    print(name, binned(excess, {trained}).means)                         # nats a token above the grammar
"""


@shared()
def held_out_losses() -> HeldOutLosses:
    """Return the losses measured so far in this process: what one visitor measured serves all."""
    stream = windows(HELD_OUT_SEED, PER_BATCH, LENGTH, lmcore.builtin.tokenizer())
    return HeldOutLosses(list(islice(stream, _MOST_WINDOWS // PER_BATCH)), session.forward_lock())


def grammar_measure() -> Measure:
    """Return what measures the grammar itself."""
    return partial(grammar_losses_by_position, Truth(lmcore.builtin.tokenizer()))


def show() -> None:
    """Draw the view."""
    trained = trained_length()
    controls, picture = page.workbench()
    with controls:
        n_windows = widgets.select("position.windows", _("Windows of held-out text"), [16, 32, 64, _MOST_WINDOWS], 16)
        width = widgets.select("position.bin", _("Positions in a bin"), [4, 8, 16, 32, 64], 16)
        logarithmic = widgets.toggle("position.log_loss", _("Logarithmic scale"))
        run = _run(n_windows // PER_BATCH)
        st.markdown(
            _(
                "All models were trained on windows of {trained} tokens. **Learned positions end at position "
                "{last}:** the table has no row for position {trained}, so the model refuses a longer text. "
                "The other models can read further."
            ).format(trained=trained, last=trained - 1)
        )
    with picture:
        alive = run.running
        st.fragment(_watch, run_every=_REFRESH if alive else None)(run, width, trained, logarithmic, alive)
    page.equation(
        r"\begin{aligned} \mathrm{excess}_i = &-\ln P_{\mathrm{model}}(t_{i+1} \mid t_{\le i}) \\ "
        r"&+ \ln P_{\mathrm{grammar}}(t_{i+1} \mid t_{\le i}) \end{aligned}"
    )
    if not run.running:
        _numbers(run, width, trained)
    page.snippet(
        CODE.format(
            n=n_windows, length=LENGTH, more=LENGTH + 1, trained=trained, names=tuple(built_in_models().values())
        )
    )


def _run(n_batches: int) -> LengthRun:
    """Return this session's run, started when the reader first looks or asks for more, with its buttons."""
    run: LengthRun | None = st.session_state.get(_RUN)
    if run is None or run.n_batches != n_batches:
        run = _start(n_batches)
    if run.running:
        st.button(_("Stop"), key="position.stop", on_click=run.stop, width="stretch")
    elif run.done < 1:
        st.button(_("Go on"), key="position.go_on", on_click=_go_on, args=(n_batches,), width="stretch", type="primary")
    return run


def _go_on(n_batches: int) -> None:
    _start(n_batches)


def _start(n_batches: int) -> LengthRun:
    before: LengthRun | None = st.session_state.get(_RUN)
    if before is not None:
        before.stop()
        before.join()  # what it measures just now is not measured twice
    measures: dict[Hashable, Measure] = {GRAMMAR: grammar_measure()}
    for name in built_in_models().values():
        measures[name] = partial(losses_by_position, session.language_model(name))
    run = st.session_state[_RUN] = LengthRun(held_out_losses(), measures, n_batches)
    return run


def _watch(run: LengthRun, width: int, trained: int, logarithmic: bool, was_alive: bool) -> None:
    """Draw what is measured so far; runs by itself again and again until the run has ended."""
    alive, done = run.running, run.done
    if done < 1 or alive:
        words = _("Measuring") if alive else _("Stopped")
        st.progress(
            done, text=_("{words} · {done:.0%} of {n} windows").format(words=words, done=done, n=_n_windows(run))
        )
    page.failure(run.error)
    losses, excess = _curves(run, width)
    grammar = _("the grammar itself")
    titles = {str(name): title for name, title in encoding_titles().items()} | {GRAMMAR: grammar}
    common: dict[str, Any] = {
        "colours": {titles[encoding]: colour for encoding, colour in figures.COLOURS.items()},
        "length": LENGTH,
        "trained": trained,
        "ends": {titles["learned"]: trained} if "learned" in losses else {},
        "note": _("beyond the trained length"),
        "end_note": _("learned ends here"),
        "x_title": _("position (tokens)"),
        "logarithmic": logarithmic,
    }
    named, above = ({titles[name]: bins for name, bins in found.items()} for found in (losses, excess))
    st.markdown("**" + _("Loss at each position, and the loss of the grammar") + "**")
    page.figure(  # from the beginning: curves come into it as they are measured
        figures.by_position(named, baseline=grammar, y_title=_("loss (nats per token)"), **common),
        "position-length",
        _("Loss against position for each encoding, with the exact loss of the grammar on the same text."),
    )
    if excess:
        st.markdown("**" + _("Above the grammar: what the model has not learned") + "**")
        page.figure(
            figures.by_position(above, y_title=_("above the grammar (nats per token)"), **common),
            "position-excess",
            _("Loss of each encoding minus the grammar's loss on the same tokens, against position."),
        )
    if was_alive and not alive:
        st.rerun()  # the whole page, once: the buttons and the table change


def _n_windows(run: LengthRun) -> int:
    return run.n_batches * PER_BATCH


def _curves(run: LengthRun, width: int) -> tuple[dict[str, Bins], dict[str, Bins]]:
    """Return the binned losses by encoding, the grammar's first, and what lies above the grammar's on the same text."""
    store = held_out_losses()
    grammar = store.measured(GRAMMAR, run.n_batches)
    losses: dict[str, Bins] = {} if grammar is None else {GRAMMAR: binned(grammar, width)}
    excess: dict[str, Bins] = {}
    for encoding, name in built_in_models().items():
        found = store.measured(name, run.n_batches)
        if found is not None and grammar is not None:
            both = min(len(found), len(grammar))
            losses[encoding] = binned(found, width)
            excess[encoding] = binned(found[:both] - grammar[:both, : found.shape[1]], width)
    return losses, excess


def _numbers(run: LengthRun, width: int, trained: int) -> None:
    """Show the excess by lengths of the training window, and every bin."""
    names, titles = built_in_models(), encoding_titles()
    _losses, parts = _curves(run, trained)
    if not parts:
        return
    spans = [f"{start}–{start + trained - 1}" for start in range(0, LENGTH, trained)]
    st.caption(
        _("Loss in nats per token above the grammar's, by position; ± is the standard error over {n} windows.").format(
            n=_n_windows(run)
        )
    )
    rows = []
    for encoding, bins in parts.items():
        padded = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(bins.means, bins.errors, strict=True)]
        rows.append(
            {
                _("encoding"): titles[encoding],
                _("steps trained"): steps_trained(names[encoding]),
                **dict(zip(spans, padded + [_("no such position")] * (len(spans) - len(padded)), strict=True)),
            }
        )
    page.numbers_table(pd.DataFrame(rows), "position-length")
    losses, excess = _curves(run, width)
    grammar = losses[GRAMMAR]
    frame = pd.DataFrame(
        {_("from position"): grammar.starts, _("to position"): grammar.ends, _("grammar (nats)"): grammar.means}
    )
    formats = {_("grammar (nats)"): "%.4f"}
    for encoding in excess:
        for title, found in ((_("{encoding} (nats)"), losses), (_("{encoding}, above the grammar"), excess)):
            column = title.format(encoding=titles[encoding])
            frame[column] = pd.Series(found[encoding].means)
            formats[column] = "%.4f"
    page.numbers_table(frame, "position-length-bins", formats)
