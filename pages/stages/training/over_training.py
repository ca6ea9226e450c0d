"""Both parts of the embedding's gradient over a training, tied against untied; and how few rows a batch looks up."""

from __future__ import annotations

import itertools

import pandas as pd
import streamlit as st

import lmcore
from lmcore.analysis.training.embedding_gradient import rows_touched
from lmcore.training.sides_history import history_of, recorded, recorded_settings
from lmcore.training.texts import WINDOW, SmallWorldText
from pages.common import page, widgets
from pages.common.text import _, visible
from pages.figures import theme
from pages.figures.theme import fmt_count
from pages.figures.training import gradients as figures
from pages.stages.training.live import RUN
from pages.stages.training.run import TrainingRun

_COSINE_COLOURS = theme.CATEGORICAL[2], theme.CATEGORICAL[3], theme.CATEGORICAL[6]
_DASHES = ("solid", "dash", "dot")
_COLOURS = (figures.INPUT_SIDE, figures.OUTPUT_SIDE)

CODE = """
from lmcore.training.sides_history import recorded

for tied, history in recorded().items():
    values = history.{which}  # input-side norm, output-side norm, cosine
    for step, first, second, cosine in zip(history.steps, *values.tolist()):
        print("tied" if tied else "untied", step, first, second, cosine)
"""


def show() -> None:
    """Draw the view."""
    tokenizer = lmcore.builtin.tokenizer()
    histories = {(_("tied") if tied else _("untied")): found for tied, found in recorded().items()}
    rows = list(next(iter(histories.values())).rows)
    run: TrainingRun | None = st.session_state.get(RUN)
    if run is not None and run.reading.own is None:
        measured = [(done, value.sides) for done, value in run.training.progress.measurements]
        if len(measured) > 1:
            name = _("my training, tied") if run.settings.tie_embeddings else _("my training, untied")
            histories[name] = history_of(measured)
    settings = recorded_settings()
    controls, picture = page.workbench()
    with controls:
        row = widgets.select(
            "training.row",
            _("Part of the matrix"),
            [-1, *rows],
            -1,
            format_func=lambda row: (
                _("the whole matrix") if row < 0 else f"{visible(tokenizer.token_bytes(row))} · {row}"
            ),
        )
        st.caption(
            _(
                "Recorded: two trainings on the small world that differ only in tying (d_model {width}, "
                "{steps} steps, seed {seed}), measured on held-out text. Train a model yourself to add it to "
                "the figure."
            ).format(width=settings.d_model, steps=settings.steps, seed=settings.seed)
        )
    values = {name: found.whole if row < 0 else found.rows[row] for name, found in histories.items()}
    sides = _("input side"), _("output side")
    with picture:
        page.figure(
            figures.over_training(
                {name: (histories[name].steps, found[2]) for name, found in values.items()},
                list(zip(_COSINE_COLOURS, _DASHES, strict=True))[: len(values)],
                x_title=_("step"),
                y_title=_("cosine of the two parts"),
                signed=True,
            ),
            "training-cosines",
            _(
                "The cosine of the two parts of the gradient at each step, tied and untied. It may be positive or "
                "negative."
            ),
        )
        page.figure(
            figures.over_training(
                {
                    f"{side}, {name}": (histories[name].steps, found[part])
                    for name, found in values.items()
                    for part, side in enumerate(sides)
                },
                [(colour, dash) for dash in _DASHES[: len(values)] for colour in _COLOURS],
                x_title=_("step"),
                y_title=_("norm of the part"),
            ),
            "training-norms",
            _("The norms of both parts at each step, tied and untied."),
        )
    page.numbers_table(
        pd.DataFrame(
            {
                _("training"): name,
                _("step"): step,
                _("norm, input side"): found[0, index],
                _("norm, output side"): found[1, index],
                _("cosine"): found[2, index],
            }
            for name, found in values.items()
            for index, step in enumerate(histories[name].steps)
        ),
        "training-over-steps",
        dict.fromkeys((_("norm, input side"), _("norm, output side"), _("cosine")), "number"),
    )
    _sparse()
    page.snippet(CODE.format(which="whole" if row < 0 else f"rows[{row}]"))


def _sparse() -> None:
    st.subheader(_("How few rows a batch uses"), anchor=False)
    tokenizer, config = lmcore.builtin.tokenizer(), lmcore.builtin.configs()[lmcore.builtin.DEFAULT]
    controls, picture = page.workbench("workbench-2")
    with controls:
        n_windows = widgets.slider("training.windows", _("Batch size (windows of 64 tokens)"), 1, 64, 16)
    (ids,) = itertools.islice(SmallWorldText(tokenizer).batches(1, n_windows), 1)
    counts = rows_touched(ids[:, :WINDOW])
    last, size = int(counts[-1]), tokenizer.vocab_size
    with controls:
        st.markdown(
            _("**{n} of {all} rows** have an input-side gradient.").format(n=fmt_count(last), all=fmt_count(size))
            + " "
            + _(
                "Stored as a sparse tensor, the gradient of the lookup takes {sparse} bytes in float32; the "
                "whole table takes {dense}. A tied head adds a gradient to every row, so the sum is not sparse."
            ).format(sparse=fmt_count(4 * last * config.d_model), dense=fmt_count(4 * size * config.d_model))
        )
    with picture:
        page.figure(
            figures.touched(
                counts,
                size,
                names=(_("input side (lookup)"), _("output side (head)")),
                x_title=_("tokens of the batch read so far"),
                y_title=_("share of the rows"),
            ),
            "training-touched",
            _(
                "The share of rows that are looked up grows with the batch and levels off far below 100 %. The "
                "head reaches all rows."
            ),
        )
