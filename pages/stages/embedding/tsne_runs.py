"""t-SNE maps: one in the making for each session, the finished ones kept for all."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import streamlit as st
from torch import Tensor

from lmcore.analysis.embedding.tsne import FEWEST_POINTS, STEPS, Start, TsneProgress, TsneRun
from pages.common import widgets
from pages.common.shared import shared
from pages.common.text import _

_RUN = "table.tsne.run"  # in the session: survives page changes
_KEPT = 32  # finished maps; at most 5,000 points of 3 numbers each


@dataclass(frozen=True)
class Wanted:
    """A map: what it is of, and how it is made. Maps that agree in all of this are the same."""

    model: str
    steps: int
    ids: int
    n_axes: int
    start: Start
    seed: int


@shared()
def _finished() -> OrderedDict[Wanted, np.ndarray]:
    return OrderedDict()


def choose(model: str, steps: int, ids: list[int], n_axes: int, seed: int) -> Wanted:
    """Let the reader choose how the map starts, and return which map is wanted."""
    choice = widgets.choice(
        "table.start",
        _("Start from"),
        ["pca", "random"],
        "pca",
        format_func={"pca": "PCA", "random": _("random")}.__getitem__,
        help=_(
            "Starting from the principal components keeps the overall layout. Starting from random places, the "
            "layout depends on the seed. On a t-SNE map, the distances between clusters and their sizes mean "
            "nothing."
        ),
    )
    start: Start = "random" if choice == "random" else "pca"
    drawn = seed if start == "random" else 0
    return Wanted(model, steps, zlib.crc32(np.array(ids).tobytes()), n_axes, start, drawn)


def buttons(wanted: Wanted, points: Tensor) -> TsneProgress | None:
    """Show what can be done, and return how far the map is; None when it has not been started.

    Of too few points there is no such map, which is said.
    """
    places = _finished().get(wanted)
    if places is not None:
        return TsneProgress("finished", STEPS, places)
    if len(points) < FEWEST_POINTS:
        st.caption(_("t-SNE needs at least {n} points; these are shown by PCA.").format(n=FEWEST_POINTS))
        return None
    of, run = st.session_state.get(_RUN, (None, None))
    progress = run.progress if of == wanted else None
    if progress and progress.state == "finished":
        _keep(wanted, progress.places)
    if progress and progress.alive:
        st.button(_("Stop"), key="table.tsne.stop", on_click=run.stop, width="stretch")
    elif progress is None or progress.state in ("stopped", "failed"):
        st.button(
            _("Make the map"),
            key="table.tsne.start",
            type="primary",
            on_click=_start,
            args=(wanted, points),
            width="stretch",
        )
    return progress


def latest(wanted: Wanted) -> TsneProgress:
    """Return how far this session's map is now."""
    _of, run = st.session_state[_RUN]
    return run.progress


def _start(wanted: Wanted, points: Tensor) -> None:
    _of, before = st.session_state.get(_RUN, (None, None))
    if before is not None:
        before.stop()
    st.session_state[_RUN] = wanted, TsneRun(points, wanted.n_axes, wanted.start, wanted.seed)


def _keep(wanted: Wanted, places: np.ndarray) -> None:
    _finished()[wanted] = places
    while len(_finished()) > _KEPT:
        _finished().popitem(last=False)
