"""The residual stream: lengths, what was added, how far it turned, and what the norm layers divide by."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import ModelConfig
from lmcore.analysis import ResidualStream, cosines_between_states, norm_scales
from pages.common import page, widgets
from pages.common.text import _
from pages.figures.blocks import residual as figures
from pages.stages.blocks.chosen import Chosen, block_of

_FAR_LONGER = 3  # times all others: then the first token would leave them without colour


def equations(chosen: Chosen) -> tuple[str, ...]:
    """Return the two residual steps of a block, and its norm, with this model's sizes."""
    size = rf"[{len(chosen.labels)},\,{chosen.config.d_model}]"
    mean = rf"\tfrac{{1}}{{{chosen.config.d_model}}}\sum_i x_i^2+\epsilon"
    scale = rf"\sqrt{{{mean}}}" if chosen.config.norm == "rmsnorm" else r"\sqrt{\mathrm{var}(x)+\epsilon}"
    centred = "x" if chosen.config.norm == "rmsnorm" else r"(x-\bar{x})"
    mlp_reads = "pre" if chosen.config.parallel_residual else "mid"
    return (
        rf"\underset{{{size}}}{{\mathrm{{resid\_mid}}}} = \mathrm{{resid\_pre}} + "
        + _added("attn", "pre", chosen.config),
        rf"\underset{{{size}}}{{\mathrm{{resid\_post}}}} = \mathrm{{resid\_mid}} + "
        + _added("mlp", mlp_reads, chosen.config),
        rf"\mathrm{{norm}}(x)=\frac{{{centred}}}{{\mathrm{{scale}}}}\,g,\qquad \mathrm{{scale}}={scale}",
    )


def quantity_picker() -> str:
    """Let the reader choose what to see of the stream."""
    names = {
        "length": _("Length"),
        "added": _("Added"),
        "cosine": _("Cosine"),
        "between": _("Cosine of every two states"),
        "scale": _("Norm scale"),
    }
    return widgets.select("quantity", _("Quantity"), list(names), "length", format_func=names.__getitem__)


def show(chosen: Chosen, stream: ResidualStream, quantity: str) -> None:
    """Show one quantity by place in the model and position, or how alike the states of one position are."""
    if quantity == "between":
        _between(chosen, stream)
        return
    scale_names, scales = norm_scales(chosen.trace)
    names, values, said = {
        "length": (stream.states, stream.norms, _("Length of the vector")),
        "added": (stream.additions, stream.added_norms, _("Length of what was added")),
        "cosine": (stream.states[1:], stream.cosines, _("Cosine with the previous state")),
        "scale": (scale_names, scales, _("What the norm divides by")),
    }[quantity]
    most, others = values[:, 0].max().item(), values[:, 1:].max().item() if len(chosen.labels) > 1 else 0.0
    off_scale = quantity != "cosine" and most > _FAR_LONGER * others > 0
    page.figure(
        figures.stream(
            values.numpy(),
            names,
            chosen.labels,
            chosen.position,
            (_("Position"), said),
            signed=quantity == "cosine",
            limit=others if off_scale else None,
        ),
        "stream",
        _("Heat map: a row for each place in the model and a column for each position."),
        chooses=lambda cell: {"position": cell.column, **block_of(names[cell.row])},
    )
    if off_scale:
        told = _(
            "The first token is off the scale: its largest value, {most}, is {times} times that of all others. "
            "Many models have such a vector. A query that needs nothing else attends to it: an attention sink."
        )
        st.caption(told.format(most=f"{most:,.1f}", times=f"{most / others:,.0f}"))


def _between(chosen: Chosen, stream: ResidualStream) -> None:
    cosines = cosines_between_states(chosen.trace, chosen.position)
    page.figure(
        figures.states(cosines.numpy(), stream.states, _("Cosine")),
        "states",
        _("Heat map: the cosine of every state of the residual stream with every other, at the chosen position."),
        chooses=lambda cell: block_of(stream.states[cell.row]),
    )
    st.caption(
        _("A dark square: through these layers the vector keeps its direction. A pale gap: here the direction changes.")
    )


def at_position(chosen: Chosen, stream: ResidualStream) -> None:
    """Show what each component added at the chosen position, and the table."""
    at = chosen.position
    st.subheader(_("What each component added here"), anchor=False)
    page.figure(
        figures.additions(stream.added_norms[:, at].numpy(), stream.additions, _("Length of what was added")),
        "additions",
        _("Bars: the length of the vector that each attention layer and each MLP added at the chosen position."),
    )
    st.caption(_("Blue is what attention added, orange what an MLP added."))
    frame = pd.DataFrame(
        {
            _("State"): stream.states,
            "‖x‖": stream.norms[:, at].numpy(),
            _("Added by"): ["", *stream.additions],
            "‖added‖": [None, *stream.added_norms[:, at].tolist()],
            "cosine": [None, *stream.cosines[:, at].tolist()],
            "scale": [_divisor(chosen, name, at) for name in _readers(chosen.config)],
        }
    )
    st.caption(_("scale is the divisor of the norm layer that reads this state. The final norm reads the last state."))
    page.numbers_table(frame, "residual", dict.fromkeys(("‖x‖", "‖added‖", "cosine", "scale"), "number"))


def _added(part: str, read: str, config: ModelConfig) -> str:
    """Return what a part adds to the stream, in LaTeX: the norms before and after it, and its scale."""
    state = rf"\mathrm{{resid\_{read}}}"
    written = rf"\mathrm{{{part}}}(" + (rf"\mathrm{{norm}}({state})" if config.pre_norm else state) + ")"
    if config.sandwich_norm:
        written = rf"\mathrm{{norm}}({written})"
    return written if config.residual_scale == 1 else rf"{config.residual_scale:g}\cdot {written}"


def _readers(config: ModelConfig) -> list[str]:
    """Return the norm that reads each state, in the states' order, "" for none."""
    blocks = range(config.n_layers)
    mlp_norm = "" if config.parallel_residual else "mlp_norm"  # it reads what enters the block
    return [f"blocks.{i}.{norm}" for i in blocks for norm in ("attn_norm", mlp_norm)] + ["final_norm"]


def _divisor(chosen: Chosen, norm: str, position: int) -> float | None:
    name = f"{norm}.scale"
    return chosen.trace[name][position].item() if name in chosen.trace else None


def snippet(chosen: Chosen) -> str:
    """Return the code for this section."""
    return chosen.snippet(
        "stream = lmcore.analysis.residual_stream(trace)\n"
        f"for name, length in zip(stream.states, stream.norms[:, {chosen.position}]):\n"
        "    print(name, length.item())"
    )
