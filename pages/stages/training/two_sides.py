"""The gradient of the embedding in two parts: through the lookup, and through the head."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
import torch

from lmcore.analysis.training.embedding_gradient import (
    SidesSummary,
    embedding_gradient,
    split_embedding_gradient,
    summarise_sides,
)
from lmcore.worker import Worker, each_of
from pages.common import page, session
from pages.common.shared import shared
from pages.common.text import _, visible
from pages.figures.theme import fmt_count
from pages.figures.training import gradients as figures
from pages.stages.training.common import last_only_switch, require_memory, sentence
from pages.stages.training.reading import results_of

_SHOWN = 12  # rows drawn as bars
_LISTED = 2000  # rows of the table

CODE = """
import torch
import lmcore
from lmcore.analysis.training.embedding_gradient import embedding_gradient, split_embedding_gradient

lm = lmcore.load({name!r})
ids = torch.tensor(lm.tokenizer.encode({text!r}).ids)
parts = split_embedding_gradient(lm.model, ids, last_only={last_only})
first, second = parts.norms                          # one norm a row, [vocab_size]
print((first > 0).sum().item(), (second > 0).sum().item())
print(parts.input_side.norm().item(), parts.output_side.norm().item(), parts.cosine)
if lm.config.tie_embeddings:
    print((parts.total - embedding_gradient(lm.model, ids, last_only={last_only})).abs().max().item())
"""


@dataclass(frozen=True)
class Sides:
    """What the view needs: the parts in short, the norm of each row's sum, and how far the sum is from autograd's."""

    parts: SidesSummary
    sums: np.ndarray
    difference: float | None


def show() -> None:
    """Draw the view."""
    lm = session.language_model()
    require_memory(lm)
    controls, picture = page.workbench()
    with controls:
        text, token_ids = sentence()
        last_only = last_only_switch()
    key = (lm.name, tuple(token_ids), last_only)
    with picture:
        found = results_of(_sides(*key), "training.sides", lambda: _sides.clear(*key))
    if found is None:
        return
    (sides,) = found
    parts: SidesSummary = sides.parts
    first, second = parts.input_norms, parts.output_norms

    def label(row: int) -> str:
        return f"{visible(lm.tokenizer.token_bytes(row))} · {row}"

    names = (_("input side (lookup)"), _("output side (head)"))
    reached = [f"{int((norms > 0).sum()):,} / {len(norms):,}" for norms in (first, second)]
    with controls:
        for title, value, note in zip(
            (
                _("Rows with an input-side gradient"),
                _("Rows with an output-side gradient"),
                _("Cosine of the two parts"),
            ),
            (*reached, f"{parts.cosine:+.4f}" if abs(parts.cosine) >= 5e-5 else f"{parts.cosine:+.1e}"),
            (None, None, _("Computed from the two matrices as long vectors. This is measured: its sign is not fixed.")),
            strict=True,
        ):
            st.metric(title, value, help=note)
    order = np.argsort(-sides.sums, kind="stable")
    chosen = list(dict.fromkeys([*dict.fromkeys(token_ids), *order[:_SHOWN].tolist()]))[:_SHOWN]
    with picture:
        page.figure(
            figures.two_sides(
                [label(row) for row in chosen],
                first[chosen],
                second[chosen],
                names,
                _("norm of the row's gradient"),
            ),
            "training-two-sides",
            _(
                "For some rows of the embedding: the length of the input-side and of the output-side part of the "
                "gradient."
            ),
        )
        st.caption(
            _("At the top are the tokens of the sentence in order; below them, the rows with the longest gradients.")
        )
    page.equation(
        r"\begin{aligned} \frac{\partial L}{\partial E} &= "
        r"\underbrace{\sum_{i:\,t_i = w} \frac{\partial L}{\partial X_i}}_{\text{row } w,\ \text{input}} \\ &+ "
        r"\underbrace{\left(\mathrm{softmax} - \mathrm{onehot}\right)^{\!\top} H}_{\text{every row, output}} \\ "
        rf"E &\in \mathbb{{R}}^{{{lm.config.vocab_size} \times {lm.config.d_model}}} \end{{aligned}}"
    )
    st.markdown(
        _("Untied: each part belongs to a separate matrix, and they are never added.")
        if sides.difference is None
        else _(
            "The sum of the two parts and autograd's gradient of the tied matrix differ by at most {error:.1e}."
        ).format(error=sides.difference)
    )
    st.subheader(_("All {n:,} rows").format(n=len(first)), anchor=False)
    page.figure(
        figures.all_rows(
            first,
            second,
            label,
            names,
            x_title=_("rows, sorted by their output-side gradient"),
            y_title=_("norm of the row's gradient"),
        ),
        "training-all-rows",
        _(
            "Norms of both parts for every row: the output side reaches all rows, the input side only the tokens "
            "of the sentence."
        ),
    )
    listed = order[:_LISTED]
    if len(listed) < len(order):
        st.caption(
            _("The {n} of {all} rows with the longest sums. One point stands for several rows.").format(
                n=fmt_count(len(listed)), all=fmt_count(len(order))
            )
        )
    page.numbers_table(
        pd.DataFrame(
            {
                _("token"): [label(row) for row in listed.tolist()],
                names[0]: first[listed],
                names[1]: second[listed],
                _("cosine"): parts.cosines[listed],
                _("norm of the sum"): sides.sums[listed],
            }
        ),
        "training-two-sides",
        {names[0]: "%.3e", names[1]: "%.3e", _("cosine"): "%.4f", _("norm of the sum"): "%.3e"},
    )
    page.snippet(CODE.format(name=lm.name, text=text, last_only=last_only))


@shared(entries=16)
def _sides(name: str, token_ids: tuple[int, ...], last_only: bool) -> Worker[Sides]:
    """Return the reading of both parts.

    Kept for all sessions together, at most four numbers a row for each sentence; here, for no other page asks.
    """
    lm = session.language_model(name)

    def results() -> Iterator[Sides]:
        ids = torch.tensor(token_ids)
        parts = split_embedding_gradient(lm.model, ids, last_only)
        total = parts.total
        # Tied, autograd sees one matrix; untied there is nothing to add up.
        tied = lm.config.tie_embeddings
        difference = (total - embedding_gradient(lm.model, ids, last_only)).abs().max().item() if tied else None
        yield Sides(summarise_sides(parts), total.norm(dim=-1).float().numpy(), difference)

    return Worker(each_of(results, session.forward_lock()), total=1)
