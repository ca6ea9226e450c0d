"""logit = h · e: length and angle, the dimensions that matter, nearest against largest."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from torch import Tensor

from lmcore.analysis import Readout, by_dimension, read_out
from lmcore.distribution import rank, top
from pages.common import page
from pages.common.text import _
from pages.figures.logits import attribution as figures
from pages.stages.logits.chosen import Chosen

MAX_POINTS = 3000
DIMENSIONS = 10


def hidden_state(chosen: Chosen, trace: dict[str, Tensor]) -> Tensor:
    """Return h at the chosen position."""
    return trace["hidden_state"][chosen.position]


def readout(chosen: Chosen, hidden: Tensor) -> Readout:
    """Return the split of every logit at the position."""
    head = chosen.lm.model.head
    return read_out(hidden, head.weight, head.bias)


def equation(chosen: Chosen, out: Readout) -> str:
    """Return the target's logit as length times length times cosine, in this position's numbers."""
    t = chosen.target
    bias = "" if out.bias is None else f" + ({out.bias[t]:.3f})"
    return (
        rf"\begin{{gathered}}\mathrm{{logit}}_{{{t}}} = h \cdot e_{{{t}}}{' + b' if bias else ''} = "
        rf"\lVert h\rVert\,\lVert e_{{{t}}}\rVert\cos\theta{' + b' if bias else ''}\\ = "
        rf"{out.length:.3f} \times {out.row_lengths[t]:.3f} \times {out.cosines[t]:.4f}{bias} = {out.logits[t]:.3f}"
        r"\end{gathered}"
    )


def show(chosen: Chosen, out: Readout) -> None:
    """Show all rows of the head by angle and length."""
    shown = top(out.products, min(MAX_POINTS, len(out.products))).ids.tolist()
    if chosen.target not in shown:
        shown.append(chosen.target)
    page.figure(
        figures.length_and_angle(
            out.cosines[shown].numpy(),
            out.row_lengths[shown].numpy(),
            [chosen.name(token) for token in shown],
            out.products[shown].numpy(),
            out.length,
            range(min(6, len(shown))),
            shown.index(chosen.target),
            (_("Cosine of the angle to h"), _("Length of the row ‖e‖"), "h · e"),
        ),
        "length-angle",
        _(
            "Scatter plot: each token's row by its cosine with h and by its length. A dotted curve joins points of "
            "equal logit."
        ),
    )
    caption = _(
        "Along the dotted curve, every point has the same logit as the followed token. Rows above and to the "
        "right have larger logits."
    )
    if len(shown) < len(out.products):
        caption += " " + _("The {n} rows with the largest logits are drawn.").format(n=f"{len(shown):,}")
    st.caption(caption)
    config = chosen.config
    if config.logit_scale != 1:
        st.caption(
            _("The model multiplies these numbers by {scale:g} to get its logits.").format(scale=config.logit_scale)
        )
    if config.logit_softcap is not None:
        st.caption(
            _(
                "The model then caps its logits: {cap:g} · tanh(logit / {cap:g}). Shown are the numbers before that."
            ).format(cap=config.logit_softcap)
        )


def check_rankings(out: Readout, chosen: Chosen) -> None:
    """Compare the ranking by cosine with the ranking by logit."""
    st.subheader(_("Is a logit a similarity?"), anchor=False)
    by_logit, by_cosine = int(out.logits.argmax()), int(out.cosines.argmax())
    agree = _("Here the token with the largest logit is also the nearest by cosine.")
    differ = _(
        "Here they differ: the token with the largest logit is not the nearest by cosine, because length counts too."
    )
    st.markdown(
        _("A logit grows with the cosine and with the row's own length, so the most similar token need not win.")
        + " "
        + (agree if by_logit == by_cosine else differ)
    )
    n = min(DIMENSIONS, len(out.logits))
    first, second = top(out.logits, n).ids.tolist(), top(out.cosines, n).ids.tolist()
    same = _("Of the first {n} tokens, {same} have the same rank in both.")
    st.markdown(same.format(n=n, same=sum(a == b for a, b in zip(first, second, strict=True))))
    frame = pd.DataFrame(
        {
            _("Rank"): range(1, n + 1),
            _("By logit"): [chosen.name(i) for i in first],
            "logit": out.logits[first].numpy(),
            _("Its cosine rank"): [rank(out.cosines, i) for i in first],
            _("By cosine"): [chosen.name(i) for i in second],
            "cosine": out.cosines[second].numpy(),
            "‖e‖": out.row_lengths[second].numpy(),
            _("Its logit rank"): [rank(out.logits, i) for i in second],
        }
    )
    page.numbers_table(frame, "rankings", {"logit": "logit", "cosine": "number", "‖e‖": "number"})


def important_dimensions(chosen: Chosen, hidden: Tensor) -> None:
    """Show the ten dimensions that add most to the logit or take most from it."""
    row = chosen.lm.model.head.weight[chosen.target].detach()
    parts = by_dimension(hidden, row)
    order = top(parts.abs(), DIMENSIONS).ids.tolist()
    st.subheader(_("The ten largest dimensions"), anchor=False)
    page.figure(
        figures.dimensions(parts[order].numpy(), order, _("h × e in this dimension")),
        "dimensions",
        _("Bars: the ten dimensions with the largest products h × e by absolute value, with their sign."),
    )
    rest = parts.sum() - parts[order].sum()
    said = _("These {n} of {d} dimensions add {part}, the others {rest}; the total is {total}.")
    st.caption(
        said.format(
            n=len(order), d=len(parts), part=f"{parts[order].sum():.3f}", rest=f"{rest:.3f}", total=f"{parts.sum():.3f}"
        )
    )
    frame = pd.DataFrame(
        {
            _("Dimension"): order,
            "h": hidden[order].double().numpy(),
            "e": row[order].double().numpy(),
            "h × e": parts[order].numpy(),
        }
    )
    page.numbers_table(frame, "dimensions", dict.fromkeys(("h", "e", "h × e"), "number"))


def snippet(chosen: Chosen) -> str:
    """Return the code for this section."""
    return chosen.snippet(
        f'h = trace["hidden_state"][{chosen.position}]\n'
        "out = lmcore.analysis.read_out(h, lm.model.head.weight, lm.model.head.bias)\n"
        f"t = {chosen.target}\n"
        "print(out.length, out.row_lengths[t], out.cosines[t], out.logits[t])\n"
        "parts = lmcore.analysis.by_dimension(h, lm.model.head.weight[t])\n"
        "print(lmcore.distribution.top(parts.abs(), 10).ids)",
    )
