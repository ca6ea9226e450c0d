"""Tied or not: whether two matrices share one storage, decided by identity and never by equal values."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lmcore.model import Model


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
