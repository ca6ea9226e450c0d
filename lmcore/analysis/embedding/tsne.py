"""t-SNE: a map on which near points stay near, at the price of everything else (van der Maaten and Hinton 2008).

The work is openTSNE's (Poličar et al. 2024), whose callbacks let a reader watch and stop it; it is imported only when
a map is made. Distances on such a map, and the sizes of its clusters, mean nothing: neighbours are read elsewhere.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from lmcore import threads
from lmcore.analysis.embedding.pca import principal_components

Start = Literal["pca", "random"]
State = Literal["waiting", "running", "finished", "stopped", "failed"]

EXAGGERATED_STEPS, STEPS = 250, 750  # of all steps, the first; openTSNE's defaults
FEWEST_POINTS = 4
_EVERY = 10  # steps between two looks at what is asked
_EXAGGERATION = 4  # the paper's; openTSNE's 12 draws the rows of a table, which have few near ones, into one point
_ONE_AT_A_TIME = threading.Lock()


def perplexity_for(n_points: int) -> float:
    """Return 30, or less for few points: each needs three times as many neighbours as the perplexity.

    >>> perplexity_for(500), perplexity_for(7)
    (30.0, 2.0)
    """
    return min(30.0, (n_points - 1) / 3)


@dataclass(frozen=True)
class TsneProgress:
    """How far a map is, at one moment.

    Attributes:
        state: waiting for its turn, running, or how it ended.
        steps: done so far, of STEPS.
        places: [N, n_axes] float64 as they are now; None before the first look.
        error: what went wrong, when the state is "failed".
    """

    state: State
    steps: int
    places: np.ndarray | None
    error: str = ""

    @property
    def alive(self) -> bool:
        """Whether it may still go on."""
        return self.state in ("waiting", "running")


class TsneRun:
    """A map in the making, in a thread of its own; one is computed at a time.

    The same points, axes, start and seed give the same map.

    Args:
        points: [N, D], N at least 4; compared by cosine, so none may be zero.
        n_axes: 2 or 3.
        start: "pca", the points along their principal components, as Kobak and Linderman 2021 advise; or "random".
        seed: of a random start.

    Raises:
        ValueError: for fewer than 4 points.
    """

    def __init__(self, points: Tensor, n_axes: int, start: Start = "pca", seed: int = 0) -> None:
        if len(points) < FEWEST_POINTS:
            raise ValueError(f"t-SNE needs at least {FEWEST_POINTS} points, got {len(points)}.")
        self._points, self._n_axes, self._start, self._seed = points, n_axes, start, seed
        self._now = TsneProgress("waiting", 0, None)
        self._stopping = threading.Event()
        self._thread = threads.start(self._run, "t-SNE", self._stopping.set)

    @property
    def progress(self) -> TsneProgress:
        """How far it is now."""
        return self._now

    def stop(self) -> None:
        """End within a few steps; the places reached stay readable."""
        self._stopping.set()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, at most `timeout` seconds."""
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            with _ONE_AT_A_TIME:
                self._compute()
            self._enter("stopped" if self._stopping.is_set() else "finished")
        except Exception as error:  # whatever it is, the reader is told; a thread has nobody else to tell
            self._enter("failed", f"{type(error).__name__}: {error}")

    def _compute(self) -> None:
        import openTSNE  # about half a second, and not everybody makes such a map

        if self._stopping.is_set():
            return
        points = torch.nn.functional.normalize(self._points.double(), dim=-1)
        affinities = openTSNE.affinity.PerplexityBasedNN(
            points.numpy(), perplexity_for(len(points)), method="exact", metric="euclidean", n_jobs=1
        )
        places = openTSNE.TSNEEmbedding(
            self._first_places(points), affinities, negative_gradient_method="bh", n_jobs=1, random_state=self._seed
        )
        done = 0
        for steps, options in (
            (EXAGGERATED_STEPS, {"exaggeration": _EXAGGERATION, "momentum": 0.5}),
            (STEPS - EXAGGERATED_STEPS, {"momentum": 0.8}),
        ):
            if self._stopping.is_set():
                return
            places = places.optimize(
                steps,
                **options,
                callbacks=lambda step, _error, now, before=done: self._look(before + step, now),
                callbacks_every_iters=_EVERY,
            )
            done += steps
            if not self._stopping.is_set():
                self._look(done, places)

    def _first_places(self, points: Tensor) -> np.ndarray:
        if self._start == "pca":
            places = principal_components(points).project(points, self._n_axes).numpy()
        else:
            places = np.random.default_rng(self._seed).normal(size=(len(points), self._n_axes))
        return 1e-4 * places / (places[:, 0].std() or 1.0)

    def _look(self, steps: int, places: np.ndarray) -> bool:
        self._now = TsneProgress("running", steps, np.array(places, dtype=np.float64))
        return self._stopping.is_set()

    def _enter(self, state: State, error: str = "") -> None:
        self._now = TsneProgress(state, self._now.steps, self._now.places, error)
