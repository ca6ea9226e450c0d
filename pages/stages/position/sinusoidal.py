"""The sinusoidal table: clock hands at many speeds, and what adding it to the token vectors means."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

import lmcore
from lmcore.analysis.position.measures import similarity, wavelengths
from lmcore.position import rope_frequencies, sinusoidal_table
from pages.common import page, session, widgets
from pages.common.text import _, visible
from pages.figures import theme
from pages.figures.position import sinusoidal as figures
from pages.stages.position.common import model_with, tokens_of

CODE = """
from lmcore.position import sinusoidal_table
from lmcore.analysis.position.measures import similarity, wavelengths

table = sinusoidal_table({length}, {d_model}, base={base})     # [length, d_model]
print(table[{place}])                                  # sin, cos, sin, cos, ...
print(wavelengths({d_model}, {base}))                    # tokens until a pair is back where it was
print(similarity(table)[{place}])                      # dot products with it: they depend on the distance only
"""


def show() -> None:
    """Draw the view."""
    config = lmcore.builtin.configs()[model_with("sinusoidal")]
    controls, picture = page.workbench()
    equation = st.container()
    with controls:
        d_model = widgets.slider("position.d_model", "d_model", 2, 256, config.d_model)
        base = float(widgets.select("position.base", _("Base"), [100, 1_000, 10_000, 100_000, 1_000_000], 10_000))
        length = widgets.slider("position.length", _("Positions shown"), 8, 512, 128, step=8)
        place = widgets.slider("position.place", _("Position"), 0, length - 1, min(10, length - 1))
        n_pairs = (d_model + 1) // 2
        pair = widgets.slider("position.pair_index", _("Pair of dimensions"), 0, n_pairs - 1, min(4, n_pairs - 1))
    page_table = sinusoidal_table(length, d_model, base)
    lengths, frequencies = wavelengths(d_model, base), rope_frequencies(d_model, base)
    with equation:
        page.equation(
            rf"\begin{{aligned}} PE_{{pos,2i}} &= \sin\frac{{pos}}{{{base:.0f}^{{2i/{d_model}}}}} \\[6pt] "
            rf"PE_{{pos,2i+1}} &= \cos\frac{{pos}}{{{base:.0f}^{{2i/{d_model}}}}} \end{{aligned}}"
        )
    with picture:
        page.figure(
            figures.table(
                page_table, chosen=place, row_title=_("position"), column_title=_("dimension"), value_title=_("value")
            ),
            "position-sinusoidal",
            _("The sinusoidal table: fast waves in the first dimensions, slow ones in the last."),
            chooses=lambda cell: {"position.place": cell.row, "position.pair_index": cell.column // 2},
        )
    spread = sorted({0, n_pairs // 4, n_pairs // 2, n_pairs - 1, pair})
    page.figure(
        figures.clocks(frequencies, place, spread, pair, _("pair")),
        "position-clocks",
        _("A clock hand for each pair: the first turns fastest, the last hardly moves."),
    )
    left, right = st.columns(2)
    with left:
        page.figure(
            figures.waves(
                frequencies[pair].item(),
                length,
                place,
                names=(_("sin, dimension {d}").format(d=2 * pair), _("cos, dimension {d}").format(d=2 * pair + 1)),
                x_title=_("position"),
            ),
            "position-waves",
            _("Sine and cosine of the chosen pair over the positions."),
        )
    with right:
        page.figure(
            figures.wavelengths(
                lengths,
                pair,
                shown=length,
                x_title=_("pair of dimensions"),
                y_title=_("wavelength (tokens)"),
                note=_("positions shown"),
            ),
            "position-wavelengths",
            _("Wavelength of every pair in tokens, on a logarithmic scale."),
        )
    dots = similarity(page_table)[place].numpy()
    page.figure(
        theme.lines(
            np.arange(length) - place,
            {_("dot product"): dots},
            x_title=_("distance from the chosen position (tokens)"),
            y_title="PE · PE",
            height=300,
        ),
        "position-dot",
        _("Dot product of the chosen position's vector with every other: largest with itself, and symmetric."),
    )
    _add_or_concatenate()
    columns = np.arange(n_pairs)
    angles = frequencies.numpy() * place
    page.numbers_table(
        pd.DataFrame(
            {
                _("pair"): columns,
                _("wavelength (tokens)"): lengths.numpy(),
                _("angle (rad)"): angles,
                "sin": np.sin(angles),
                # With an odd d_model the last sine has no cosine beside it.
                "cos": [np.cos(angle) if 2 * i + 1 < d_model else None for i, angle in enumerate(angles)],
            }
        ),
        "position-sinusoidal",
        {_("wavelength (tokens)"): "%.2f", _("angle (rad)"): "%.6f", "sin": "%.6f", "cos": "%.6f"},
    )
    page.snippet(CODE.format(length=length, d_model=d_model, base=base, place=place))


def _add_or_concatenate() -> None:
    st.subheader(_("Added, not concatenated"), anchor=False)
    name = model_with("sinusoidal")
    config = session.language_model(name).config
    tokens, ids = tokens_of(name)
    if not ids:
        st.info(_("Type a prompt above to see its token vectors with the positions added."))
        return
    trace = session.trace(ids, name)
    added = trace["position_embedding"].numpy()
    scaled = trace["token_embedding"].numpy() * config.embedding_scale
    width = config.d_model
    wide = replace(config, d_model=2 * width)  # heads and MLP stay as wide as they are
    st.markdown(
        _(
            "Adding keeps the shape: [{s}, {d}] + [{s}, {d}] = [{s}, {d}]. Concatenating would give [{s}, "
            "{dd}], and every matrix that reads or writes these vectors would be twice as wide: the blocks' "
            "{now:,} parameters would become {then:,}."
        ).format(
            s=len(ids),
            d=width,
            dd=2 * width,
            now=_in_blocks(config),
            then=_in_blocks(wide),
        )
    )
    labels = [f"{index} · {visible(token)}" for index, token in enumerate(tokens)]
    limit = float(np.abs(scaled + added).max())
    pictures = {
        _("token vectors × √d_model"): scaled,
        _("+ positions"): added,
        _("= input of block 0"): trace["blocks.0.resid_pre"].numpy(),
    }
    for number, (title, values) in enumerate(pictures.items()):
        chart = theme.heatmap(
            values, labels, [str(d) for d in range(width)], kind="signed", limit=limit, value_title=title
        )
        chart.update_xaxes(showticklabels=number == len(pictures) - 1, tickmode="auto", nticks=12)
        page.figure(
            chart, f"position-add-{number}", title, said=False, chooses=lambda cell: {"position.place": cell.row}
        )
    st.caption(_("Model: {name}, on the prompt above.").format(name=name))


def _in_blocks(config: lmcore.ModelConfig) -> int:
    return sum(row.count for row in lmcore.parameters.count(config).rows if row.name.startswith("blocks."))
