"""The lookup: a row picked from the table, and the same row as one-hot times table."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch

from lmcore import LanguageModel
from lmcore.embedding import one_hot_lookup
from pages.common import page, session, widgets
from pages.common.text import _, markdown_literal, visible
from pages.figures import embedding as figures
from pages.stages.embedding.common import labels_of

_ROWS_AROUND = 4

CODE = """
import torch
import lmcore
from lmcore.embedding import one_hot_lookup

lm = lmcore.load({name!r})
ids = torch.tensor(lm.tokenizer.encode({prompt!r}).ids)
table = lm.model.token_embedding.weight.detach()      # [vocab_size, d_model]
vectors = table[ids]                                  # [S, d_model]
products = one_hot_lookup(ids, table)                 # one-hot [S, vocab_size] times the table
print((vectors - products).abs().max().item())
print(table[torch.stack([ids, ids.flip(0)])].shape)   # a batch: [B, S] -> [B, S, d_model]
print(vectors[{position}])
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    found = session.require_tokens()
    position = widgets.position_picker()
    ids = torch.tensor(found.ids)
    table = lm.model.token_embedding.weight.detach()
    vectors, products = table[ids], one_hot_lookup(ids, table)
    difference = (vectors - products).abs()
    chosen = found.ids[position]
    low, high = max(0, chosen - _ROWS_AROUND), min(len(table), chosen + _ROWS_AROUND + 1)
    labels = labels_of(lm)
    tokens = [visible(token) for token in found.tokens]

    facts, picture = page.workbench()
    with facts:
        st.markdown(
            _("{token} has id {token_id}: the lookup takes row {token_id}.").format(
                token=markdown_literal(found.tokens[position]), token_id=f"**{chosen}**"
            )
        )
        st.metric(
            _("Largest |row pick − one-hot × table|"),
            f"{difference.max().item():.6g}",
            help=_("Over all positions and dimensions of this prompt. Products with 0 add nothing: both are equal."),
        )
        batch = torch.stack([ids, ids.flip(0)])
        _shapes([(list(ids.shape), list(vectors.shape)), (list(batch.shape), list(table[batch].shape))])
        scale = lm.config.embedding_scale
        if scale != 1.0:
            st.caption(_("This model then multiplies the vectors by {scale:.4f}.").format(scale=scale))
    with picture:
        limit = vectors.abs().max().item()
        page.figure(
            figures.rows(
                table[low:high].numpy(),
                labels[low:high],
                chosen=chosen - low,
                limit=limit,
                row_title=_("token · id"),
                column_title=_("dimension"),
                value_title=_("value in the table E"),
            ),
            "embedding-table",
            _("The table around the chosen token's row, which is outlined."),
        )
        page.figure(
            figures.rows(
                vectors.numpy(),
                [f"{index} · {token}" for index, token in enumerate(tokens)],
                chosen=position,
                limit=limit,
                row_title=_("position · token"),
                column_title=_("dimension"),
                value_title=_("value in X = E[ids]"),
            ),
            "embedding-lookup",
            _("The vectors of the prompt's tokens, one row a position; the chosen one is outlined."),
        )
    page.numbers_table(
        pd.DataFrame(
            {
                _("dimension"): range(lm.config.d_model),
                _("row pick"): vectors[position].numpy(),
                _("one-hot × table"): products[position].numpy(),
                _("difference"): difference[position].numpy(),
            }
        ),
        "embedding-lookup",
        {_("row pick"): "%.6f", _("one-hot × table"): "%.6f", _("difference"): "%.6g"},
    )
    page.snippet(CODE.format(name=lm.name, prompt=session.prompt(), position=position))


def _shapes(pairs: list[tuple[list[int], list[int]]]) -> None:
    names = [_("this prompt, [S] → [S, D]"), _("it and its reverse as a batch, [B, S] → [B, S, D]")]
    for name, (given, made) in zip(names, pairs, strict=True):
        st.caption(name)
        st.code(f"{given} → {made}", language=None)
