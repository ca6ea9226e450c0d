"""Save tensors of a pass as files. A file that would take more than about a second to make is offered in parts."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from lmcore import Trace
from pages.common.text import _

MAX_CSV_NUMBERS = 1_000_000  # written in about a second
MAX_NPZ_BYTES = 256 * 2**20


def downloads(trace: Trace, name: str, shown: Sequence[slice], layer: int, own: Sequence[str]) -> None:
    """Show the buttons that save a tensor, or the part of it that is shown, and many tensors at once.

    Args:
        trace: the pass.
        name: the tensor.
        shown: the part that is shown, one slice per axis.
        layer: the chosen block.
        own: names of the chosen block's tensors.
    """
    tensor, axes = trace[name], trace.axes(name)
    file_name = name.replace(".", "_")
    starts = [part.start for part in shown]
    csv, npz, many = st.columns(3)
    if tensor.numel() <= MAX_CSV_NUMBERS:
        _button(csv, _("This tensor as CSV"), f"{file_name}.csv", lambda: to_csv(tensor.numpy(), axes))
    else:
        part = tensor[tuple(shown)].numpy()
        _button(csv, _("The part shown as CSV"), f"{file_name}_part.csv", lambda: to_csv(part, axes, starts))
    if tensor.nbytes <= MAX_NPZ_BYTES:
        _button(npz, _("This tensor as NPZ"), f"{file_name}.npz", lambda: to_npz(trace, [name]))
    else:
        _button(npz, _("The part shown as NPZ"), f"{file_name}_part.npz", lambda: to_npz(trace, [name], tuple(shown)))
    if trace.nbytes <= MAX_NPZ_BYTES / 2:  # what is computed again when asked for is about as much as what is kept
        _button(many, _("All tensors as NPZ"), "trace.npz", lambda: to_npz(trace, list(trace)))
    else:
        _button(many, _("Block {n} as NPZ").format(n=layer), f"block_{layer}.npz", lambda: to_npz(trace, own))
        st.caption(
            _("All tensors of this pass take more than {size:,.0f} MB. The code below gives you all of them.").format(
                size=trace.nbytes / 1e6
            )
        )


def _button(place, label: str, file_name: str, data) -> None:  # noqa: ANN001
    place.download_button(label, data, file_name, key=f"tensors.{file_name}", on_click="ignore", width="stretch")


def to_csv(tensor: np.ndarray, axes: Sequence[str], starts: Sequence[int] | None = None) -> bytes:
    """Return a tensor as CSV: a column for each index but the last, then one for each entry of the last axis.

    Args:
        tensor: the numbers.
        axes: the names of its axes.
        starts: the index each axis begins with, when it is a part of a larger tensor.
    """
    *leading, last = starts or [0] * tensor.ndim
    rows = tensor.reshape(-1, tensor.shape[-1])
    frame = pd.DataFrame(rows, columns=[f"{axes[-1]} {last + index}" for index in range(rows.shape[1])])
    places = np.indices(tensor.shape[:-1]).reshape(tensor.ndim - 1, len(rows))
    for column, (axis, start, place) in enumerate(zip(axes[:-1], leading, places, strict=True)):
        frame.insert(column, axis, start + place)
    return frame.to_csv(index=False).encode("utf-8")


def to_npz(trace: Trace, names: Iterable[str], part: tuple[slice, ...] = ()) -> bytes:
    """Return tensors, or a part of each, as a NumPy archive, each under its name in the trace.

    They are not compressed: that would save a tenth of the size and take twenty times as long.
    """
    file = io.BytesIO()
    arrays: dict[str, Any] = {name: trace[name][part].numpy() for name in names}
    np.savez(file, **arrays)
    return file.getvalue()
