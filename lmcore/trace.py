"""Trace: every intermediate of a forward pass, by name, with named axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import Tensor


class Trace(Mapping[str, Tensor]):
    """An ordered record `name -> tensor` that a forward pass fills when asked.

    The names and axes are those listed in `lmcore/model.py`. A pass over one sequence records
    tensors without a batch axis; a pass over ids [B, S] puts a leading "batch" axis on each.

    >>> import torch
    >>> trace = Trace()
    >>> trace.under("blocks.0").record("resid_pre", torch.zeros(3, 8), ("position", "d_model"))
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
    """A view of a trace, or of none, that names what a part of the model records."""

    __slots__ = ("_prefix", "_trace")

    def __init__(self, trace: Trace | None, prefix: str = "") -> None:
        self._trace = trace
        self._prefix = f"{prefix}." if prefix else ""

    def record(self, name: str, tensor: Tensor, axes: tuple[str, ...]) -> None:
        """Record into the trace when there is one; otherwise do nothing."""
        if self._trace is not None:
            self._trace.record(self._prefix + name, tensor, axes)

    def under(self, prefix: str) -> Recorder:
        """Return a recorder for a part of this part."""
        return Recorder(self._trace, self._prefix + prefix) if self._trace is not None else self


SILENT = Recorder(None)
