"""Tensor names of other programs' files, as data: where each of our tensors lies in such a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from lmcore.checkpoints.tensor_source import InMemory, TensorSource
from lmcore.config import ModelConfig

_KINDS = ("weight", "bias")


@dataclass(frozen=True)
class Place:
    """Where a tensor lies.

    Attributes:
        name: the file's name for it, without the prefix of its block and ".weight" or ".bias".
        third: 0, 1 or 2 for q, k and v that are stored below one another in one tensor.
        transposed: matrices are stored as [in, out].
        interleaved: the rows of each head are stored in the order in which RoPE's pairs are neighbours,
            (0, 1), (2, 3), ...; here the pairs are (0, d/2), (1, d/2 + 1), ...
    """

    name: str
    third: int | None = None
    transposed: bool = False
    interleaved: bool = False


@dataclass(frozen=True)
class Names:
    """The names of one family.

    Attributes:
        top: our name -> the file's, for what stands outside the blocks.
        block: the same within a block.
        block_prefix: the file's prefix of a block, {i} being its index.
        prefixes: what may stand before all names, the longest first; files of one family differ in it.
        ignored: a pattern of names that hold no weights of the language model.
    """

    top: Mapping[str, str | Place]
    block: Mapping[str, str | Place]
    block_prefix: str
    prefixes: tuple[str, ...] = ()
    ignored: str = field(default=r"(?!)")

    def bare(self, name: str) -> str:
        """Return a name without the prefix that a part of the files has."""
        return next((name.removeprefix(prefix) for prefix in self.prefixes if name.startswith(prefix)), name)

    def places(self, n_layers: int) -> dict[str, Place]:
        """Return the place, its full name given, of each of our modules."""
        found = {ours: _as_place(theirs, "") for ours, theirs in self.top.items()}
        for i in range(n_layers):
            prefix = self.block_prefix.format(i=i)
            found |= {f"blocks.{i}.{ours}": _as_place(theirs, prefix) for ours, theirs in self.block.items()}
        return found

    def rename(self, tensors: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """Return tensors in memory under our names; see `Renamed`."""
        renamed = Renamed(InMemory(tensors, "the weights"), self, config)
        return {name: renamed.read(name, tensors[renamed.origin(name)].dtype) for name in renamed.shapes()}


def _as_place(theirs: str | Place, prefix: str) -> Place:
    place = Place(theirs) if isinstance(theirs, str) else theirs
    return replace(place, name=prefix + place.name)


class Renamed(TensorSource):
    """A source under our names; tensors the family does not have keep theirs, so that a reader can refuse them."""

    def __init__(self, source: TensorSource, names: Names, config: ModelConfig) -> None:
        super().__init__(source.filename)
        self._source, self._d_head = source, config.d_head
        shapes = source.shapes()
        full_names: dict[str, str] = {}
        for name in shapes:
            if (twin := full_names.setdefault(names.bare(name), name)) != name:
                raise ValueError(f"{source.filename}: tensors {twin!r} and {name!r} stand for the same weights.")
        self._places: dict[str, tuple[str, Place]] = {}
        used = set()
        n_layers = min(config.n_layers, len(shapes))  # a config may speak of any number
        for ours, place in names.places(n_layers).items():
            for kind in _KINDS:
                full = full_names.get(f"{place.name}.{kind}")
                if full is None:
                    continue
                used.add(full)
                self._places[f"{ours}.{kind}"] = full, place
        if config.tie_embeddings and (head := self._places.pop("head.weight", None)):
            self._places.setdefault("token_embedding.weight", head)  # one of the two is enough
        for full in shapes:
            if full not in used and not re.fullmatch(names.ignored, names.bare(full)):
                self._places[full] = full, Place(full)

    def origin(self, name: str) -> str:
        """Return the source's name for one of ours."""
        return self._places[name][0]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor under our name, cut and turned as ours are."""
        theirs = self._source.shapes()
        found = {}
        for name, (full, place) in self._places.items():
            shape = theirs[full]
            if place.transposed and len(shape) == 2:
                shape = shape[::-1]
            found[name] = (shape[0] // 3, *shape[1:]) if place.third is not None and shape else shape
        return found

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """Return one of our tensors."""
        full, place = self._places[name]
        tensor = self._source.read(full, dtype)
        if place.transposed and tensor.ndim == 2:
            tensor = tensor.T
        if place.third is not None:
            tensor = tensor.tensor_split(3)[place.third]
        if place.interleaved:
            tensor = tensor.unflatten(0, (-1, self._d_head // 2, 2)).transpose(1, 2).flatten(0, 2)
        return tensor.contiguous()
