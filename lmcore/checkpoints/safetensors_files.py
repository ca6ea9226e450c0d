"""Safetensors files, one or several shards, as a source of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from lmcore.checkpoints.tensor_source import TensorSource, storage
from lmcore.model_card import StorageType

_FLOATS = ("F64", "F32", "F16", "BF16")
_BYTES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I16": 2}


class SafetensorsFiles(TensorSource):
    """The tensors of some safetensors files, mapped into memory: a dtype that is kept is not copied.

    Args:
        paths: the files; no two may hold a tensor of the same name.

    Raises:
        ValueError: for a file that is missing or broken, or a tensor twice, naming file and tensor.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(paths[0].name)
        self._files: dict[str, tuple[Any, Path]] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self.kinds: dict[str, str] = {}
        """How each tensor's numbers are stored, in the format's words: F32, BF16, ..."""
        for path in paths:
            try:
                # The library checks the header against the file's size, and limits the header's own.
                file = safe_open(path, framework="pt")
                for name in file.keys():  # noqa: SIM118 - the object is no mapping
                    part = file.get_slice(name)
                    self._add(name, tuple(part.get_shape()), part.get_dtype(), file, path)
            except FileNotFoundError:
                raise ValueError(f"{path.name} is missing.") from None
            except (SafetensorError, OSError) as error:
                raise ValueError(f"{path.name} cannot be read as safetensors: {error}.") from None

    def _add(self, name: str, shape: tuple[int, ...], kind: str, file: Any, path: Path) -> None:
        if name in self._files:
            raise ValueError(f"{path.name}: tensor {name!r} is also in {self._files[name][1].name}.")
        self._files[name], self._shapes[name], self.kinds[name] = (file, path), shape, kind

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor by name."""
        return self._shapes

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """Return a tensor in this dtype.

        Raises:
            ValueError: for one that does not hold floats, or can no longer be read, naming file and tensor.
        """
        return self._stored(name).to(dtype)

    def read_bytes(self, name: str) -> Tensor:
        """Return a tensor of bytes as it is stored.

        Raises:
            ValueError: for one that holds no bytes, or can no longer be read, naming file and tensor.
        """
        return self._stored(name, ("U8",))

    def storage(self) -> dict[str, StorageType]:
        """Return how much is stored as what."""
        sizes = ((kind, math.prod(self._shapes[name])) for name, kind in self.kinds.items())
        return storage((kind, n, n * _BYTES.get(kind, 1)) for kind, n in sizes)

    def equal(self, one: str, other: str) -> bool:
        """Return whether two tensors hold the same numbers."""
        return torch.equal(self._stored(one), self._stored(other))

    def _stored(self, name: str, kinds: tuple[str, ...] = _FLOATS) -> Tensor:
        file, path = self._files[name]
        if (kind := self.kinds[name]) not in kinds:  # a mask that nobody reads may be stored as BOOL
            raise ValueError(f"{path.name}: tensor {name!r} is stored as {kind}; read are {', '.join(kinds)}.")
        try:
            tensor: Tensor = file.get_tensor(name)
            return tensor
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path.name}: tensor {name!r} cannot be read: {error}.") from None
