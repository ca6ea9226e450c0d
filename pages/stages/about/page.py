"""About: what the server keeps of a visit, its limits, the models' licences, and the versions that run here."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.common import page, session
from pages.common.text import _, markdown_literal, visible
from pages.stages.about import card, kept, limits, own_stages, software

page.header(
    _("About this explorer"),
    _(
        "What the server stores of your visit, which limits it has, the licences of the models, and the versions "
        "that run here."
    ),
)
st.subheader(_("What is stored"), anchor=False)
kept.show()
st.subheader(_("Limits"), anchor=False)
st.markdown(_("Each limit is also shown where it applies: no text is cut without notice."))
st.table(pd.DataFrame(limits.rows(), columns=[_("item"), _("at most")]).set_index(_("item")))
lm = session.language_model()
st.subheader(_("The chosen model: {name}").format(name=markdown_literal(visible(lm.name))), anchor=False)
st.table(pd.DataFrame(card.rows(lm), columns=[_("property"), _("value")]).set_index(_("property")))
card.show_notes(lm.card)
st.subheader(_("Models and their licences"), anchor=False)
st.table(pd.DataFrame(software.models(), columns=[_("model"), _("licence"), _("here")]).set_index(_("model")))
own_stages.show()
st.subheader(_("Versions"), anchor=False)
st.table(pd.DataFrame(software.versions(), columns=[_("package"), _("version")]).set_index(_("package")))
page.snippet(
    """
import lmcore

for model in lmcore.available():
    print(model.name, model.licence or "part of the project", "installed" if model.installed else model.install)
"""
)
page.try_next(page.Suggestion(_("Back to the beginning: a text becomes ids"), "tokenization"))
