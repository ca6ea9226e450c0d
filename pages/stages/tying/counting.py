"""The parameter calculator: every tensor as a formula with numbers in it, tied against untied."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.parameters import BYTES_PER_NUMBER, count
from lmcore.parameters.per_block import block_matrices
from pages.common import page, widgets
from pages.common.text import _
from pages.figures.theme import fmt_count
from pages.figures.tying import parameters as figures
from pages.stages.tying.subject import config_code, facts, group_names, mebibytes, sources, subject_picker

CODE = """
import lmcore
from lmcore.parameters import PRESETS, count

config = {config}
counted = count(config, tie_embeddings={tied})
for row in counted.rows:
    print(row.name, row.formula, row.count)
print(counted.total, counted.tied_total, counted.untied_total, counted.tying_saves, counted.head_share)
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    with controls:
        config = subject_picker(lm)
        how = widgets.select(
            "tying.count",
            _("Count as"),
            ["given", "tied", "untied"],
            "given",
            format_func={"given": _("unchanged"), "tied": _("tied"), "untied": _("untied")}.__getitem__,
        )
        counted = count(config, tie_embeddings={"given": None, "tied": True, "untied": False}[how])
    names = group_names()
    block = block_matrices(config)
    with picture:
        page.figure(
            figures.stacked(
                {
                    label: count(config, tie_embeddings=tied).group_totals
                    for label, tied in ((_("tied"), True), (_("untied"), False))
                },
                group_names=names,
                value_title=_("parameters"),
            ),
            "tying-bars",
            _("Parameters by group, tied and untied."),
        )
        one_block = " + ".join(row.formula for row in block)
        how_counted = _("tied") if counted.tied else _("untied")
        facts(
            [_("counted {how}").format(how=how_counted), _("parameters"), _("share of the total")],
            [
                [f"**{_('total')}**", fmt_count(counted.total), ""],
                *(
                    [name, fmt_count(value), f"{100 * value / counted.total:.2f} %"]
                    for name, value in {
                        _("token embedding"): counted.rows[0].size,
                        _("LM head"): counted.head_size,
                        _("norms"): counted.group_totals.get("norm", 0),
                        _("matrices of one block"): sum(row.size for row in block),
                    }.items()
                ),
                [_("total if tied"), fmt_count(counted.tied_total), ""],
                [_("total if untied"), fmt_count(counted.untied_total), ""],
                [_("tying saves"), fmt_count(counted.tying_saves), ""],
            ],
        )
        st.caption(_("Matrices of one block: {formula}").format(formula=one_block))
        page.figure(
            figures.treemap(
                [(row.name, row.group, row.formula, row.count) for row in counted.rows if row.count],
                group_names=names,
                root=_("all parameters"),
            ),
            "tying-treemap",
            _("Each kind of tensor, drawn as an area in proportion to its number of parameters."),
        )
    rows = pd.DataFrame(
        [
            {
                _("tensor"): row.name,
                _("group"): names[row.group],
                _("formula"): row.symbols,
                _("with numbers"): row.formula,
                _("size"): row.size,
                _("parameters added"): row.count,
                _("shares storage with"): row.tied_to if row.shared else "",
            }
            for row in counted.rows
        ]
    )
    page.numbers_table(rows, "tying-parameters", {_("size"): "count", _("parameters added"): "count"})
    st.subheader(_("Memory of the parameters"), anchor=False)
    memory = [
        {
            _("dtype"): dtype,
            _("bytes per number"): width,
            _("bytes"): counted.memory_bytes(dtype),
            "MiB": mebibytes(counted.memory_bytes(dtype)),
        }
        for dtype, width in BYTES_PER_NUMBER.items()
    ]
    page.numbers_table(pd.DataFrame(memory), "tying-memory", {_("bytes"): "count"})
    sources(config)
    page.snippet(CODE.format(config=config_code(lm, config), tied=counted.tied))
