"""Trace: every intermediate of a forward pass, by name, with named axes; and edits of them while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from lmcore.derived import derivation

Edit = Callable[[Tensor], Tensor]
"""What takes a tensor's place: given the tensor, it returns another one of the same shape and leaves it as it was."""


class Trace(Mapping[str, Tensor]):
    """An ordered record `name -> tensor` that a forward pass fills when asked.

    The names and axes are those listed in `lmcore/model.py`. A pass over one sequence records
    tensors without a batch axis; a pass over ids [B, S] puts a leading "batch" axis on each.

    What follows from others in one step and is as large as the square of the text is not kept (`lmcore/derived.py`):
    looking it up takes that step once more, with the same numbers.

    >>> import torch
    >>> trace = Trace()
    >>> x = trace.under("blocks.0").record("resid_pre", torch.zeros(3, 8), ("position", "d_model"))
    >>> list(trace), trace.axes("blocks.0.resid_pre")
    (['blocks.0.resid_pre'], ('position', 'd_model'))
    """

    def __init__(self) -> None:
        self._tensors: dict[str, Tensor | None] = {}  # None for what follows from others
        self._axes: dict[str, tuple[str, ...]] = {}
        self._wide = False

    def record(self, name: str, tensor: Tensor, axes: tuple[str, ...], edited: bool = False) -> None:
        """Keep `tensor` under `name`, or only the name if the tensor follows from others and was not edited.

        Raises:
            ValueError: when the name is taken or the axes do not fit the tensor's shape.
        """
        if name in self._tensors:
            raise ValueError(f"the trace already holds {name!r}; use a fresh Trace for each forward pass.")
        if tensor.ndim == len(axes) + 1:
            axes = ("batch", *axes)
        if tensor.ndim != len(axes):
            raise ValueError(f"{name!r} has shape {tuple(tensor.shape)}, which does not fit the axes {axes}.")
        follows = not edited and derivation(name, self._tensors) is not None
        self._tensors[name] = None if follows else tensor.detach()
        self._axes[name] = axes

    def float(self) -> Trace:
        """Return a trace of the same tensors that gives them as float32, and copies only those that are not."""
        wide = Trace()
        wide._tensors, wide._axes, wide._wide = self._tensors, self._axes, True
        return wide

    @property
    def nbytes(self) -> int:
        """Bytes it keeps in memory; what two names share counts once."""
        storages = [tensor.untyped_storage() for tensor in self._tensors.values() if tensor is not None]
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())

    def under(self, prefix: str) -> Recorder:
        """Return a recorder that puts `prefix` and a dot before each name."""
        return Recorder(self, prefix)

    def axes(self, name: str) -> tuple[str, ...]:
        """Return the names of a tensor's axes, e.g. ("head", "query", "key")."""
        self._require(name)
        return self._axes[name]

    def __getitem__(self, name: str) -> Tensor:
        tensor = self.recorded(name)
        return tensor.float() if self._wide else tensor

    def recorded(self, name: str) -> Tensor:
        """Return a tensor in the type that the model computed it in, which `float` does not change."""
        self._require(name)
        return self._as_recorded(name)

    def _as_recorded(self, name: str) -> Tensor:
        kept = self._tensors[name]
        if kept is None and (found := derivation(name, self._tensors)) is not None:
            step, sources = found
            kept = step(*map(self._as_recorded, sources))
        assert kept is not None
        return kept

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def _require(self, name: str) -> None:
        if name not in self._tensors:
            near = [known for known in self._tensors if known.endswith(name.rsplit(".", 1)[-1])][:3]
            hint = f" Names that end alike: {', '.join(near)}." if near else ""
            raise KeyError(f"the trace holds no {name!r}.{hint}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"Trace({len(self)} tensors)"


class Recorder:
    """What a part of the model hands its intermediates to: it edits them, records them, or just gives them back.

    >>> import torch
    >>> recorder = Recorder(None, edits={"attn.z": torch.zeros_like})
    >>> recorder.under("attn").record("z", torch.ones(2), ("d_head",))
    tensor([0., 0.])
    """

    __slots__ = ("_edits", "_prefix", "_silent", "_trace")

    def __init__(self, trace: Trace | None, prefix: str = "", edits: Mapping[str, Edit] | None = None) -> None:
        self._trace = trace
        self._prefix = f"{prefix}." if prefix else ""
        self._edits = dict(edits or {})  # those still to come: each name is recorded once in a pass
        self._silent = trace is None and not self._edits

    def record(self, name: str, tensor: Tensor, axes: tuple[str, ...]) -> Tensor:
        """Return the tensor to go on with, edited when there is an edit of it; keep it when there is a trace.

        Args:
            name: within this part.
            tensor: what the pass has computed.
            axes: their names.

        Raises:
            ValueError: when an edit changes the shape, or bool into numbers or back.
        """
        if self._silent:
            return tensor
        name = self._prefix + name
        edit = self._edits.pop(name, None)
        if edit is not None:
            edited = edit(tensor)
            if edited.shape != tensor.shape:
                raise ValueError(
                    f"the edit of {name!r} returned shape {tuple(edited.shape)} for {tuple(tensor.shape)}; "
                    "it must keep the shape."
                )
            if (edited.dtype == torch.bool) != (tensor.dtype == torch.bool):
                raise ValueError(f"the edit of {name!r} returned {edited.dtype} for {tensor.dtype}; return the latter.")
            tensor = edited
        if self._trace is not None:
            self._trace.record(name, tensor, axes, edited=edit is not None)
        return tensor

    def under(self, prefix: str) -> Recorder:
        """Return a recorder for a part of this part."""
        if self._silent:
            return self
        part = Recorder(self._trace, self._prefix + prefix)
        part._edits, part._silent = self._edits, False  # one set of edits still to come for all parts
        return part

    def check_edits_met(self) -> None:
        """Check at the end of a pass that every edit had its tensor.

        Raises:
            ValueError: for edits of names that the pass did not record.
        """
        if self._edits:
            names = ", ".join(map(repr, self._edits))
            raise ValueError(f"edits holds {names}, which this model does not record; its docstring lists the names.")


SILENT = Recorder(None)
