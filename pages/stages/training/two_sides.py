"""The gradient of the embedding in two parts: through the lookup, and through the head."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch

from lmcore.analysis.embedding_gradient import embedding_gradient, split_embedding_gradient
from pages.common import page, session, widgets
from pages.common.text import _, visible
from pages.figures.training import gradients as figures
from pages.stages.training.common import sentence

_SHOWN = 12

CODE = """
import torch
import lmcore
from lmcore.analysis.embedding_gradient import embedding_gradient, split_embedding_gradient

lm = lmcore.load({name!r})
ids = torch.tensor(lm.tokenizer.encode({text!r}).ids)
parts = split_embedding_gradient(lm.model, ids, last_only={last_only})
first, second = parts.norms                          # one norm a row, [vocab_size]
print((first > 0).sum().item(), (second > 0).sum().item())
print(parts.input_side.norm().item(), parts.output_side.norm().item(), parts.cosine)
if lm.config.tie_embeddings:
    print((parts.total - embedding_gradient(lm.model, ids, last_only={last_only})).abs().max().item())
"""


def show() -> None:
    """Draw the view."""
    lm = session.language_model()
    tied = lm.config.tie_embeddings
    text, token_ids = sentence()
    last_only = widgets.toggle(
        "training.last_only", _("Score the last token only"), True, help=_("Off: every token is predicted and scored.")
    )
    ids = torch.tensor(token_ids)
    with session.forward_lock():
        parts = split_embedding_gradient(lm.model, ids, last_only)
        # Tied, autograd sees one matrix; untied there is nothing to add up.
        whole = embedding_gradient(lm.model, ids, last_only) if tied else None
    first, second = parts.norms
    labels = [f"{visible(lm.tokenizer.token_bytes(token))} · {token}" for token in range(lm.config.vocab_size)]
    names = (_("input side (lookup)"), _("output side (head)"))
    st.latex(
        r"\frac{\partial L}{\partial E} = "
        r"\underbrace{\sum_{i:\,t_i = w} \frac{\partial L}{\partial X_i}}_{\text{row } w,\ \text{input}} + "
        r"\underbrace{\left(\mathrm{softmax} - \mathrm{onehot}\right)^{\!\top} H}_{\text{every row, output}}, "
        rf"\qquad E \in \mathbb{{R}}^{{{lm.config.vocab_size} \times {lm.config.d_model}}}"
    )
    reached = [f"{int((norms > 0).sum()):,} / {len(norms):,}" for norms in (first, second)]
    for column, label, value, note in zip(
        st.columns(3),
        (_("Rows with an input-side part"), _("Rows with an output-side part"), _("Cosine of the two parts")),
        (*reached, f"{parts.cosine:+.4f}"),
        (None, None, _("Of the two matrices as long vectors. Measured, not assumed: it has no fixed sign.")),
        strict=True,
    ):
        column.metric(label, value, help=note)
    st.markdown(
        _("Untied: each part belongs to a matrix of its own, and they are never added.")
        if whole is None
        else _("Their sum and autograd's gradient of the tied matrix differ by at most {error:.1e}.").format(
            error=(parts.total - whole).abs().max().item()
        )
    )
    chosen = _rows_shown(token_ids, parts.total.norm(dim=-1))
    page.figure(
        figures.two_sides(
            [labels[row] for row in chosen],
            first[chosen],
            second[chosen],
            names,
            _("norm of the row's gradient; this sentence's tokens, then the largest others"),
        ),
        "training-two-sides",
        _("For some rows of the embedding, how long the input-side and the output-side part of the gradient are."),
    )
    st.subheader(_("All {n:,} rows").format(n=len(first)), anchor=False)
    page.figure(
        figures.all_rows(
            first,
            second,
            labels,
            names,
            x_title=_("rows, sorted by their output-side part"),
            y_title=_("norm of the row's gradient"),
        ),
        "training-all-rows",
        _("Norms of both parts of every row: the output side reaches all, the input side the sentence's tokens only."),
    )
    cosines = parts.cosines
    order = torch.argsort(parts.total.norm(dim=-1), descending=True, stable=True)
    page.numbers_table(
        pd.DataFrame(
            {
                _("token"): [labels[row] for row in order.tolist()],
                names[0]: first[order].numpy(),
                names[1]: second[order].numpy(),
                _("cosine"): cosines[order].numpy(),
                _("norm of the sum"): parts.total.norm(dim=-1)[order].numpy(),
            }
        ),
        "training-two-sides",
        {names[0]: "%.3e", names[1]: "%.3e", _("cosine"): "%.4f", _("norm of the sum"): "%.3e"},
    )
    page.snippet(CODE.format(name=lm.name, text=text, last_only=last_only))


def _rows_shown(token_ids: list[int], norms: torch.Tensor) -> list[int]:
    """Return the sentence's own tokens and then the rows with the longest gradients, _SHOWN in all."""
    own = dict.fromkeys(token_ids)
    return list(dict.fromkeys([*own, *torch.argsort(norms, descending=True).tolist()]))[:_SHOWN]
