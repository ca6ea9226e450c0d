"""Random or trained: the same tokens in two random tables and in the trained one, measured alike."""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from lmcore import LanguageModel
from lmcore.analysis.embedding.random_tables import NORMAL_STD, random_table, uniform_limit
from lmcore.analysis.embedding.similarity import neighbours
from pages.common import page, widgets
from pages.common.shared import shared
from pages.common.text import _
from pages.figures.embedding import table as figures
from pages.stages.embedding import sample
from pages.stages.embedding.common import components_of, labels_of, rows_of, token_picker, trained_table

_NEAR = 6
_PAIRS = 1_000  # of the tokens shown, whose pairs are counted

CODE = """
import numpy as np
import lmcore
from lmcore.analysis.embedding.random_tables import random_table
from lmcore.analysis.embedding.similarity import neighbours
from lmcore.corpus.occurring import occurring_tokens

lm = lmcore.load({name!r})
shown = {shown}
token = {token}
if token not in shown:
    shown.append(token)
place = shown.index(token)
n, width = len(shown), lm.config.d_model
for table in (
    random_table(n, width, "normal", seed={seed}),
    random_table(n, width, "uniform", seed={seed}),
    lm.model.token_embedding.weight.detach()[shown],
):
    found = neighbours(table, table[place], n={near}, exclude={{place}})
    print(table.std().item(), [(shown[i], s) for i, s in zip(found.ids.tolist(), found.scores.tolist())])
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    width = lm.config.d_model
    controls, picture = page.workbench()
    with controls:
        token = token_picker("token", _("Token"), lm)
        seed = widgets.number("table.seed", _("Seed"), 0, 999_999, 1, step=1)
        chosen = sample.choose(lm, seed)
        ids = [*chosen.ids] if token in chosen.ids else [*chosen.ids, token]
        place, n = ids.index(token), len(ids)
        st.caption(
            _(
                "The table starts as random numbers: normal with σ = {std} in GPT-2; in other models uniform "
                "between ±√(3 / {width}) = ±{limit:.4f}, which gives rows of length about 1. Only training "
                "gives the rows a meaning."
            ).format(std=NORMAL_STD, width=width, limit=uniform_limit(width))
        )
        st.caption(_("Compared only among these rows: {sample}.").format(sample=chosen.sentence))
    tables = {
        "normal": (_("normal, σ = {std}").format(std=NORMAL_STD), random_table(n, width, "normal", seed)),
        "uniform": (_("uniform, ±√(3/D)"), random_table(n, width, "uniform", seed)),
        "trained": (_("trained"), rows_of(trained_table(lm), ids)),
    }
    labels = labels_of(lm, ids)
    columns, pairs = {}, {}
    with picture:
        for column, (kind, (name, table)) in zip(st.columns(3), tables.items(), strict=True):
            of = f"{lm.name} {kind} {seed if kind != 'trained' else ''} {n} {zlib.crc32(np.array(ids).tobytes())}"
            components = components_of(of, tuple(range(n)), table)
            share = components.explained(table, 2).sum().item()
            near = neighbours(table, table[place], _NEAR, "cosine", {place})
            pairs[name] = _pair_cosines(of, seed, table)
            columns[name] = [
                table.std().item(),
                table.norm(dim=-1).mean().item(),
                share,
                near.scores[0].item() if len(near.ids) else float("nan"),
            ]
            with column:
                st.markdown(f"**{name}**")
                if share == share:
                    st.caption(_("two components show {share:.1f} %").format(share=100 * share))
                page.figure(
                    figures.small_map(
                        components.project(table, 2).numpy(),
                        labels,
                        marked=[place, *near.ids[:3].tolist()],
                        titles=(_("first component"), _("second component")),
                    ),
                    f"embedding-random-{kind}",
                    _("The tokens along the first two components of this table. The chosen token is marked."),
                )
                st.dataframe(
                    pd.DataFrame(
                        {
                            _("nearest by cosine"): [labels[index] for index in near.ids.tolist()],
                            _("cosine"): near.scores.numpy(),
                        }
                    ),
                    hide_index=True,
                    column_config={_("cosine"): st.column_config.NumberColumn(format="%.3f")},
                    key=f"embedding-random-near-{kind}",
                )
        st.caption(
            _(
                "A random table has no preferred direction: each of its {width} principal components explains "
                "about the same small share, and rows are near each other only by chance."
            ).format(width=width)
        )
        if n > 2:
            page.figure(
                figures.cosines(pairs, titles=(_("cosine of two rows"), _("share of all pairs, per bin"))),
                "embedding-random-cosines",
                _("Distribution of the cosines of all pairs of rows in the three tables."),
            )
            st.caption(
                _(
                    "Random rows are nearly orthogonal: their cosines have a standard deviation of 1/√{width} "
                    "= {spread:.4f} around 0. In the trained table some pairs stand out on the right, and the "
                    "whole distribution is often shifted from 0."
                ).format(width=width, spread=width**-0.5)
            )
    names = [_("σ"), _("mean length of a row"), _("variance on two components"), _("highest cosine to the token")]
    page.numbers_table(
        pd.DataFrame({_("table"): list(columns), **dict(zip(names, zip(*columns.values(), strict=True), strict=True))}),
        "embedding-random",
        {names[0]: "%.5f", names[1]: "number", names[2]: "probability", names[3]: "number"},
    )
    page.snippet(CODE.format(name=lm.name, shown=chosen.code, token=token, seed=seed, near=_NEAR))


@shared(entries=9)
def _pair_cosines(table_name: str, seed: int, _table: Tensor) -> np.ndarray:
    """Return the cosines of all pairs of different rows, of at most _PAIRS rows drawn at random."""
    rows = torch.tensor(sample.random_ids(len(_table), _PAIRS, seed))
    directions = torch.nn.functional.normalize(_table[rows].double(), dim=-1)
    return (directions @ directions.T)[torch.triu_indices(len(rows), len(rows), 1).unbind()].numpy()
