"""Experts stored in MXFP4, as gpt-oss' folders have them: 32 numbers of 4 bits share one scale, a power of two.

OCP Microscaling Formats (MX) v1.0: a number is a sign, two bits of exponent and one of fraction; the scale is 2 to the
power of a byte less 127. Of a matrix [expert, out, in], `_blocks` holds the numbers, [expert, out, in / 32, 16], two to
a byte with the earlier one in the lower half, and `_scales` the scales, [expert, out, in / 32].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lmcore.checkpoints.safetensors_files import SafetensorsFiles
from lmcore.checkpoints.tensor_source import TensorSource
from lmcore.model_card import StorageType

_BLOCKS, _SCALES = "_blocks", "_scales"
_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_OF_BLOCK, _BIAS = 32, 127


def names_mxfp4(values: Mapping[str, Any]) -> bool:
    """Whether a config says that its experts are stored in MXFP4."""
    said = values.get("quantization_config")
    return isinstance(said, Mapping) and said.get("quant_method") == "mxfp4"


class Mxfp4(TensorSource):
    """A folder's tensors, with one matrix [expert, in, out] in the place of each pair of blocks and scales: so lie the
    same experts in folders that store them in BF16.

    Args:
        files: the folder's files.

    Raises:
        ValueError: for a pair whose sizes do not belong together, naming file and tensor.
    """

    def __init__(self, files: SafetensorsFiles) -> None:
        super().__init__(files.filename)
        self._files = files
        stored = files.shapes()
        self._packed = {
            name.removesuffix(_BLOCKS)
            for name in stored
            if name.endswith(_BLOCKS) and name.removesuffix(_BLOCKS) + _SCALES in stored
        }
        self._shapes = {
            name: shape
            for name, shape in stored.items()
            if name.removesuffix(_BLOCKS) not in self._packed and name.removesuffix(_SCALES) not in self._packed
        }
        for name in self._packed:
            blocks, scales = stored[name + _BLOCKS], stored[name + _SCALES]
            if len(blocks) != 4 or blocks[-1] != _OF_BLOCK // 2 or blocks[:-1] != scales:
                raise ValueError(
                    f"{files.filename}: {name + _BLOCKS!r} has shape {list(blocks)} and its scales {list(scales)}; "
                    f"MXFP4 has {_OF_BLOCK // 2} bytes for each scale."
                )
            self._shapes[name] = (blocks[0], blocks[2] * _OF_BLOCK, blocks[1])

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor by name."""
        return self._shapes

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """Return a tensor's numbers, exact in any of the float types.

        Raises:
            ValueError: for one that can no longer be read, or holds no such numbers, naming file and tensor.
        """
        if name not in self._packed:
            return self._files.read(name, dtype)
        blocks, scales = (self._files.read_bytes(name + ending) for ending in (_BLOCKS, _SCALES))
        values = torch.tensor([*_MAGNITUDES, *(-each for each in _MAGNITUDES)], dtype=dtype)
        found = torch.empty(self._shapes[name], dtype=dtype)
        for expert, its_blocks, its_scales in zip(found, blocks, scales, strict=True):
            expert.copy_(_unpacked(its_blocks, its_scales, values))
        return found

    def storage(self) -> dict[str, StorageType]:
        """Return how much is stored as what."""
        found = {kind: of for kind, of in self._files.storage().items() if kind != "U8"}
        weights = sum(math.prod(self._shapes[name]) for name in self._packed)
        if weights:
            found["MXFP4"] = StorageType(weights, weights // 2 + weights // _OF_BLOCK)
        return dict(sorted(found.items(), key=lambda each: -each[1].weights))

    def equal(self, one: str, other: str) -> bool:
        """Return whether two tensors hold the same numbers."""
        return self._files.equal(one, other)


def _unpacked(blocks: Tensor, scales: Tensor, values: Tensor) -> Tensor:
    """Return one expert's matrix [in, out] from its blocks [out, in / 32, 16] and scales [out, in / 32].

    >>> blocks, scales = torch.full((1, 1, 16), 0x72, dtype=torch.uint8), torch.tensor([[128]], dtype=torch.uint8)
    >>> _unpacked(blocks, scales, torch.tensor([*_MAGNITUDES, *(-each for each in _MAGNITUDES)]))[:2, 0].tolist()
    [2.0, 12.0]
    """
    halves = torch.stack([blocks & 0x0F, blocks >> 4], dim=-1).flatten(-2)
    numbers = torch.ldexp(values[halves.int()], scales.int().unsqueeze(-1) - _BIAS)
    return numbers.flatten(-2).T.contiguous()
