"""The learned table: one vector a position, and an end."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from lmcore.analysis.position.measures import similarity
from pages.common import page, session, widgets
from pages.common.text import _
from pages.figures import theme
from pages.figures.position import sinusoidal as figures
from pages.stages.position.common import model_with

CODE = """
import lmcore
from lmcore.analysis.position.measures import similarity

lm = lmcore.load({name!r})
table = lm.model.position.get_parameter("weight").detach()           # [context_length, d_model]
print(table.shape, table[{place}])
print(similarity(table, cosine=True)[{place}])
"""


def show() -> None:
    """Draw the view."""
    name = model_with("learned")
    lm = session.language_model(name)
    weights = lm.model.position.get_parameter("weight").detach()
    length, width = weights.shape
    controls, picture = page.workbench()
    with controls:
        place = widgets.slider("position.place", _("Position"), 0, length - 1, min(10, length - 1))
        st.caption(_("Model: {name}").format(name=name))
        st.markdown(
            _(
                "The table ends at position {last}. It has no vector for position {length}, so the model "
                "cannot read a text of more than {length} tokens."
            ).format(last=length - 1, length=length)
        )
    cosines = similarity(weights, cosine=True).numpy()
    labels = [str(position) for position in range(length)]
    with picture:
        page.figure(
            figures.table(
                weights, chosen=place, row_title=_("position"), column_title=_("dimension"), value_title=_("value")
            ),
            "position-learned",
            _("The learned table, one row a position; the chosen row is outlined."),
            chooses=lambda cell: {"position.place": cell.row},
        )
        page.equation(rf"X = E[\mathrm{{ids}}] + P[0..S-1], \qquad P \in \mathbb{{R}}^{{{length} \times {width}}}")
    left, right = st.columns(2)
    with left:
        chart = theme.heatmap(
            cosines,
            labels,
            labels,
            kind="signed",
            limit=1.0,
            row_title=_("position"),
            column_title=_("position"),
            value_title=_("cosine"),
            height=460,
        )
        chart.update_xaxes(tickmode="auto", nticks=7)  # the labels are the indices
        chart.update_yaxes(tickmode="auto", nticks=7)
        page.figure(
            chart,
            "position-learned-cosine",
            _("Cosine of every two rows of the table: nearby positions have similar vectors."),
            chooses=lambda cell: {"position.place": cell.row},
        )
    with right:
        page.figure(
            theme.lines(
                np.arange(length) - place,
                {_("cosine"): cosines[place]},
                x_title=_("distance from the chosen position (tokens)"),
                y_title=_("cosine"),
                height=460,
            ),
            "position-learned-distance",
            _("Cosine of the chosen position's row with every other row."),
        )
    page.numbers_table(
        pd.DataFrame(
            {
                _("position"): range(length),
                _("length |P|"): weights.norm(dim=-1).numpy(),
                _("cosine with position {place}").format(place=place): cosines[place],
            }
        ),
        "position-learned",
        {_("length |P|"): "%.4f", _("cosine with position {place}").format(place=place): "%.4f"},
    )
    page.snippet(CODE.format(name=name, place=place))
