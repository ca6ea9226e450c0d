"""The rows of the table as points, along the directions in which they spread most."""

from __future__ import annotations

import pandas as pd
import streamlit as st

import lmcore
from lmcore import LanguageModel
from lmcore.analysis.pca import principal_components
from lmcore.analysis.similarity import neighbours as nearest
from lmcore.corpus.occurring import occurring_tokens
from lmcore.tokenizer.script import SCRIPTS, script_of
from pages.common import page, widgets
from pages.common.text import _, language
from pages.figures import embedding as figures
from pages.stages.embedding.common import labels_of, steps_picker, token_picker
from pages.stages.embedding.neighbours import DEFAULT_TOKEN, table_code

_NEAR = 8

CODE = """
import lmcore
from lmcore.corpus.occurring import occurring_tokens
from lmcore.analysis.embedding_history import embedding_history
from lmcore.analysis.pca import principal_components

lm = lmcore.load({name!r})
shown = {shown}
points = {table}[shown]
components = principal_components({basis}[shown])
print(components.explained(points, {n}))  # shares of the variance
print(components.project(points, {n})[shown.index({token})])
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    labels = labels_of(lm)
    occurring = occurring_tokens(lm.tokenizer) if lm.name in lmcore.builtin.names() else ()
    controls, picture = page.workbench()
    with controls:
        token = token_picker("token", _("Token"), lm, labels, DEFAULT_TOKEN[language()])
        steps, tables = steps_picker(lm)
        n_axes = widgets.choice("table.axes", _("Dimensions"), [2, 3], 2, format_func=lambda n: f"{n}-D")
        which = "all"
        if occurring:
            which = widgets.select(
                "table.shown",
                _("Tokens shown"),
                ["occurring", "all"],
                "occurring",
                format_func={
                    "occurring": _("small world: {n}").format(n=len(occurring)),
                    "all": _("all: {n}").format(n=len(labels)),
                }.__getitem__,
                help=_("Tokens that occur in the small world, or the whole vocabulary: bytes and unused pieces too."),
            )
        basis = widgets.select(
            "table.basis",
            _("Axes from"),
            ["trained", "this"],
            "trained",
            format_func={"trained": _("the trained table"), "this": _("this table")}.__getitem__,
            help=_("With the trained table's axes the points stay comparable while the steps change."),
        )
        colour = widgets.select(
            "table.colour",
            _("Colour"),
            ["script", "norm"],
            "script",
            format_func={"script": _("script"), "norm": _("length of the row")}.__getitem__,
        )
        shown = sorted({*occurring, token}) if which == "occurring" else list(range(len(labels)))
        table = tables[steps]
        points = table[shown]
        components = principal_components((tables[max(tables)] if basis == "trained" else table)[shown])
        shares = components.explained(points, n_axes)
        st.metric(
            _("Variance explained"),
            f"{100 * shares.sum().item():.2f} %",
            help=_(
                "Exact principal components of the points shown. The rest of their spread is not on this map: "
                "for nearness read the list of neighbours."
            ),
        )
    placed = components.project(points, n_axes)
    near = [other for other in nearest(table, table[token], _NEAR, "cosine", {token}).ids.tolist() if other in shown]
    names = {
        "chinese": _("Chinese"),
        "latin": _("Latin"),
        "other": _("digits, punctuation, spaces"),
        "bytes": _("part of a character"),
    }
    scripts = [names[script_of(lm.tokenizer.token_bytes(other))] for other in shown]
    lengths = points.norm(dim=-1)
    with picture:
        page.figure(
            figures.points(
                placed.numpy(),
                [labels[other] for other in shown],
                axes=[
                    _("component {n}: {share:.2f} % of the variance").format(n=axis + 1, share=100 * share)
                    for axis, share in enumerate(shares.tolist())
                ],
                groups=scripts if colour == "script" else None,
                group_order=[names[script] for script in SCRIPTS],
                amounts=lengths.numpy(),
                amount_title=_("length of the row"),
                chosen=shown.index(token),
                near=[shown.index(other) for other in near],
                near_name=_("nearest {n} by cosine, in all dimensions").format(n=_NEAR),
            ),
            "embedding-map",
            _("The rows of the table as points along their first principal components; the chosen token is marked."),
        )
    page.numbers_table(
        pd.DataFrame(
            {
                _("token#id"): [labels[other] for other in shown],
                _("script"): scripts,
                **{_("component {n}").format(n=axis + 1): placed[:, axis].numpy() for axis in range(n_axes)},
                _("length of the row"): lengths.numpy(),
            }
        ),
        "embedding-map",
        {_("length of the row"): "number"},
    )
    made = table_code(steps, len(tables))
    everything = f"list(range({len(labels)}))"
    page.snippet(
        CODE.format(
            name=lm.name,
            shown=f"sorted({{*occurring_tokens(lm.tokenizer), {token}}})" if which == "occurring" else everything,
            table=made,
            basis="lm.model.token_embedding.weight.detach()" if basis == "trained" else made,
            n=n_axes,
            token=token,
        )
    )
