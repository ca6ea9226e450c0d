"""The lookup: a row picked from the table, and the same row as one-hot times table."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch

from lmcore import LanguageModel
from lmcore.embedding import one_hot_lookup
from pages.common import page, session, widgets
from pages.common.text import _, markdown_literal
from pages.figures.embedding import table as figures
from pages.figures.labels import token_labels
from pages.stages.embedding.common import labels_of, rows_of, trained_table

_ROWS_AROUND = 4
_POSITIONS_SHOWN = 24  # around the chosen one
_MOST_CELLS = 2**24  # of a one-hot matrix multiplied at once

CODE = """
import torch
import lmcore
from lmcore.embedding import one_hot_lookup

lm = lmcore.load({name!r})
ids = torch.tensor(lm.tokenizer.encode({prompt!r}).ids)
table = lm.model.token_embedding.weight.detach()      # [V, D]
vectors = table[ids]                                  # [S, D]
products = one_hot_lookup(ids, table)                 # [S, V] x [V, D]
print((vectors - products).abs().max().item())
print(table[torch.stack([ids, ids.flip(0)])].shape)   # [B, S, D]
print(vectors[{position}])
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    found = session.require_tokens()
    position = widgets.position_picker()
    ids = torch.tensor(found.ids)
    table = trained_table(lm)
    first, last = _around(position, len(ids), min(_POSITIONS_SHOWN, max(1, _MOST_CELLS // len(table))))
    shown = ids[first:last]
    vectors, products = rows_of(table, shown), one_hot_lookup(shown, table).float()
    difference = (vectors - products).abs()
    chosen = found.ids[position]
    low, high = max(0, chosen - _ROWS_AROUND), min(len(table), chosen + _ROWS_AROUND + 1)

    facts, picture = page.workbench()
    with facts:
        st.markdown(
            _("{token} has id {token_id}: the lookup takes row {token_id}.").format(
                token=markdown_literal(found.tokens[position]), token_id=f"**{chosen}**"
            )
        )
        st.metric(
            _("Largest difference"),
            f"{difference.max().item():.6g}",
            help=_(
                "The difference between selecting rows and multiplying one-hot vectors with the table, over "
                "all positions shown and all dimensions. Products with 0 add nothing, so the two are equal."
            ),
        )
        if last - first < len(ids):
            st.caption(_("Shown: positions {first} to {last} of {n}.").format(first=first, last=last - 1, n=len(ids)))
        batch = torch.stack([ids, ids.flip(0)])
        _shapes([(list(ids.shape), list(table[ids].shape)), (list(batch.shape), list(table[batch].shape))])
        scale = lm.config.embedding_scale
        if scale != 1.0:
            st.caption(_("This model then multiplies the vectors by {scale:.4f}.").format(scale=scale))
    with picture:
        limit = vectors.abs().max().item()
        positions = token_labels(found.tokens[first:last], first)
        page.figure(
            figures.one_hot(
                shown.tolist(),
                positions,
                vocab_size=len(table),
                chosen=position - first,
                titles=(_("position:token"), _("column of the one-hot matrix = id")),
            ),
            "embedding-one-hot",
            _("The one-hot matrix: the row of each position has a single 1, in the column of its token id."),
        )
        page.figure(
            figures.rows(
                rows_of(table, slice(low, high)).numpy(),
                labels_of(lm, range(low, high)),
                chosen=chosen - low,
                limit=limit,
                titles=(_("token#id"), _("dimension"), _("value in E")),
            ),
            "embedding-table",
            _("The part of the table around the chosen token's row, which is outlined."),
            chooses=lambda cell: {"position": found.ids.index(low + cell.row)} if low + cell.row in found.ids else {},
        )
        page.figure(
            figures.rows(
                vectors.numpy(),
                positions,
                chosen=position - first,
                limit=limit,
                titles=(_("position:token"), _("dimension"), _("value in X")),
            ),
            "embedding-lookup",
            _("The vectors of the prompt's tokens, one row a position; the chosen one is outlined."),
            chooses=lambda cell: {"position": first + cell.row},
        )
    page.numbers_table(
        pd.DataFrame(
            {
                _("dimension"): range(lm.config.d_model),
                _("selected rows"): vectors[position - first].numpy(),
                _("one-hot × table"): products[position - first].numpy(),
                _("difference"): difference[position - first].numpy(),
            }
        ),
        "embedding-lookup",
        {_("selected rows"): "%.6f", _("one-hot × table"): "%.6f", _("difference"): "%.6g"},
    )
    page.snippet(CODE.format(name=lm.name, prompt=session.prompt(), position=position))


def _shapes(pairs: list[tuple[list[int], list[int]]]) -> None:
    names = [_("this prompt, [S] → [S, D]"), _("the prompt and its reverse as a batch, [B, S] → [B, S, D]")]
    for name, (given, made) in zip(names, pairs, strict=True):
        st.caption(name)
        st.code(f"{given} → {made}", language=None, wrap_lines=True)


def _around(position: int, n: int, most: int) -> tuple[int, int]:
    """Return the range of at most `most` positions around one."""
    first = min(max(0, position - most // 2), max(0, n - most))
    return first, min(n, first + most)
