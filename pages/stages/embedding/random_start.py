"""Random or trained: the same tokens in two random tables and in the trained one, measured alike."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from lmcore import LanguageModel
from lmcore.analysis.pca import principal_components
from lmcore.analysis.random_tables import NORMAL_STD, random_table, uniform_limit
from lmcore.analysis.similarity import neighbours
from pages.common import page, widgets
from pages.common.text import _
from pages.figures import embedding as figures
from pages.stages.embedding import sample
from pages.stages.embedding.common import labels_of, token_picker, trained_table

_NEAR = 6
_PAIRS = 1_000  # of the tokens shown, whose pairs are counted

CODE = """
import numpy as np
import lmcore
from lmcore.analysis.random_tables import random_table
from lmcore.analysis.similarity import neighbours
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
                "A table starts as random numbers: in GPT-2 normal with σ = {std}, elsewhere uniform between "
                "±√(3 / {width}) = ±{limit:.4f}, which gives rows of length 1. Only training puts meaning into it."
            ).format(std=NORMAL_STD, width=width, limit=uniform_limit(width))
        )
        st.caption(_("Compared among these rows only: {sample}.").format(sample=chosen.sentence))
    tables = {
        _("normal, σ = {std}").format(std=NORMAL_STD): random_table(n, width, "normal", seed),
        _("uniform, ±√(3/D)"): random_table(n, width, "uniform", seed),
        _("trained"): trained_table(lm)[ids],
    }
    labels = labels_of(lm, ids)
    places, marked, found, columns = {}, {}, {}, {}
    for name, table in tables.items():
        components = principal_components(table)
        share = components.explained(table, 2).sum().item()
        near = neighbours(table, table[place], _NEAR, "cosine", {place})
        title = _("{table} · {share:.1f} %").format(table=name, share=100 * share) if share == share else name
        places[title] = components.project(table, 2).numpy()
        marked[title] = [place, *near.ids[:3].tolist()]
        found[name] = near
        columns[name] = [
            table.std().item(), table.norm(dim=-1).mean().item(), share,
            near.scores[0].item() if len(near.ids) else float("nan"),
        ]  # fmt: skip
    with picture:
        page.figure(
            figures.small_maps(places, labels, marked=marked, titles=(_("first component"), _("second component"))),
            "embedding-random-maps",
            _("The same tokens in two random tables and in the trained one, each along its own first two components."),
        )
        st.caption(
            _(
                "In the title: the share of the variance that the two components show. A random table has no "
                "direction of its own: each of its {width} components has about as little as any other."
            ).format(width=width)
        )
        for column, (name, near) in zip(st.columns(3), found.items(), strict=True):
            with column:
                page.figure(
                    figures.ranked(
                        near.scores.numpy(),
                        [labels[index] for index in near.ids.tolist()],
                        title=_("cosine · {table}").format(table=name),
                    ),
                    f"embedding-random-{len(name)}-{list(found).index(name)}",
                    _("The rows most alike to the token's: {title}.").format(title=name),
                )
        if n > 2:
            page.figure(
                figures.cosines(
                    {name: _pair_cosines(table, seed) for name, table in tables.items()},
                    titles=(_("cosine of two rows"), _("share of all pairs, a bin")),
                ),
                "embedding-random-cosines",
                _("How the cosines of all pairs of rows are distributed in the three tables."),
            )
            st.caption(
                _(
                    "Random rows are nearly at right angles: their cosines have a spread of 1/√{width} = {spread:.4f} "
                    "about 0. In the trained table pairs stand out on the right, and often the whole is off 0."
                ).format(width=width, spread=width**-0.5)
            )
    names = [_("σ"), _("mean length of a row"), _("variance on two components"), _("highest cosine to the token")]
    page.numbers_table(
        pd.DataFrame({_("table"): list(columns), **dict(zip(names, zip(*columns.values(), strict=True), strict=True))}),
        "embedding-random",
        {names[0]: "%.5f", names[1]: "number", names[2]: "probability", names[3]: "number"},
    )
    page.snippet(CODE.format(name=lm.name, shown=chosen.code, token=token, seed=seed, near=_NEAR))


def _pair_cosines(table: Tensor, seed: int) -> np.ndarray:
    """Return the cosines of all pairs of different rows, of at most _PAIRS rows drawn at random."""
    rows = torch.tensor(sample.random_ids(len(table), _PAIRS, seed))
    directions = torch.nn.functional.normalize(table[rows].double(), dim=-1)
    return (directions @ directions.T)[torch.triu_indices(len(rows), len(rows), 1).unbind()].numpy()
