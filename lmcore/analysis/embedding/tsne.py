"""t-SNE: a map on which near points stay near, at the price of everything else (van der Maaten and Hinton 2008).

The work is openTSNE's (Poličar et al. 2024), whose callbacks let a reader watch and stop it; it is imported only when
a map is made. Distances on such a map, and the sizes of its clusters, mean nothing: neighbours are read elsewhere.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from lmcore.analysis.embedding.pca import principal_components
from lmcore.worker import State, Tell, Worker

Start = Literal["pca", "random"]

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
    error: BaseException | None = None

    @property
    def alive(self) -> bool:
        """Whether it may still go on."""
        return self.state in ("waiting", "running")


class TsneRun(Worker["tuple[int, np.ndarray]"]):
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
        work = functools.partial(_make_map, points, n_axes, start, seed)
        super().__init__(work, name="t-SNE", slots=_ONE_AT_A_TIME, rest=0.0, keep=1)

    @property
    def progress(self) -> TsneProgress:
        """How far it is now."""
        state = self.state  # read first: what has ended has told everything
        steps, places = self.latest or (0, None)
        return TsneProgress(state, steps, places, self.error)


def _make_map(points: Tensor, n_axes: int, start: Start, seed: int, tell: Tell[tuple[int, np.ndarray]]) -> None:
    import openTSNE  # about half a second, and not everybody makes such a map

    points = torch.nn.functional.normalize(points.double(), dim=-1)
    affinities = openTSNE.affinity.PerplexityBasedNN(
        points.numpy(), perplexity_for(len(points)), method="exact", metric="euclidean", n_jobs=1
    )
    places = openTSNE.TSNEEmbedding(
        _first_places(points, n_axes, start, seed),
        affinities,
        negative_gradient_method="bh",
        n_jobs=1,
        random_state=seed,
    )
    done = 0
    for steps, options in (
        (EXAGGERATED_STEPS, {"exaggeration": _EXAGGERATION, "momentum": 0.5}),
        (STEPS - EXAGGERATED_STEPS, {"momentum": 0.8}),
    ):
        places = places.optimize(
            steps,
            **options,
            callbacks=lambda step, _error, now, before=done: tell((before + step, np.array(now, dtype=np.float64))),
            callbacks_every_iters=_EVERY,
        )
        done += steps
        tell((done, np.array(places, dtype=np.float64)))


def _first_places(points: Tensor, n_axes: int, start: Start, seed: int) -> np.ndarray:
    if start == "pca":
        places = principal_components(points).project(points, n_axes).numpy()
    else:
        places = np.random.default_rng(seed).normal(size=(len(points), n_axes))
    return 1e-4 * places / (places[:, 0].std() or 1.0)
