"""Named tensors that are read one at a time: what every kind of weights file looks like from outside."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from lmcore.model_card import StorageType


class TensorSource(ABC):
    """Named tensors, whose shapes are known before any is read.

    Args:
        filename: what errors call it.
    """

    def __init__(self, filename: str) -> None:
        self.filename = filename

    @abstractmethod
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shape of every tensor by name."""

    @abstractmethod
    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """Return a tensor's numbers in this dtype."""


def storage(tensors: Iterable[tuple[str, int, int]]) -> dict[str, StorageType]:
    """Return the share of each storage type, the largest first, from (type, weights, bytes) of every tensor."""
    weights: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    for kind, n, size in tensors:
        weights[kind] += n
        nbytes[kind] += size
    return {kind: StorageType(n, nbytes[kind]) for kind, n in weights.most_common()}


class InMemory(TensorSource):
    """Tensors that are in memory already."""

    def __init__(self, tensors: Mapping[str, Tensor], filename: str) -> None:
        super().__init__(filename)
        self._tensors = tensors

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor by name."""
        return {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """Return a tensor in this dtype; the caller owns it."""
        return self._tensors[name].detach().to(dtype, copy=True)
