"""An id is only a name: if every token gets another id and its rows move too, the model computes the same."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from lmcore.model import Model


def random_permutation(vocab_size: int, seed: int) -> Tensor:
    """Return a permutation of the ids: old id -> new id, int64 [vocab_size]; the same for the same seed.

    >>> sorted(random_permutation(5, seed=1).tolist())
    [0, 1, 2, 3, 4]
    """
    return torch.randperm(vocab_size, generator=torch.Generator().manual_seed(seed))


def rename_ids(model: Model, new_id: Tensor) -> Model:
    """Return a copy of the model in which token t is called `new_id[t]`.

    Row t of the token embedding becomes row new_id[t], and so do the head's rows and bias where the head is a matrix
    of its own. Then for any ids: `renamed(new_id[ids])[..., new_id] == model(ids)`, up to the order of sums.

    Args:
        model: the model; it is not changed.
        new_id: int64 [vocab_size], a permutation.

    Raises:
        ValueError: when new_id is not a permutation of the ids.
    """
    vocab_size = model.config.vocab_size
    if not torch.equal(new_id.sort().values, torch.arange(vocab_size)):
        raise ValueError(f"new_id must hold each of the ids 0 to {vocab_size - 1} once; it is no permutation of them.")
    renamed = copy.deepcopy(model)
    old_id = new_id.argsort()
    with torch.no_grad():
        tables: list[Tensor | None] = [renamed.token_embedding.weight, renamed.head.bias]
        if not model.config.tie_embeddings:
            tables.append(renamed.head.weight)
        for table in tables:
            if table is not None:
                table.copy_(table[old_id])
    return renamed
