"""The whole vocabulary as points, along the directions in which its rows spread most."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.pca import principal_components
from lmcore.similarity import neighbours as nearest
from lmcore.tokenizer.script import SCRIPTS, script_of
from pages.common import page, widgets
from pages.common.text import _, language
from pages.figures import embedding as figures
from pages.stages.embedding.common import labels_of, steps_picker, token_picker
from pages.stages.embedding.neighbours import DEFAULT_TOKEN, table_code

CODE = """
import lmcore
from lmcore.embedding_history import embedding_history
from lmcore.pca import principal_components

lm = lmcore.load({name!r})
table = {table}
components = principal_components({basis})
print(components.explained(table, {n}))      # share of the table's variance along each axis
print(components.project(table, {n})[{token}])
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    labels = labels_of(lm)
    controls, picture = page.workbench()
    with controls:
        token = token_picker("token", _("Token"), lm, labels, DEFAULT_TOKEN[language()])
        steps, tables = steps_picker(lm)
        n_axes = widgets.choice("embedding.axes", _("Dimensions"), [2, 3], 2, format_func=lambda n: f"{n}-D")
        basis = widgets.choice(
            "embedding.basis",
            _("Axes from"),
            ["trained", "this"],
            "trained",
            format_func={"trained": _("the trained table"), "this": _("this table")}.__getitem__,
            help=_("With the trained table's axes the points stay comparable while the steps change."),
        )
        colour = widgets.choice(
            "embedding.colour",
            _("Colour"),
            ["script", "norm"],
            "script",
            format_func={"script": _("script"), "norm": _("length of the row")}.__getitem__,
        )
        table = tables[steps]
        components = principal_components(tables[max(tables)] if basis == "trained" else table)
        shares = components.explained(table, n_axes)
        st.metric(
            _("Variance explained by {n} axes").format(n=n_axes),
            f"{100 * shares.sum().item():.2f} %",
            help=_(
                "Exact principal components of all rows. The rest of the spread is not on this map: "
                "for nearness read the list of neighbours."
            ),
        )
    points = components.project(table, n_axes)
    near = nearest(table, table[token], 8, "cosine", {token}).ids.tolist()
    scripts = [script_of(lm.tokenizer.token_bytes(other)) for other in range(len(table))]
    names = {
        "chinese": _("Chinese"),
        "latin": _("Latin"),
        "other": _("digits, punctuation, spaces"),
        "bytes": _("part of a character"),
    }
    lengths = table.norm(dim=-1)
    with picture:
        page.figure(
            figures.points(
                points.numpy(),
                labels,
                axes=[
                    _("component {n}: {share:.2f} % of the variance").format(n=axis + 1, share=100 * share)
                    for axis, share in enumerate(shares.tolist())
                ],
                groups=[names[script] for script in scripts] if colour == "script" else None,
                group_order=[names[script] for script in SCRIPTS],
                amounts=lengths.numpy(),
                amount_title=_("length of the row"),
                chosen=token,
                near=near,
                near_name=_("8 nearest by cosine, in all dimensions"),
            ),
            "embedding-map",
            _("The rows of the table as points along their first principal components; the chosen token is marked."),
        )
    page.numbers_table(
        pd.DataFrame(
            {
                _("token · id"): labels,
                _("script"): [names[script] for script in scripts],
                **{_("component {n}").format(n=axis + 1): points[:, axis].numpy() for axis in range(n_axes)},
                _("length of the row"): lengths.numpy(),
            }
        ),
        "embedding-map",
        {_("length of the row"): "number"},
    )
    page.snippet(
        CODE.format(
            name=lm.name,
            table=table_code(steps, len(tables)),
            basis="lm.model.token_embedding.weight.detach()" if basis == "trained" else "table",
            n=n_axes,
            token=token,
        )
    )
