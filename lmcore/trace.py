"""Trace: every intermediate of a forward pass, by name, with named axes; and edits of them while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from torch import Tensor

Edit = Callable[[Tensor], Tensor]
"""What takes a tensor's place: given the tensor, it returns another one of the same shape and leaves it as it was."""


class Trace(Mapping[str, Tensor]):
    """An ordered record `name -> tensor` that a forward pass fills when asked.

    The names and axes are those listed in `lmcore/model.py`. A pass over one sequence records
    tensors without a batch axis; a pass over ids [B, S] puts a leading "batch" axis on each.

    >>> import torch
    >>> trace = Trace()
    >>> x = trace.under("blocks.0").record("resid_pre", torch.zeros(3, 8), ("position", "d_model"))
    >>> list(trace), trace.axes("blocks.0.resid_pre")
    (['blocks.0.resid_pre'], ('position', 'd_model'))
    """

    def __init__(self) -> None:
        self._tensors: dict[str, Tensor] = {}
        self._axes: dict[str, tuple[str, ...]] = {}

    def record(self, name: str, tensor: Tensor, axes: tuple[str, ...]) -> None:
        """Keep `tensor` under `name`.

        Raises:
            ValueError: when the name is taken or the axes do not fit the tensor's shape.
        """
        if name in self._tensors:
            raise ValueError(f"the trace already holds {name!r}; use a fresh Trace for each forward pass.")
        if tensor.ndim == len(axes) + 1:
            axes = ("batch", *axes)
        if tensor.ndim != len(axes):
            raise ValueError(f"{name!r} has shape {tuple(tensor.shape)}, which does not fit the axes {axes}.")
        self._tensors[name] = tensor.detach()
        self._axes[name] = axes

    def float(self) -> Trace:
        """Return a trace whose numbers are float32; what is float32 already is shared, not copied."""
        wide = Trace()
        wide._tensors = {name: tensor.float() for name, tensor in self._tensors.items()}
        wide._axes = self._axes
        return wide

    def under(self, prefix: str) -> Recorder:
        """Return a recorder that puts `prefix` and a dot before each name."""
        return Recorder(self, prefix)

    def axes(self, name: str) -> tuple[str, ...]:
        """Return the names of a tensor's axes, e.g. ("head", "query", "key")."""
        self[name]
        return self._axes[name]

    def __getitem__(self, name: str) -> Tensor:
        try:
            return self._tensors[name]
        except KeyError:
            near = [known for known in self._tensors if known.endswith(name.rsplit(".", 1)[-1])][:3]
            hint = f" Names that end alike: {', '.join(near)}." if near else ""
            raise KeyError(f"the trace holds no {name!r}.{hint}") from None

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

        Raises:
            ValueError: when an edit changes the shape.
        """
        if self._silent:
            return tensor
        name = self._prefix + name
        if name in self._edits:
            edited = self._edits.pop(name)(tensor)
            if edited.shape != tensor.shape:
                raise ValueError(
                    f"the edit of {name!r} returned shape {tuple(edited.shape)} for {tuple(tensor.shape)}; "
                    "it must keep the shape."
                )
            tensor = edited
        if self._trace is not None:
            self._trace.record(name, tensor, axes)
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
