"""RoPE on real queries and keys: pairs turned by position, scores that depend on the difference only."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from lmcore import ModelConfig
from lmcore.analysis.position.measures import pairs_of, rope_scores_by_difference
from lmcore.analysis.position.rope_meeting import RopeMeeting, rope_meeting, uneven_diagonals
from lmcore.config import RopeLayout
from pages.common import link, page, session, widgets
from pages.common.text import _, markdown_literal
from pages.figures import theme
from pages.figures.position import rope as figures
from pages.stages.position.common import model_with, tokens_of, unrotated

_SHIFTS = (0, 1, 10, 100, 1000)
_GRID = 24  # positions of the square of scores
_MOST_PAIRS = 32  # planes drawn

CODE = """
import torch
import lmcore
from lmcore.analysis.position.rope_meeting import rope_meeting, uneven_diagonals

lm = lmcore.load({name!r})
trace = lmcore.Trace()
lm(lm.tokenizer.encode({prompt!r}).ids, trace=trace)
met = rope_meeting(trace, lm.config, block={layer}, head={head}, query={query}, key={key})
for shift in {shifts}:
    print(shift, met.at(torch.tensor([{m} + shift]), torch.tensor([{n} + shift])).item())
print(met.score_of(met.by_difference(torch.tensor([{query} - {key}])).sum()).item())
print(met.score)                                            # what the model used
positions = torch.arange({grid})
print(uneven_diagonals(met.at(positions, positions)))       # rounding
"""


def show() -> None:
    """Draw the view."""
    session.require_tokens()
    name = model_with("rope")
    config = session.language_model(name).config
    tokens, ids = tokens_of(name)
    n_pairs = config.n_rotated // 2
    controls, picture = page.workbench()
    equation = st.container()
    with controls:
        query = min(widgets.position_picker(label=_("Query: choose a token")), len(ids) - 1)
        key = widgets.slider("position.key", _("Key position"), 0, query, 0)
        layer = widgets.slider("layer", _("Block"), 0, config.n_layers - 1, 0)
        head = widgets.slider("head", _("Head"), 0, config.n_heads - 1, 0)
        pair = widgets.slider("position.pair_index", _("Pair of dimensions"), 0, n_pairs - 1, min(4, n_pairs - 1))
        st.caption(_("Model: {name}").format(name=name))
        _tell_bases(config, layer)
    base = _base(config, layer)
    with equation:
        page.equation(
            r"\begin{gathered} \begin{pmatrix} a' \\ b' \end{pmatrix} = "
            r"\begin{pmatrix} \cos m\theta_i & -\sin m\theta_i \\ \sin m\theta_i & \cos m\theta_i \end{pmatrix}"
            r"\begin{pmatrix} a \\ b \end{pmatrix} \\ "
            rf"\theta_i = {base:.0f}^{{-2i/{config.n_rotated}}}, \quad i = 0 \ldots {n_pairs - 1} \end{{gathered}}"
        )
    if layer in config.unrotated_layers:
        st.info(unrotated(layer))
        return
    met = rope_meeting(session.trace(ids, name), config, layer, head, query, key)
    with picture:
        st.markdown(
            _(
                "Query {query} is at position {m} and key {key} at position {n}. Each pair turns by position × "
                "θ and keeps its length. Each plane has its own scale; v is not rotated."
            ).format(query=markdown_literal(tokens[query]), m=query, key=markdown_literal(tokens[key]), n=key)
        )
        _planes(met, pair)
    st.subheader(_("The score depends only on the difference of positions"), anchor=False)
    _tell_difference(met, pair)
    _tell_shifts(met)
    _tell_vectors(met)
    _tell_layouts(met)
    _pairs_table(met)
    m, n = _placed(met)
    page.snippet(
        CODE.format(
            name=name,
            prompt=session.prompt(),
            layer=layer,
            head=head,
            query=query,
            key=key,
            m=m,
            n=n,
            shifts=_SHIFTS,
            grid=_GRID,
        )
    )


def _base(config: ModelConfig, layer: int) -> float:
    local = config.rope_base_local if layer in config.local_layers else None
    return local or config.rope_base


def _tell_bases(config: ModelConfig, layer: int) -> None:
    if config.n_rotated < config.d_head:
        st.caption(
            _("RoPE turns the first {n} of {total} components of each head and leaves the others as they are.").format(
                n=config.n_rotated, total=config.d_head
            )
        )
    if config.rope_scaling is not None and config.rope_scaling.attention_factor != 1:
        st.caption(
            _("The model's scaling also multiplies rotated q and k by {factor:.4f}.").format(
                factor=config.rope_scaling.attention_factor
            )
        )
    if config.rope_base_local is None:
        return
    kind = _("local") if layer in config.local_layers else _("global")
    st.caption(
        _(
            "Two bases: block {layer} is {kind}. Local blocks see {window} positions and use base "
            "{local:,.0f}. Global blocks see all positions and use base {base:,.0f}, so they turn more slowly."
        ).format(
            layer=layer, kind=kind, window=config.sliding_window, local=config.rope_base_local, base=config.rope_base
        )
    )


def _planes(met: RopeMeeting, pair: int) -> None:
    n_pairs = len(met.frequencies)
    shown = list(range(n_pairs))
    if n_pairs > _MOST_PAIRS:  # evenly spread, the chosen one among them
        shown = sorted({*np.linspace(0, n_pairs - 1, _MOST_PAIRS - 1).round().astype(int).tolist(), pair})
        st.caption(_("{n} of {total} pairs are drawn, from fast to slow.").format(n=len(shown), total=n_pairs))
    names = (_("q before"), _("q rotated"), _("k before"), _("k rotated"))
    arrows = [pairs_of(x, met.layout)[shown] for x in (met.q, met.q_turned, met.k, met.k_turned)]
    page.figure(
        figures.pair_planes((arrows[0], arrows[1]), (arrows[2], arrows[3]), shown.index(pair), shown, names=names),
        "position-rope-pairs",
        _("Each pair of the query and of the key as an arrow before and after its rotation, one plane for each pair."),
    )


def _tell_difference(met: RopeMeeting, pair: int) -> None:
    plane, curve = st.columns([1, 2])
    names = (_("q before"), _("q rotated"), _("k before"), _("k rotated"))
    arrows = [pairs_of(x, met.layout)[pair] for x in (met.q, met.q_turned, met.k, met.k_turned)]
    with plane:
        page.figure(
            figures.pair_plane((arrows[0], arrows[1]), (arrows[2], arrows[3]), names=names),
            "position-rope-pair",
            _("The chosen pair of the query and the key, before and after rotation."),
        )
    with curve:
        here = met.query - met.key
        differences = torch.arange(0, max(128, here + 1))
        parts = met.by_difference(differences)
        page.figure(
            figures.score_by_difference(
                differences,
                met.score_of(parts.sum(-1)),
                parts[:, pair],
                here,
                names=(_("score of this q and k"), _("share of pair {pair}").format(pair=pair)),
                titles=(_("query position − key position"), _("score")),
            ),
            "position-rope-difference",
            _("The score these two vectors would have at each difference of positions. The circle is this text."),
        )


def _tell_shifts(met: RopeMeeting) -> None:
    square, numbers = st.columns([1, 1], gap="large")
    positions = torch.arange(_GRID)
    grid = met.at(positions, positions)
    m, n = _placed(met)
    with square:
        chart = figures.square(
            grid.numpy(), row_title=_("query position"), column_title=_("key position"), value_title=_("score")
        )
        if max(m, n) < _GRID:
            theme.outline_cells(chart, (m, m), (n, n))
        page.figure(
            chart,
            "position-rope-square",
            _("The score of this q and k placed at any two positions: along every diagonal it is the same."),
            chooses=lambda cell: {"position.placed": f"{cell.row},{cell.column}"},
        )
    shifted = [met.at(torch.tensor([m + shift]), torch.tensor([n + shift])).item() for shift in _SHIFTS]
    with numbers:
        st.markdown(
            _(
                "This q and this k are placed at any two positions. Along each diagonal the difference of "
                "positions is the same, and so is the score. The largest variation along a diagonal is "
                "{uneven:.1e}, the rounding of float32."
            ).format(uneven=uneven_diagonals(grid))
        )
        st.markdown(
            _(
                "When both positions move by the same amount, the score does not change. The model's own score, at "
                "positions {query} and {key}, is {score}. The table begins at the outlined cell."
            ).format(score=f"**{met.score:.5f}**", query=met.query, key=met.key)
        )
        page.numbers_table(
            pd.DataFrame(
                {
                    _("query position"): [m + shift for shift in _SHIFTS],
                    _("key position"): [n + shift for shift in _SHIFTS],
                    _("score"): shifted,
                }
            ),
            "position-rope-shift",
            {_("score"): "%.5f"},
        )


def _placed(met: RopeMeeting) -> tuple[int, int]:
    """Return the two positions that a click chose for this q and k, or those of the text."""
    chosen = re.fullmatch(r"(\d{1,2}),(\d{1,2})", link.remember("position.placed", None) or "")
    m, n = map(int, chosen.groups()) if chosen else (_GRID, _GRID)
    return (m, n) if max(m, n) < _GRID else (met.query, met.key)


def _tell_vectors(met: RopeMeeting) -> None:
    """Show that rotation keeps lengths, and that v is not rotated."""
    st.markdown("**" + _("q and k are rotated and keep their length; v is unchanged") + "**")
    rows = []
    for title, before, after in (("q", met.q, met.q_turned), ("k", met.k, met.k_turned), ("v", met.v, met.v)):
        cosine = torch.cosine_similarity(before.double(), after.double(), dim=0).item()
        rows.append(
            {
                _("vector"): title,
                _("length before"): before.norm().item(),
                _("length after"): after.norm().item(),
                _("cosine of before and after"): cosine,
                _("largest change of a component"): (after - before).abs().max().item(),
            }
        )
    formats = {column: "%.5f" for column in rows[0] if column != _("vector")}
    page.numbers_table(pd.DataFrame(rows), "position-rope-vectors", formats)


def _tell_layouts(met: RopeMeeting) -> None:
    st.subheader(_("Two layouts of the pairs"), anchor=False)
    names = {"half_split": _("half-split"), "interleaved": _("interleaved")}
    other: RopeLayout = "interleaved" if met.layout == "half_split" else "half_split"
    difference = torch.tensor([met.query - met.key])
    q, k = (_as_other_layout(x, met.layout) for x in (met.q, met.k))
    again = met.score_of(rope_scores_by_difference(q, k, difference, met.frequencies, other, met.scale).sum()).item()
    st.markdown(
        _(
            "The weights file decides which two components form a pair. Read with this model's layout ({own}), "
            "the score is {right}. Read with the other layout, it is {wrong}. With the other layout and the "
            "components moved to match it, it is {again}."
        ).format(
            own=names[met.layout],
            right=f"**{met.score_of(met.by_difference(difference).sum()).item():.5f}**",
            wrong=f"**{met.score_of(met.by_difference(difference, other).sum()).item():.5f}**",
            again=f"**{again:.5f}**",
        )
    )
    page.figure(
        figures.layout_strip(len(met.q), names=names, component=_("component of q or k"), pair=_("pair")),
        "position-rope-layouts",
        _("Which components form a pair, in the half-split and in the interleaved layout."),
        chooses=lambda cell: {
            "position.pair_index": cell.column // 2 if cell.row else cell.column % len(met.frequencies)
        },
    )


def _as_other_layout(x: Tensor, layout: RopeLayout) -> Tensor:
    pairs = pairs_of(x, layout)
    return pairs.flatten() if layout == "half_split" else pairs.T.flatten()


def _pairs_table(met: RopeMeeting) -> None:
    shares = met.by_difference(torch.tensor([met.query - met.key]))[0]
    page.numbers_table(
        pd.DataFrame(
            {
                _("pair"): range(len(met.frequencies)),
                _("θ (rad per token)"): met.frequencies.numpy(),
                _("wavelength (tokens)"): (2 * math.pi / met.frequencies).numpy(),
                _("|q| of the pair"): pairs_of(met.q, met.layout).norm(dim=-1).numpy(),
                _("|k| of the pair"): pairs_of(met.k, met.layout).norm(dim=-1).numpy(),
                _("share of the score"): shares.numpy(),
            }
        ),
        "position-rope-pairs",
        {
            _("θ (rad per token)"): "%.6f",
            _("wavelength (tokens)"): "%.2f",
            _("|q| of the pair"): "%.4f",
            _("|k| of the pair"): "%.4f",
            _("share of the score"): "%.5f",
        },
    )
