"""Published models side by side: how large, how much of it is the head, and who ties."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.parameters import PRESETS, count
from pages.common import page
from pages.common.text import _
from pages.figures.tying import parameters as figures
from pages.stages.tying.subject import group_names, literal

CODE = """
from lmcore.parameters import PRESETS, count

for name, config in PRESETS.items():
    counted = count(config)
    print(name, counted.total, counted.untied_total, counted.head_size, counted.head_share, config.tie_embeddings)
    print("   ", config.tie_source)
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    configs = {_("this model: {name}").format(name=lm.name): lm.config}
    configs |= {config.title: config for config in PRESETS.values()}
    by_title = {title: count(config) for title, config in configs.items()}
    counted = dict(sorted(by_title.items(), key=lambda pair: pair[1].total))
    page.figure(
        figures.stacked(
            {title: found.group_totals for title, found in counted.items()},
            group_names=group_names(),
            value_title=_("share of the parameters (tied storage counted once)"),
            share=True,
        ),
        "tying-models",
        _(
            "Models from the smallest to the largest, with the share of each that is embedding, attention, MLP and "
            "head."
        ),
    )
    st.caption(_("In a tied model the head is the token embedding. In an untied model it is stored separately."))
    page.numbers_table(
        pd.DataFrame(
            [
                {
                    _("model"): title,
                    _("counted as"): _("tied") if found.tied else _("untied"),
                    _("total"): found.total,
                    _("LM head"): found.head_size,
                    _("LM head / total"): found.head_share,
                    _("tied total"): found.tied_total,
                    _("untied total"): found.untied_total,
                    _("tying saves"): found.tying_saves,
                }
                for title, found in counted.items()
            ]
        ),
        "tying-models",
        {
            **dict.fromkeys([_("total"), _("LM head"), _("tied total"), _("untied total"), _("tying saves")], "count"),
            _("LM head / total"): "probability",
        },
    )
    st.subheader(_("Which models tie, and where it is documented"), anchor=False)
    by_source: dict[tuple[str, bool], list[str]] = {}
    for config in PRESETS.values():
        by_source.setdefault((config.tie_source, config.tie_embeddings), []).append(config.title)
    st.markdown(
        "\n".join(
            f"- **{', '.join(titles)}** · {_('tied') if tied else _('untied')} · {literal(source)}"
            for (source, tied), titles in by_source.items()
        )
    )
    page.snippet(CODE)
