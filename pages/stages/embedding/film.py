"""The table's rows during training: an animation of the snapshots on fixed axes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

import lmcore
from lmcore import LanguageModel
from lmcore.analysis.embedding.history import embedding_history
from lmcore.analysis.embedding.similarity import cosine, neighbours
from lmcore.corpus.occurring import occurring_tokens
from pages.common import page, widgets
from pages.common.text import _, markdown_literal, plotly_literal, visible
from pages.figures.embedding import table as figures
from pages.live.token_map import Frame, token_map
from pages.stages.embedding import sample
from pages.stages.embedding.common import components_of, label_of, labels_of, token_picker

_NEAR = 6
_PICKED = "table.followed"  # in the session: ids that the reader encircled

CODE = """
import lmcore
from lmcore.analysis.embedding.history import embedding_history
from lmcore.analysis.embedding.pca import principal_components
from lmcore.analysis.embedding.similarity import neighbours
from lmcore.corpus.occurring import occurring_tokens

lm = lmcore.load({name!r})
tables = embedding_history(lm)
shown = list(occurring_tokens(lm.tokenizer))
axes = principal_components(tables[max(tables)][shown])
for steps, table in tables.items():
    near = neighbours(table, table[{token}], n={n}, exclude={{{token}}})
    print(steps, axes.explained(table[shown], {n_axes}).sum().item(), [lm.tokenizer.token_bytes(i) for i in near.ids])
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    tables = embedding_history(lm)
    if not tables:
        st.info(
            _(
                "There is no record of how {name} was trained, so there is no animation of it. Choose a "
                "small-world model above; the default model has {n} snapshots."
            ).format(name=markdown_literal(lm.name), n=len(lmcore.builtin.embedding_snapshots()))
        )
        return
    trained = tables[max(tables)]
    controls, picture = page.workbench()
    with controls:
        token = token_picker("token", _("Token"), lm)
        n_axes = widgets.choice("table.axes", _("Dimensions"), [2, 3], 2, format_func=lambda n: f"{n}-D")
        ids = sorted({*occurring_tokens(lm.tokenizer), token})
        colours = sample.choose_colours(lm, ids, trained[ids].norm(dim=-1), default="part")
        st.caption(
            _(
                "The axes are the principal components of the trained rows and stay fixed. Between two "
                "snapshots the points move in straight lines; at a snapshot they are at their true places."
            )
        )
        if len(tables) == 2:
            st.caption(
                _(
                    "Only the start and the end of this model's training are recorded. The default model has every "
                    "stage."
                )
            )
    axes = components_of(f"{lm.name} {max(tables)}", tuple(ids), trained)
    near = {steps: neighbours(table, table[token], _NEAR, "cosine", {token}) for steps, table in tables.items()}
    shares = {steps: axes.explained(table[ids], n_axes).sum().item() for steps, table in tables.items()}
    where = {other: index for index, other in enumerate(ids)}
    frames = [
        Frame(
            _("{steps:,} steps · {share:.0f} % of the variance").format(steps=steps, share=100 * shares[steps]),
            [where[other] for other in found.ids.tolist() if other in where],
            [
                (visible(lm.tokenizer.token_bytes(other)), f"{score:.3f}")
                for other, score in zip(found.ids.tolist(), found.scores.tolist(), strict=True)
            ],
        )
        for steps, found in near.items()
    ]
    with picture:
        token_map(
            np.stack([axes.project(table[ids], n_axes).numpy() for table in tables.values()]),
            [visible(lm.tokenizer.token_bytes(other)) for other in ids],
            labels_of(lm, ids),
            key="embedding-film",
            alt=_("The rows of the table as points, moving from their random start to where training put them."),
            colours=colours,
            frames=frames,
            chosen=where[token],
            axis_titles=[
                (_("component {n} of the trained rows") if n_axes == 2 else _("component {n}")).format(n=axis + 1)
                for axis in range(n_axes)
            ],
            start=len(frames) - 1,
            near_title=_("nearest by cosine, all {width} dimensions").format(width=lm.config.d_model),
            on_choose=lambda index: st.session_state.update({"token": ids[index]}),
            on_pick=lambda indices: st.session_state.update({_PICKED: [ids[index] for index in indices]}),
        )
        followed = [other for other in st.session_state.get(_PICKED, ()) if other in where and other != token]
        others = followed or near[max(tables)].ids.tolist()
        page.figure(
            figures.forming(
                list(tables),
                {label_of(lm, other): _cosines(tables, token, other) for other in others[:_NEAR]},
                now=max(tables),
                titles=(_("steps trained"), _("cosine to {token}").format(token=plotly_literal(label_of(lm, token)))),
            ),
            "embedding-film-forming",
            _("Cosine between the token and its final neighbours, at each snapshot of training."),
        )
        st.caption(
            _("Followed: the tokens you selected.")
            if followed
            else _("Followed: its final neighbours. Select other tokens on the map to follow them.")
        )
    page.numbers_table(
        pd.DataFrame(
            {
                _("steps"): list(tables),
                _("variance on these axes"): list(shares.values()),
                _("σ of the table"): [table.std().item() for table in tables.values()],
                _("length of this row"): [table[token].norm().item() for table in tables.values()],
                _("nearest by cosine"): [" ".join(labels_of(lm, found.ids.tolist())) for found in near.values()],
                _("its cosine"): [found.scores[0].item() for found in near.values()],
            }
        ),
        "embedding-film",
        {
            _("steps"): "count",
            _("variance on these axes"): "probability",
            _("σ of the table"): "number",
            _("length of this row"): "number",
            _("its cosine"): "number",
        },
    )
    page.snippet(CODE.format(name=lm.name, token=token, n=_NEAR, n_axes=n_axes))


def _cosines(tables: dict, token: int, other: int) -> list[float]:
    return [cosine(table[token], table[other]).item() for table in tables.values()]
