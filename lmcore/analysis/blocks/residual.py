"""The residual stream: the length of its vectors, and what each attention and each MLP adds to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from lmcore.trace import Trace


@dataclass(frozen=True)
class ResidualStream:
    """The stream of a model with L blocks over S positions. Tensors are float64.

    Attributes:
        states: names of the 2 L + 1 states: what enters block 0, then after each attention and each MLP.
        norms: [2 L + 1, S], Euclidean lengths of the states.
        additions: names of the 2 L things added between one state and the next.
        added_norms: [2 L, S], their lengths.
        cosines: [2 L, S], cosine between a state and the one before it: 1 where only the length changed.
    """

    states: tuple[str, ...]
    norms: Tensor
    additions: tuple[str, ...]
    added_norms: Tensor
    cosines: Tensor


def residual_states(trace: Trace) -> tuple[str, ...]:
    """Return the names of the residual stream's states in order: in, then after each attention and each MLP."""
    return ("blocks.0.resid_pre", *(name for name in trace if name.endswith((".resid_mid", ".resid_post"))))


def residual_stream(trace: Trace) -> ResidualStream:
    """Measure the residual stream of a pass over one sequence."""
    states = residual_states(trace)
    additions = tuple(_added_before(trace, name) for name in states[1:])
    norms, dots, before = [], [], None
    for name in states:
        vectors = _wide(trace, name)
        norms.append(_dots(vectors, vectors) ** 0.5)
        if before is not None:
            dots.append(_dots(before, vectors))
        before = vectors
    lengths = torch.from_numpy(np.stack(norms))
    cosines = torch.from_numpy(np.stack(dots)) / (lengths[1:] * lengths[:-1]).clamp(min=1e-300)
    added = (_wide(trace, name) for name in additions)
    added_norms = torch.from_numpy(np.stack([_dots(vectors, vectors) ** 0.5 for vectors in added]))
    return ResidualStream(states, lengths, additions, added_norms, cosines)


def cosines_between_states(trace: Trace, position: int) -> Tensor:
    """Return the cosine of every state of the stream with every other at one position, float64 [2 L + 1, 2 L + 1]."""
    vectors = torch.stack([trace[name][position].double() for name in residual_states(trace)])
    return F.cosine_similarity(vectors[:, None], vectors[None], -1)


def _wide(trace: Trace, name: str) -> np.ndarray:
    """Return one tensor in float64; all of them at a time would be much."""
    return trace[name].float().numpy().astype(np.float64)


def _dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the dot product at each position, [S]; on busy cores numpy is many times as fast as torch's threads."""
    return np.einsum("pd,pd->p", a, b)


def _added_before(trace: Trace, state: str) -> str:
    """Return the name of what was added to give a state: the last of a part's output, its norm's and the scaled."""
    block, place = state.rsplit(".", 1)
    part = {"resid_mid": "attn", "resid_post": "mlp"}[place]
    names = (f"{block}.{part}{ending}" for ending in ("_scaled", "_post_norm.out", ".out"))
    return next(name for name in names if name in trace)


def norm_scales(trace: Trace) -> tuple[tuple[str, ...], Tensor]:
    """Return what each norm that reads the stream divides by: names of the 2 L + 1 norms, and float64 [2 L + 1, S].

    RMSNorm divides by the root mean square of the vector, LayerNorm by the standard deviation of its components.
    Norms of what attention and MLP put out (sandwich norms) read no state of the stream and are left out.
    """
    names = tuple(name for name in trace if name.endswith((".attn_norm.scale", ".mlp_norm.scale", "final_norm.scale")))
    return names, torch.stack([trace[name].double() for name in names])
