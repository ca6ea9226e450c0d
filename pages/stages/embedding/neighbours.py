"""A token's neighbours at a step of training, and how they formed."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.analysis.embedding.similarity import cosine, likeness
from pages.common import page, widgets
from pages.common.text import _, plotly_literal
from pages.figures.embedding import table as figures
from pages.stages.embedding.common import compare, label_of, labels_of, rows_of, steps_picker, table_std, token_picker

CODE = """
import lmcore
from lmcore.analysis.embedding.history import embedding_history
from lmcore.analysis.embedding.similarity import neighbours

lm = lmcore.load({name!r})
table = {table}
token = {token}
for measure in "cosine", "dot":
    found = neighbours(table, table[token], n={n}, measure=measure, exclude={{token}})
    for other, score in zip(found.ids.tolist(), found.scores.tolist()):
        print(measure, other, lm.tokenizer.token_bytes(other), score)
"""


def table_code(steps: int, n_tables: int) -> str:
    """Return the Python that gives the table after some steps."""
    return f"embedding_history(lm)[{steps}]" if n_tables > 1 else "lm.model.token_embedding.weight.detach()"


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    with controls:
        token = token_picker("token", _("Token"), lm)
        steps, tables = steps_picker(lm)
        n = widgets.slider("neighbours", _("Neighbours"), 3, 20, 8)
        table, trained = tables[steps], list(tables.values())[-1]
        st.metric(_("σ of the table"), f"{table_std(lm.name, steps, table):.4f}")
        st.metric(_("Length of this row"), f"{rows_of(table, token).norm().item():.4f}")
        if len(tables) > 1:
            st.caption(
                _(
                    "Before training, the numbers are drawn from a normal distribution with σ = {std}. Rows "
                    "are near each other only by chance."
                ).format(std=lm.config.init_std)
            )
        st.caption(
            _("Computed in all {width} dimensions over the whole vocabulary, without the token itself.").format(
                width=lm.config.d_model
            )
        )
    against = compare(lm, table[token], table)
    by_cosine, by_dot = (against.neighbours(n, measure, {token}) for measure in ("cosine", "dot"))
    with picture:
        left, right = st.columns(2)
        for column, found, title, key in (
            (left, by_cosine, _("cosine"), "cosine"),
            (right, by_dot, _("dot product"), "dot"),
        ):
            with column:
                page.figure(
                    figures.ranked(found.scores.numpy(), labels_of(lm, found.ids.tolist()), title=title),
                    f"embedding-neighbours-{key}",
                    _("The rows most similar to the token's row: {title}.").format(title=title),
                )
        st.caption(_("The cosine depends only on the angle. The dot product also grows with the lengths of the rows."))
        if len(tables) > 1:
            finally_near = compare(lm, trained[token]).neighbours(min(n, 6), "cosine", {token}).ids
            page.figure(
                figures.forming(
                    list(tables),
                    {
                        label_of(lm, other): [cosine(made[token], made[other]).item() for made in tables.values()]
                        for other in finally_near.tolist()
                    },
                    now=steps,
                    titles=(
                        _("steps trained"),
                        _("cosine to {token}").format(token=plotly_literal(label_of(lm, token))),
                    ),
                ),
                "embedding-forming",
                _("Cosine between the token and its final neighbours, at each snapshot of training."),
            )
            page.figure(
                figures.entries(
                    {
                        _moment(done, max(tables)): tables[done].numpy()
                        for done in sorted({min(tables), steps, max(tables)})
                    },
                    init_std=lm.config.init_std,
                    init_name=_("normal, σ = {std}").format(std=lm.config.init_std),
                    titles=(_("value of a number in the table"), _("share of all numbers, per bin")),
                ),
                "embedding-entries",
                _("Distribution of the numbers in the table: at the start, now, and at the end."),
            )
    shown = list(dict.fromkeys([*by_cosine.ids.tolist(), *by_dot.ids.tolist()]))
    cosines, dots = (likeness(table[shown], table[token], measure) for measure in ("cosine", "dot"))
    page.numbers_table(
        pd.DataFrame(
            {
                _("token#id"): labels_of(lm, shown),
                _("cosine"): cosines.numpy(),
                _("dot product"): dots.numpy(),
                _("length of the row"): rows_of(table, shown).norm(dim=-1).numpy(),
            }
        ),
        "embedding-neighbours",
        {_("cosine"): "number", _("dot product"): "number", _("length of the row"): "number"},
    )
    page.snippet(CODE.format(name=lm.name, table=table_code(steps, len(tables)), token=token, n=n))


def _moment(steps: int, last: int) -> str:
    if steps == 0:
        return _("random, 0 steps")
    return (_("trained, {steps} steps") if steps == last else _("after {steps} steps")).format(steps=f"{steps:,}")
