"""Tensor names of other programs' files, as data: where each of our tensors lies in such a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor

from lmcore.checkpoints.tensor_source import InMemory, TensorSource
from lmcore.config import ModelConfig

_KINDS = ("weight", "bias")
Order = Literal["below", "by_head", "in_turn"]


@dataclass(frozen=True)
class TensorLocation:
    """Where a tensor lies.

    Attributes:
        name: the file's name for it, without the prefix of its block and its ending; {e} stands for an expert's number,
            where each expert's matrix is a tensor of its own.
        or_: another name, of other files of the family.
        part: which of the parts of a tensor that holds several: "q", "k", "v", "gate" or "up".
        of: all of its parts.
        order: how their rows lie: one part below the other, all parts of a head together, or one row of each in turn.
        transposed: matrices are stored as [in, out].
        interleaved: the rows of each head are stored in the order in which RoPE's pairs are neighbours,
            (0, 1), (2, 3), ...; here the pairs are (0, d/2), (1, d/2 + 1), ...
        endings: what follows the name of a weight and of a bias.
        bare: ours is a parameter by itself, neither the weight nor the bias of a module.
    """

    name: str
    or_: str | None = None
    part: str | None = None
    of: tuple[str, ...] = ()
    order: Order = "below"
    transposed: bool = False
    interleaved: bool = False
    endings: tuple[str, str] = (".weight", ".bias")
    bare: bool = False

    def cut(self, tensor: Tensor, config: ModelConfig, bias: bool) -> Tensor:
        """Return our tensor from the file's; one whose size is none of this config's comes back whole."""
        if self.transposed and tensor.ndim > 1 and not bias:
            tensor = tensor.transpose(-1, -2)
        if self.part is not None:
            tensor = self._part(tensor, config, axis=-1 if bias or tensor.ndim == 1 else -2)
        if self.interleaved and tensor.shape[0] % config.d_head == 0:
            tensor = tensor.unflatten(0, (-1, config.d_head // 2, 2)).transpose(1, 2).flatten(0, 2)
        return tensor

    def _part(self, tensor: Tensor, config: ModelConfig, axis: int) -> Tensor:
        rows = {
            "q": config.n_heads * config.d_head,
            "k": config.n_kv_heads * config.d_head,
            "v": config.n_kv_heads * config.d_head,
            "gate": config.d_mlp,
            "up": config.d_mlp,
        }
        sizes, number = [rows[part] for part in self.of], self.of.index(self.part or "")
        if sum(sizes) != tensor.shape[axis]:
            return tensor
        if self.order == "below":
            return tensor.split(sizes, axis)[number]
        groups = config.n_heads if self.order == "by_head" else rows[self.of[0]]
        turns = tensor.movedim(axis, 0).unflatten(0, (groups, len(self.of), -1))
        return turns[:, number].flatten(0, 1).movedim(0, axis)


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

    top: Mapping[str, str | TensorLocation]
    block: Mapping[str, str | TensorLocation]
    block_prefix: str
    prefixes: tuple[str, ...] = ()
    ignored: str = field(default=r"(?!)")

    def bare(self, name: str) -> str:
        """Return a name without the prefix that a part of the files has."""
        return next((name.removeprefix(prefix) for prefix in self.prefixes if name.startswith(prefix)), name)

    def locations(self, n_layers: int) -> dict[str, TensorLocation]:
        """Return the location, its full name given, of each of our modules."""
        found = {ours: _as_location(theirs, "") for ours, theirs in self.top.items()}
        for i in range(n_layers):
            prefix = self.block_prefix.format(i=i)
            found |= {f"blocks.{i}.{ours}": _as_location(theirs, prefix) for ours, theirs in self.block.items()}
        return found

    def rename(self, tensors: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """Return tensors in memory under our names; see `Renamed`."""
        renamed = Renamed(InMemory(tensors, "the weights"), self, config)
        return {name: renamed.read(name, tensors[renamed.origin(name)].dtype) for name in renamed.shapes()}


def _as_location(theirs: str | TensorLocation, prefix: str) -> TensorLocation:
    location = TensorLocation(theirs) if isinstance(theirs, str) else theirs
    return replace(location, name=prefix + location.name, or_=None if location.or_ is None else prefix + location.or_)


class Renamed(TensorSource):
    """A source under our names; tensors the family does not have keep theirs, so that a reader can refuse them."""

    def __init__(self, source: TensorSource, names: Names, config: ModelConfig) -> None:
        super().__init__(source.filename)
        self._source = source
        shapes = source.shapes()
        full_names: dict[str, str] = {}
        for name in shapes:
            if (twin := full_names.setdefault(names.bare(name), name)) != name:
                raise ValueError(f"{source.filename}: tensors {twin!r} and {name!r} stand for the same weights.")
        self._config = config
        # The tensors, an expert's each or one for all; whether each is an expert's.
        self._locations: dict[str, tuple[tuple[str, ...], TensorLocation, bool]] = {}
        used: set[str] = set()
        n_layers, n_experts = (min(n or 0, len(shapes) + 1) for n in (config.n_layers, config.n_experts))  # any number
        for ours, location in names.locations(n_layers).items():
            for kind, ending in list(zip(_KINDS, location.endings, strict=True))[: 1 if location.bare else 2]:
                for theirs in filter(None, (location.name, location.or_)):
                    experts = range(n_experts) if "{e}" in theirs else range(1)
                    parts = [full_names.get(theirs.format(e=expert) + ending) for expert in experts]
                    full = tuple(part for part in parts if part is not None)
                    if full and len(full) == len(parts):
                        used.update(full)
                        self._locations[ours if location.bare else f"{ours}.{kind}"] = full, location, "{e}" in theirs
        if config.tie_embeddings and (head := self._locations.pop("head.weight", None)):
            self._locations.setdefault("token_embedding.weight", head)  # one of the two is enough
        for full_name in shapes:
            if full_name not in used and not re.fullmatch(names.ignored, names.bare(full_name)):
                self._locations[full_name] = (full_name,), TensorLocation(full_name), False

    def origin(self, name: str) -> str:
        """Return the source's name for one of ours; for experts, that of the first."""
        return self._locations[name][0][0]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor under our name, cut and turned as ours are."""
        theirs = self._source.shapes()
        found = {}
        for name, (full, location, stacked) in self._locations.items():
            shape = theirs[full[0]]
            if location.part is not None or location.transposed:
                shape = tuple(location.cut(torch.empty(shape, device="meta"), self._config, _is_bias(name)).shape)
            found[name] = (len(full), *shape) if stacked else shape
        return found

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """Return one of our tensors."""
        full, location, stacked = self._locations[name]
        tensors = [location.cut(self._source.read(each, dtype), self._config, _is_bias(name)) for each in full]
        if not stacked:
            return tensors[0].contiguous()
        if len({tensor.shape for tensor in tensors}) > 1:
            raise ValueError(f"{self.filename}: the experts' tensors {full[0]!r} ... have different shapes.")
        return torch.stack(tensors)


def _is_bias(name: str) -> bool:
    return name.endswith(".bias")
