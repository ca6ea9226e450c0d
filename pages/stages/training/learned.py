"""What the embedding has learned so far: a map of its rows, and a token's neighbours from step to step."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from lmcore.analysis.embedding.similarity import neighbours
from lmcore.tokenizer.writing import SCRIPTS, script_of
from lmcore.training.background import Progress
from pages.common import page
from pages.common.text import _, in_language, visible
from pages.figures.training import live as figures
from pages.stages.training.run import TrainingRun

_NEAR = 4
_ROWS = 7  # moments in the table of neighbours
_NAMED = 45  # tokens written on the map
_FOLLOWED = {"zh": "猫", "en": " cats"}


def show(run: TrainingRun, progress: Progress) -> None:
    """Draw map and neighbours, of the latest measurement or of the one looked back to."""
    moments = [done for done, _value in progress.measurements]
    at = moments[-1]
    if not progress.alive and len(moments) > 1:
        now = st.session_state.get("training.moment")
        at = st.select_slider(_("Map after step"), moments, now if now in moments else at, key="training.moment")
    index = moments.index(at)
    labels = {token: f"{visible(run.tokenizer.token_bytes(token))} · {token}" for token in run.shown}
    picture, near = st.columns(2)
    with picture:
        _map(run, index, at)
    with near:
        first = st.session_state.get("training.followed", run.tokenizer.encode(in_language(_FOLLOWED)).ids[0])
        token = st.selectbox(
            _("Neighbours of"),
            run.shown,
            index=run.shown.index(first) if first in run.shown else 0,
            format_func=labels.__getitem__,
            key="training.followed",
        )
        _neighbours(run, progress, index, token)


def _map(run: TrainingRun, index: int, at: int) -> None:
    names = {
        "chinese": _("Chinese"),
        "latin": _("Latin"),
        "other": _("digits, punctuation, spaces"),
        "bytes": _("part of a character"),
    }
    tokens = [run.tokenizer.token_bytes(token) for token in run.shown]
    points = run.map_at(index)
    page.growing_chart(
        pd.DataFrame(
            {
                "x": points[:, 0].numpy(),
                "y": points[:, 1].numpy(),
                "token": [f"{visible(token)} · {id_}" for token, id_ in zip(tokens, run.shown, strict=True)],
                "name": [visible(token) if rank < _NAMED else "" for rank, token in enumerate(tokens)],
                "script": [names[script_of(token)] for token in tokens],
            }
        ),
        figures.token_map([names[script] for script in SCRIPTS]),
        key="training-map",
        alt=_("The rows of the embedding in two dimensions after {n} steps.").format(n=at),
    )
    st.caption(
        _(
            "After {n} steps: the rows of the {tokens} tokens that occur, projected on the two directions of "
            "largest variance and rotated to match the previous map. For distances, read the list."
        ).format(n=at, tokens=f"{len(run.shown):,}")
    )


def _neighbours(run: TrainingRun, progress: Progress, index: int, token: int) -> None:
    rows = []
    place = run.shown.index(token)
    for moment in np.unique(np.linspace(0, index, _ROWS).round().astype(int))[::-1]:
        done, value = progress.measurements[moment]
        table = value.table[run.shown]
        found = neighbours(table, table[place], min(_NEAR, len(run.shown) - 1), exclude={place})
        rows.append(
            {
                _("step"): done,
                **{
                    str(rank): f"{visible(run.tokenizer.token_bytes(run.shown[other]))} {score:.2f}"
                    for rank, (other, score) in enumerate(
                        zip(found.ids.tolist(), found.scores.tolist(), strict=True), start=1
                    )
                },
            }
        )
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="training-neighbours")
    st.caption(_("Nearest tokens by cosine in all dimensions, among the tokens that occur. The latest step is on top."))
