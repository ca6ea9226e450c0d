"""Every tensor of the pass, by name: what it is, a picture of a slice, downloads."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from lmcore.analysis import summarise
from pages.common import page, widgets
from pages.common.text import _
from pages.figures.blocks import residual as figures
from pages.stages.blocks import tensor_files
from pages.stages.blocks.chosen import Chosen

MAX_COLUMNS = 256
_QUICK_BYTES = 64 * 2**20  # of tensors, summarised while one looks
_TOKEN_AXES = ("position", "query", "key")


def pick(chosen: Chosen) -> tuple[str, int, int]:
    """Let the reader choose a tensor, the index along its leading axis, and where the picture begins."""
    own = f"blocks.{chosen.layer}."
    names = [name.removeprefix(own) for name in _near(chosen)]
    name = widgets.select("tensor", _("Tensor"), names, "attn.pattern")
    name = own + name if own + name in chosen.trace else name
    tensor, axes = chosen.trace[name], chosen.trace.axes(name)
    index = widgets.slider("slice", axes[0], 0, len(tensor) - 1, 0) if tensor.ndim == 3 else 0
    first = 0
    if tensor.shape[-1] > MAX_COLUMNS:
        last = (tensor.shape[-1] - 1) // MAX_COLUMNS
        part = widgets.slider(
            "part", _("Section of {axis}, {n} at a time").format(axis=axes[-1], n=MAX_COLUMNS), 0, last, 0
        )
        first = part * MAX_COLUMNS
    return name, index, first


def show(chosen: Chosen, name: str, index: int, first: int) -> None:
    """Show a slice as a heat map, and the downloads."""
    tensor, axes = chosen.trace[name], chosen.trace.axes(name)
    matrix = tensor[index] if tensor.ndim == 3 else tensor if tensor.ndim == 2 else tensor[None]
    row_axis, column_axis = axes[-2:] if len(axes) > 1 else ("", axes[0])
    columns = _labels(column_axis, matrix.shape[1], chosen.labels)[first : first + MAX_COLUMNS]
    rows = _labels(row_axis, matrix.shape[0], chosen.labels) if row_axis else [name.rsplit(".", 1)[-1]]
    shown = matrix[:, first : first + MAX_COLUMNS].numpy()
    page.figure(
        figures.tensor(
            shown, rows, columns, (row_axis, column_axis), name, chosen.position if row_axis in _TOKEN_AXES else None
        ),
        "tensor-picture",
        _("Heat map of the chosen tensor, or of a slice of it."),
        chooses=lambda cell: {"position": cell.row} if row_axis in _TOKEN_AXES else {},
    )
    part = (slice(0, matrix.shape[0]), slice(first, first + shown.shape[1]))[-len(axes) :]
    lead = (slice(index, index + 1),) if tensor.ndim == 3 else ()
    own = [name for name in chosen.trace if name.startswith(f"blocks.{chosen.layer}.")]
    tensor_files.downloads(chosen.trace, name, (*lead, *part), chosen.layer, own)


def table(chosen: Chosen) -> None:
    """Show one line about each tensor."""
    names = _near(chosen)
    if widgets.toggle("tensors.all", _("All blocks"), chosen.trace.nbytes < _QUICK_BYTES):
        names = list(chosen.trace)
    rows = summarise(chosen.trace, names)
    frame = pd.DataFrame(
        {
            _("Tensor"): [row.name for row in rows],
            _("Axes"): [", ".join(row.axes) for row in rows],
            _("Shape"): [str(list(row.shape)) for row in rows],
            "dtype": [row.dtype for row in rows],
            "min": [row.minimum for row in rows],
            "mean": [row.mean for row in rows],
            "max": [row.maximum for row in rows],
            _("Not finite"): [row.not_finite for row in rows],
        }
    )
    st.subheader(_("Every tensor of this pass"), anchor=False)
    page.numbers_table(frame, "tensors", dict.fromkeys(("min", "mean", "max"), "number"))


def _near(chosen: Chosen) -> list[str]:
    """Return the names of the chosen block's tensors, and of those that belong to no block."""
    own = f"blocks.{chosen.layer}."
    return [name for name in chosen.trace if name.startswith(own) or not name.startswith("blocks.")]


def snippet(chosen: Chosen, name: str) -> str:
    """Return the code for this section."""
    return chosen.snippet(
        f"print(trace[{name!r}], trace.axes({name!r}))\nfor name, tensor in trace.items():\n"
        "    print(name, trace.axes(name), tuple(tensor.shape))\n"
        "# numpy.savez('trace.npz', **{name: tensor.numpy() for name, tensor in trace.items()}) saves all of them",
        imports="",
    )


def _labels(axis: str, size: int, tokens: Sequence[str]) -> list[str]:
    return list(tokens) if axis in _TOKEN_AXES else [str(index) for index in range(size)]
