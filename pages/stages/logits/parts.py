"""Why this token: its logit as a sum over embedding, heads, MLPs and biases; two tokens compared."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from lmcore import Trace
from lmcore.analysis import Attribution, attribute
from pages.common import page, widgets
from pages.common.text import _
from pages.figures.logits import attribution as figures
from pages.figures.theme import fmt_logit
from pages.stages.logits.chosen import Chosen

MAX_BARS = 30


def of_picker() -> str:
    """Let the reader choose what is decomposed: one logit, or the difference of two."""
    names = {"logit": _("Logit"), "difference": _("Difference")}
    return widgets.choice("parts", _("Decompose"), list(names), "logit", format_func=names.__getitem__)


def attribution(chosen: Chosen, trace: Trace) -> Attribution:
    """Return the decomposition of the followed token's logit and of the other's."""
    return attribute(chosen.lm.model, trace, chosen.position, [chosen.target, chosen.rival])


def equation(found: Attribution, split: str) -> str:
    """Return the sum with its remainder."""
    logit, parts, rest = (
        _split(values, split) for values in (found.logits, found.contributions.sum(0), found.remainder)
    )
    name = r"\mathrm{logit}" if split == "logit" else r"\mathrm{logit}_a - \mathrm{logit}_b"
    return (
        rf"{name} = \sum_{{c=1}}^{{{len(found.components)}}} \mathrm{{contribution}}_c + \mathrm{{remainder}}:\qquad "
        rf"{float(logit):.6f} = {float(parts):.6f} + ({_scientific(float(rest))})"
    )


def show(chosen: Chosen, found: Attribution, split: str) -> None:
    """Show the contributions as bars and as a grid of blocks by heads."""
    title = _("Added to the logit")
    if split == "difference":
        title = _("Added to logit a − logit b")
        st.text(
            _("a: {token}, b: {rival}. Bars to the right favour a, bars to the left favour b.").format(
                token=chosen.name(chosen.target), rival=chosen.name(chosen.rival)
            )
        )
    values = _split(found.contributions, split).numpy()
    page.figure(
        figures.contributions(values, found.components, title, MAX_BARS, _("the-others")),
        "contributions",
        _("Bars: what the embedding, each head and each MLP added to the logit or subtracted from it."),
    )
    grid, blocks, columns = _grid(found, values, chosen)
    page.figure(
        figures.contribution_grid(grid, blocks, columns, title),
        "contribution-grid",
        _(
            "Heat map: a row for each block, a column for each head and one for the MLP. The colour is what it "
            "added to the logit."
        ),
        chooses=lambda cell: {
            "layer": cell.row,
            **({"head": cell.column} if cell.column < chosen.config.n_heads else {}),
        },
    )
    st.caption(
        _(
            "Every component's output goes through the final norm, with its divisor held fixed, and then "
            "through the head. The remainder is float32 rounding inside the model. A contribution is what a "
            "component wrote itself, not what would change without it."
        )
    )


def table(chosen: Chosen, found: Attribution) -> None:
    """Show all contributions to both tokens, their sums and remainders."""
    mine, other = (found.contributions[:, index].tolist() for index in (0, 1))
    rows = {
        _("sum"): found.contributions.sum(0),
        _("logit"): found.logits,
        _("remainder"): found.remainder,
    }
    first, second = (
        f"{chosen.name(chosen.target)} (a)",
        f"{chosen.name(chosen.rival)} (b)",
    )
    frame = pd.DataFrame(
        {
            _("Component"): [*found.components, *rows],
            first: [*mine, *(row[0].item() for row in rows.values())],
            second: [*other, *(row[1].item() for row in rows.values())],
        }
    )
    frame["a − b"] = frame[first] - frame[second]
    page.numbers_table(frame, "contributions", dict.fromkeys((first, second, "a − b"), "%.6f"))
    st.caption(
        _("Logit a − logit b = {difference}, so a is {factor} times as probable as b.").format(
            difference=fmt_logit(float(found.logits[0] - found.logits[1])),
            factor=f"{float((found.logits[0] - found.logits[1]).exp()):.4g}",
        )
    )


def _split(values, split: str):  # noqa: ANN001, ANN202 - a tensor whose last axis is the two tokens
    return values[..., 0] if split == "logit" else values[..., 0] - values[..., 1]


def _grid(found: Attribution, values: np.ndarray, chosen: Chosen) -> tuple[np.ndarray, list[str], list[str]]:
    place = {name: index for index, name in enumerate(found.components)}
    config = chosen.config
    parts = [*(f"attn.head.{head}" for head in range(config.n_heads)), "mlp"]
    blocks = [f"blocks.{i}" for i in range(config.n_layers)]
    grid = np.array([[values[place[f"{block}.{part}"]] for part in parts] for block in blocks])
    return grid, blocks, parts


def _scientific(value: float) -> str:
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.1e}".split("e")
    return rf"{mantissa}\times 10^{{{int(exponent)}}}"


def snippet(chosen: Chosen) -> str:
    """Return the code for this section."""
    return chosen.snippet(
        f"found = lmcore.analysis.attribute(lm.model, trace, {chosen.position}, [{chosen.target}, {chosen.rival}])\n"
        "for name, parts in zip(found.components, found.contributions.tolist()):\n"
        "    print(name, parts)\n"
        "print(found.logits, found.remainder)",
    )
