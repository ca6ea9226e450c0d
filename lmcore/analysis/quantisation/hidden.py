"""How far the hidden states of two models of one shape drift apart, block by block."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lmcore.language_model import LanguageModel


def hidden_states(lm: LanguageModel, ids: Sequence[int]) -> dict[str, Tensor]:
    """Return what leaves the embedding and every block, and what the head reads, by name: [S, d_model] each."""
    found: dict[str, Tensor] = {}

    def noting(name: str):  # noqa: ANN202
        def note(tensor: Tensor) -> Tensor:
            found[name] = tensor.detach()
            return tensor

        return note

    n_layers = lm.config.n_layers
    names = ["blocks.0.resid_pre", *(f"blocks.{i}.resid_post" for i in range(n_layers)), "hidden_state"]
    lm(ids, edits={name: noting(name) for name in names})
    return {name: found[name] for name in names}


def relative_errors(base: LanguageModel, other: LanguageModel, ids: Sequence[int]) -> dict[str, Tensor]:
    """Return |h' - h| / |h| at every position, float64 [S] by name, h of `base` and h' of `other`.

    Raises:
        ValueError: for models whose hidden states have different shapes.
    """
    sizes = [(lm.config.n_layers, lm.config.d_model) for lm in (base, other)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"{base.name} has {sizes[0][0]} blocks of d_model {sizes[0][1]}, {other.name} {sizes[1][0]} of "
            f"{sizes[1][1]}: only models of one shape can be compared block by block."
        )
    exact, moved = hidden_states(base, ids), hidden_states(other, ids)
    return {
        name: (moved[name].double() - h).norm(dim=-1) / h.norm(dim=-1).clamp(min=torch.finfo(torch.float64).tiny)
        for name, h in ((name, h.double()) for name, h in exact.items())
    }
