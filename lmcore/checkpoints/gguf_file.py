"""GGUF files: the header, every length checked against the file before it is believed, and tensors to floats.

The format is described in docs/gguf.md of the ggml repository. The numbers inside quantised blocks
are unpacked by the `gguf` package; its reader is not used, because it trusts the lengths in a file.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import _type_traits, dequantize
from torch import Tensor

from lmcore.checkpoints.joined_file import JoinedFile
from lmcore.checkpoints.tensor_source import TensorSource

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_READABLE = tuple(sorted({"F32", "F16", *(kind.name for kind in _type_traits)}))
_CHUNK = 1 << 16  # weights dequantised at a time: little memory, and it stays in the processor's cache
_WINDOW = 1 << 20  # weights read from the file at a time


@dataclass(frozen=True)
class StoredTensor:
    """A tensor's place in the file.

    Attributes:
        shape: as torch orders axes, [out, in] for a matrix.
        kind: how its numbers are stored.
        offset: bytes from the beginning of the file.
        nbytes: its size there.
    """

    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    offset: int
    nbytes: int


class GGUFFile(TensorSource):
    """A GGUF file's metadata and tensors.

    Args:
        parts: the file, or the parts it was cut into, in order.
        name: what errors call it.

    Raises:
        ValueError: for a file that is broken or of a kind not read, naming file and field.
    """

    def __init__(self, parts: Sequence[Path], name: str | None = None) -> None:
        super().__init__(name or parts[0].name)
        self._file = JoinedFile(parts)
        header = _Header(self._file, self.filename)
        self.metadata = header.metadata
        self.stored = header.tensors
        """Every tensor's place."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor by name."""
        return {name: stored.shape for name, stored in self.stored.items()}

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """Return a tensor's numbers in this dtype."""
        stored = self.stored[name]
        block, block_bytes = GGML_QUANT_SIZES[stored.kind]
        flat = torch.empty(math.prod(stored.shape), dtype=dtype)
        for begin in range(0, len(flat), _WINDOW):
            end = min(begin + _WINDOW, len(flat))
            place, nbytes = stored.offset + begin // block * block_bytes, (end - begin) // block * block_bytes
            window = np.frombuffer(bytearray(self._file.read_at(place, nbytes)), np.uint8)  # torch wants it writable
            for start in range(begin, end, _CHUNK):
                stop = min(start + _CHUNK, end)
                packed = window[(start - begin) // block * block_bytes : (stop - begin) // block * block_bytes]
                numbers = _unpacked(packed, stored.kind)
                if dtype == torch.float32:
                    flat.numpy()[start:stop] = numbers  # one thread: on a busy machine two would wait for each other
                else:
                    flat[start:stop] = torch.from_numpy(numbers)
        return flat.view(stored.shape)


def _unpacked(packed: npt.NDArray[np.uint8], kind: GGMLQuantizationType) -> npt.NDArray[np.float32]:
    """Return the numbers of whole blocks."""
    block_bytes = GGML_QUANT_SIZES[kind][1]
    if kind == GGMLQuantizationType.Q5_0:
        return _unpacked_q5_0(packed.reshape(-1, block_bytes)).reshape(-1)
    # The package unpacks 16 rows at a time: rows of 64 blocks are few and still small.
    width = block_bytes * 64
    return dequantize(packed.reshape(-1, width if len(packed) % width == 0 else block_bytes), kind).reshape(-1)


def _unpacked_q5_0(blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Return [block, 32] numbers of Q5_0 blocks, in a third of the package's time: most of a small "Q4_K_M" file.

    A block is a scale in float16, the fifth bits of 32 integers, then their lower four bits, those of the first 16
    in the lower halves of the bytes.
    """
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    fifth = np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little") << 4
    halves = blocks[:, 6:]
    whole = np.concatenate([halves & 15, halves >> 4], axis=1) | fifth
    return scale * (whole.view(np.int8) - np.int8(16))


class SplitGGUF(TensorSource):
    """The files that one model was split into, each with a header of its own; the first has the metadata.

    Args:
        parts: the files in order.

    Raises:
        ValueError: for a broken file, or parts that do not belong together.
    """

    def __init__(self, parts: Sequence[Path]) -> None:
        super().__init__(parts[0].name)
        files = [GGUFFile([part]) for part in parts]
        self.metadata = files[0].metadata
        self._file_of: dict[str, GGUFFile] = {}
        for number, file in enumerate(files):
            told = file.metadata.get("split.no"), file.metadata.get("split.count")
            if told != (number, len(files)):
                raise ValueError(
                    f"{file.filename}: split.no and split.count are {told[0]} and {told[1]}, not {number} and "
                    f"{len(files)}; these files are not the parts of one model in order."
                )
            for name in file.shapes():
                if name in self._file_of:
                    raise ValueError(f"{file.filename}: tensor {name!r} is also in {self._file_of[name].filename}.")
                self._file_of[name] = file
        if (count := self.metadata.get("split.tensors.count", len(self._file_of))) != len(self._file_of):
            raise ValueError(f"{self.filename}: {count} tensors are announced, its parts have {len(self._file_of)}.")

    @property
    def stored(self) -> dict[str, StoredTensor]:
        """Every tensor's place in its file."""
        return {name: file.stored[name] for name, file in self._file_of.items()}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor by name."""
        return {name: stored.shape for name, stored in self.stored.items()}

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """Return a tensor's numbers in this dtype."""
        return self._file_of[name].read(name, dtype)


def open_gguf(parts: Sequence[Path], name: str | None = None) -> GGUFFile | SplitGGUF:
    """Open a GGUF file, the pieces that a file was cut into, or the files that a model was split into.

    Raises:
        ValueError: for a file that is broken, of a kind not read, or one part of several.
    """
    if len(parts) > 1 and all(_begins_as_gguf(part) for part in parts):
        return SplitGGUF(parts)
    file = GGUFFile(parts, name)
    if (count := file.metadata.get("split.count", 1)) > 1:
        raise ValueError(
            f"{file.filename} is part {file.metadata.get('split.no', 0) + 1} of {count} of a model; its parts are "
            f"found when they lie in one folder and end in -00001-of-{count:05}.gguf and so on."
        )
    return file


def _begins_as_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False  # the reader says which


class _Header:
    """Reads a header from the front; the file's size bounds every length in it."""

    def __init__(self, file: JoinedFile, name: str) -> None:
        self._file, self._name = file, name
        self._data = b""
        self._at = 0
        self._field = "the magic number"
        if self._take("4s") != b"GGUF":
            raise ValueError(f"{name} is not a GGUF file: it does not begin with 'GGUF'.")
        version = self._take("<I")
        if version not in (2, 3):
            why = "it is written for big-endian machines" if version > 0xFFFF else "only 2 and 3 are read"
            raise ValueError(f"{name}: GGUF version {version:#x}: {why}.")
        n_tensors, n_fields = self._count("the number of tensors", 24), self._count("the number of fields", 13)
        self.metadata: dict[str, Any] = {}
        for index in range(n_fields):
            self._field = f"the name of field {index}"
            key = self._string()
            self._field = key
            if key in self.metadata:
                raise ValueError(f"{name}: field {key!r} is given twice.")
            self.metadata[key] = self._value(self._take("<I"))
        self.tensors = self._tensors(n_tensors)

    def _tensors(self, n_tensors: int) -> dict[str, StoredTensor]:
        places: dict[str, tuple[tuple[int, ...], int, int]] = {}
        for index in range(n_tensors):
            self._field = f"the name of tensor {index}"
            key = self._string()
            self._field = f"tensor {key!r}"
            if key in places:
                raise ValueError(f"{self._name}: {self._field} is given twice.")
            n_axes = self._take("<I")
            if not 1 <= n_axes <= 4:
                raise ValueError(f"{self._name}: {self._field} has {n_axes} axes; 1 to 4 are possible.")
            shape = tuple(self._take("<Q") for _ in range(n_axes))[::-1]
            places[key] = shape, self._take("<I"), self._take("<Q")
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise ValueError(f"{self._name}: general.alignment = {alignment!r} is no power of two.")
        begin = -(-self._at // alignment) * alignment
        return {key: self._stored(key, *place, begin) for key, place in places.items()}

    def _stored(self, key: str, shape: tuple[int, ...], kind_number: int, offset: int, begin: int) -> StoredTensor:
        try:
            kind = GGMLQuantizationType(kind_number)
        except ValueError:
            raise ValueError(f"{self._name}: tensor {key!r} has the unknown storage type {kind_number}.") from None
        if kind.name not in _READABLE:
            raise ValueError(f"{self._name}: tensor {key!r} is stored as {kind.name}; read are {', '.join(_READABLE)}.")
        block, block_bytes = GGML_QUANT_SIZES[kind]
        if not all(shape) or shape[-1] % block:
            raise ValueError(f"{self._name}: tensor {key!r} has shape {list(shape)}, which {kind.name} cannot store.")
        nbytes = math.prod(shape) // block * block_bytes
        if begin + offset + nbytes > self._file.size:
            raise ValueError(
                f"{self._name} is cut short: tensor {key!r} ends at byte {begin + offset + nbytes:,}, "
                f"the file at {self._file.size:,}."
            )
        return StoredTensor(shape, kind, begin + offset, nbytes)

    def _value(self, kind: int) -> Any:
        if kind in _SCALARS:
            return self._take("<" + _SCALARS[kind])
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            item = self._take("<I")
            if item in _SCALARS:
                count = self._count(f"the length of {self._field}", struct.calcsize("<" + _SCALARS[item]))
                return list(self._unpack(f"<{count}{_SCALARS[item]}"))
            if item == _STRING:
                return [self._string() for _ in range(self._count(f"the length of {self._field}", 8))]
        raise ValueError(f"{self._name}: {self._field} has the unknown type {item if kind == _ARRAY else kind}.")

    def _count(self, what: str, item_bytes: int) -> int:
        """A number of items, refused when the rest of the file could not hold them."""
        count = self._take("<Q")
        if count * item_bytes > self._file.size - self._at:
            raise ValueError(
                f"{self._name}: {what} is {count:,}, more than the file of {self._file.size:,} bytes can hold."
            )
        return count

    def _string(self) -> str:
        start = self._at + 8
        self._need(8)
        (length,) = struct.unpack_from("<Q", self._data, self._at)
        self._at = start
        self._need(length)
        self._at += length
        try:
            return str(self._data[start : start + length], "utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{self._name}: {self._field} is not UTF-8.") from None

    def _take(self, form: str) -> Any:
        return self._unpack(form)[0]

    def _unpack(self, form: str) -> tuple[Any, ...]:
        length = struct.calcsize(form)
        self._need(length)
        self._at += length
        return struct.unpack_from(form, self._data, self._at - length)

    def _need(self, length: int) -> None:
        stop = self._at + length
        if stop <= len(self._data):
            return
        if stop > self._file.size:
            raise ValueError(
                f"{self._name} is cut short, or broken, at {self._field}: {length:,} bytes are said to follow "
                f"byte {self._at:,} of {self._file.size:,}."
            )
        wanted = min(max(stop, 2 * len(self._data), 1 << 20), self._file.size)
        self._data += self._file.read_at(len(self._data), wanted - len(self._data))
