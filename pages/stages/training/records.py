"""How the built-in models were made: their loss curves as recorded, against the grammar's own loss."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

import lmcore
from pages.common import page, session, widgets
from pages.common.text import _
from pages.figures.training import records as figures
from pages.stages.position.common import encoding_titles

_POINTS = 400  # drawn of each curve

CODE = """
import math
import lmcore

for name in {names}:
    record = lmcore.builtin.record(name)
    held_out = record["held_out"]
    print(name, record["training"]["steps"], held_out["loss"], held_out["grammar_loss"], math.exp(held_out["loss"]))
"""


def show() -> None:
    """Draw the view."""
    records = {name: lmcore.builtin.record(name) for name in lmcore.builtin.names() if _on_record(name)}
    controls, picture = page.workbench()
    with controls:
        perplexity = widgets.toggle("training.perplexity", _("As perplexity"), help=_("Perplexity is exp(loss)."))
        window = widgets.slider(
            "training.smooth", _("Smoothing (steps)"), 1, 100, 25, help=_("Each point is the mean of this many steps.")
        )
        training = records[lmcore.builtin.DEFAULT]["training"]
        st.caption(
            _(
                "Each step: {batch} windows of {window} tokens. Learning rate up to {rate:g}, warm-up {warmup} steps, "
                "seed {seed}."
            ).format(
                batch=training["batch_size"],
                window=training["window"],
                rate=training["learning_rate"],
                warmup=training["warmup_steps"],
                seed=training["seed"],
            )
        )
    floor = records[lmcore.builtin.DEFAULT]["held_out"]["grammar_loss"]
    with picture:
        page.figure(
            figures.curves(
                {name: _thinned(record["loss_curve"], window) for name, record in records.items()},
                floor,
                chosen=session.model_name() if session.model_name() in records else None,
                perplexity=perplexity,
                floor_name=_("the grammar itself"),
                x_title=_("step"),
                y_title=_("perplexity of the batch") if perplexity else _("loss of the batch (nats per token)"),
            ),
            "training-records",
            _("Loss of every built-in model during training, approaching the loss of the grammar itself."),
        )
    st.markdown(
        _(
            "On average, no model can do better than the grammar that generated the text. The grammar's own "
            "loss on the held-out text is **{floor:.4f}** nats per token, a perplexity of "
            "**{perplexity:.4f}**. The loss of a single batch may be lower."
        ).format(floor=floor, perplexity=float(np.exp(floor)))
    )
    names = {
        "loss": _("held-out loss (nats)"),
        "grammar_loss": _("grammar itself (nats)"),
        "excess": _("above the grammar"),
        "perplexity": _("held-out perplexity"),
        "weather_total_variation": _("distance to the grammar after 今天天气"),
    }
    page.numbers_table(
        pd.DataFrame(
            [
                {
                    _("model"): name,
                    _("position encoding"): encoding_titles()[record["config"]["position_encoding"]],
                    _("tied"): record["config"]["tie_embeddings"],
                    _("steps"): record["training"]["steps"],
                    **{title: record["held_out"][key] for key, title in names.items()},
                }
                for name, record in records.items()
            ]
        ),
        "training-records",
        {
            names["loss"]: "%.4f",
            names["grammar_loss"]: "%.4f",
            names["excess"]: "probability",
            names["perplexity"]: "%.4f",
            names["weather_total_variation"]: "%.4f",
        },
    )
    page.snippet(CODE.format(names=tuple(records)))


def _on_record(name: str) -> bool:
    return lmcore.builtin.BuiltinModel(name).record_path.exists()


def _thinned(losses: list[float], window: int) -> tuple[np.ndarray, np.ndarray]:
    """Return steps and running means, at most _POINTS of them, the last one included."""
    means = figures.running_mean(losses, window)
    shown = np.unique(np.linspace(0, len(means) - 1, min(_POINTS, len(means))).round().astype(int))
    return shown + 1, means[shown]
