"""Tied or not: whether two matrices share one storage, decided by identity and never by equal values."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from lmcore.model import Model

_ALIKE = 0.9  # quantising to 2 bits leaves rows at a cosine of .96; matrices learned apart stay below .5
_ROWS = 1 << 14  # compared at a time, so that no third matrix lies in memory


@dataclass(frozen=True)
class Storage:
    """How two matrices lie in memory.

    Attributes:
        same_object: the two names mean one Parameter, in Python `a is b`.
        addresses: where the numbers of each begin, in bytes, as `data_ptr()` gives it.
        max_difference: the largest |a - b|. 0 does not say that they are one: a copy has it too.
        size: numbers in one of them.
        numbers: numbers in memory for both together, shared storage counted once.
    """

    same_object: bool
    addresses: tuple[int, int]
    max_difference: float
    size: int
    numbers: int

    @property
    def shared(self) -> bool:
        """Whether both are one storage, so that a change to one is a change to the other."""
        return self.addresses[0] == self.addresses[1]


def storage_of(a: Tensor, b: Tensor) -> Storage:
    """Return how two matrices of one shape lie in memory.

    Raises:
        ValueError: for shapes that differ.

    >>> import torch
    >>> table = torch.zeros(3, 2)
    >>> storage_of(table, table).shared, storage_of(table, table.clone()).shared
    (True, False)
    >>> storage_of(table, table.clone()).max_difference, storage_of(table, table.clone()).numbers
    (0.0, 12)
    """
    if a.shape != b.shape:
        raise ValueError(f"the matrices have shapes {list(a.shape)} and {list(b.shape)}; only equal shapes can be one.")
    addresses = a.data_ptr(), b.data_ptr()
    difference = (a.detach() - b.detach()).abs().max().item()
    return Storage(a is b, addresses, difference, a.numel(), a.numel() * len(set(addresses)))


def storage_of_model(model: Model) -> Storage:
    """Return how the token embedding and the head's matrix of a model lie in memory."""
    return storage_of(model.token_embedding.weight, model.head.weight)


def stored_twice(model: Model) -> float | None:
    """Return the mean cosine of the rows of embedding and head where a file holds one matrix twice, else None.

    A quantised file can store a tied matrix in two types, coarser as the embedding than as the head. The model then has
    two matrices that differ by rounding alone: it was trained tied, and is stored untied.
    """
    if model.config.tie_embeddings:
        return None
    pairs = zip(model.token_embedding.weight.split(_ROWS), model.head.weight.split(_ROWS), strict=True)
    total = sum(nn.functional.cosine_similarity(a.detach().float(), b.detach().float()).sum().item() for a, b in pairs)
    mean = total / model.config.vocab_size
    return mean if mean > _ALIKE else None
