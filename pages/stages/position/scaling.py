"""RoPE stretched for longer texts: linear, NTK-aware, YaRN, llama3; what each does to the pairs, angles and scores."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from lmcore.analysis.position.measures import rope_decay
from lmcore.analysis.position.rope_meeting import rope_meeting
from lmcore.config import RopeScaling
from lmcore.position import rope_frequencies
from pages.common import page, session, widgets
from pages.common.text import _, markdown_literal
from pages.figures.position import scaling as figures
from pages.figures.position import sinusoidal
from pages.stages.position import scaled_losses
from pages.stages.position.common import model_with, tokens_of, trained_length, unrotated

KINDS = ("linear", "ntk", "yarn", "llama3")
_CONTEXTS = (128, 512, 2048, 4096, 8192, 32_768)
_DRAWN = 4  # trained lengths
_MOST_POSITIONS = 2048  # scores are drawn for so many differences at most

CODE = """
from lmcore.config import RopeScaling
from lmcore.position import rope_frequencies

plain = rope_frequencies({d_head}, {base})
for scaling in {scalings}:
    scaled = rope_frequencies({d_head}, {base}, scaling)
    print(scaling.kind, scaled / plain, scaling.attention_factor)
"""


def show() -> None:
    """Draw the view."""
    name = model_with("rope")
    config = session.language_model(name).config
    d_head, base, n_pairs = config.n_rotated, config.rope_base, config.n_rotated // 2
    controls, picture = page.workbench()
    equation = st.container()
    with controls:
        kind = widgets.select("position.scaling", _("Scaling"), KINDS, "yarn", format_func=_titles().__getitem__)
        factor = widgets.slider("position.factor", _("Factor"), 1.0, 32.0, 4.0, step=0.5)
        default = trained_length(name)
        lengths = sorted({*_CONTEXTS, default})
        trained = widgets.select("position.trained", _("Trained length (tokens)"), lengths, default)
        scalings = {
            "linear": RopeScaling(kind="linear", factor=factor),
            "ntk": RopeScaling(kind="ntk", factor=factor),
            "yarn": _by_parts("yarn", factor, trained, (1.0, 32.0), shown=kind == "yarn"),
            "llama3": _by_parts("llama3", factor, trained, (1.0, 4.0), shown=kind == "llama3"),
        }
        pair = widgets.slider("position.pair_index", _("Pair of dimensions"), 0, n_pairs - 1, min(4, n_pairs - 1))
        position = widgets.slider("position.far", _("Position"), 0, _DRAWN * trained - 1, trained, step=1)
        st.caption(_("Model: {name}").format(name=name) + f" · d_head {d_head} · base {base:,.0f}")
        _tell_own(config.rope_scaling)
    plain = rope_frequencies(d_head, base)
    scaled = {key: rope_frequencies(d_head, base, scaling) for key, scaling in scalings.items()}
    titles = _titles()
    colours = {titles[key]: colour for key, colour in figures.COLOURS.items()} | {_("unscaled"): figures.PLAIN}
    with equation:
        page.equation(_equation(kind))
    with picture:
        st.markdown(_sentences()[kind])
        page.figure(
            figures.by_pair(
                {titles[key]: line / plain for key, line in scaled.items()},
                colours,
                titles[kind],
                pair,
                x_title=_("pair of dimensions, fast to slow"),
                y_title=_("frequency after ÷ before"),
                logarithmic=False,
            ),
            "position-scaling-kept",
            _(
                "The share of its frequency that each pair keeps, for each scaling: 1 is unchanged, 1/factor is "
                "fully stretched."
            ),
        )
    left, right = st.columns(2)
    with left:
        st.markdown("**" + _("Frequency of each pair, before and after") + "**")
        page.figure(
            figures.by_pair(
                {_("unscaled"): plain, titles[kind]: scaled[kind]},
                colours,
                titles[kind],
                pair,
                x_title=_("pair of dimensions, fast to slow"),
                y_title=_("θ (rad per token)"),
                logarithmic=True,
            ),
            "position-scaling-frequency",
            _("Rotation per position of every pair, before and after scaling, on a logarithmic scale."),
        )
    with right:
        st.markdown("**" + _("Angle of pair {pair} beyond the trained length").format(pair=pair) + "**")
        page.figure(
            figures.angles(
                {_("unscaled"): plain[pair].item(), titles[kind]: scaled[kind][pair].item()},
                colours,
                trained=trained,
                length=_DRAWN * trained,
                note=_("largest angle seen in training"),
                x_title=_("position (tokens)"),
                y_title=_("angle (rad)"),
            ),
            "position-scaling-angle",
            _(
                "Angle of the chosen pair against position, before and after scaling. The shaded part was seen in "
                "training."
            ),
        )
    _clocks(plain, scaled[kind], position, pair)
    _scores(name, plain, scaled[kind], scalings[kind], titles[kind], colours, trained)
    scaled_losses.show(scalings, titles)
    _table(plain, scaled, titles)
    page.snippet(CODE.format(d_head=d_head, base=base, scalings=tuple(scalings.values())))


def _titles() -> dict[str, str]:
    return {"linear": _("linear"), "ntk": _("NTK-aware"), "yarn": "YaRN", "llama3": "llama3"}


def _sentences() -> dict[str, str]:
    return {
        "linear": _("The frequency of every pair is divided by the factor, as if the positions were closer together."),
        "ntk": _(
            "The base grows: the fastest pair keeps its frequency, and the slowest is stretched by the whole factor."
        ),
        "yarn": _(
            "Pairs that make many turns within the trained length are left unchanged, pairs that make less "
            "than one turn are stretched, and between them there is a ramp. In addition, all scores are "
            "multiplied by (0.1 ln s + 1)²."
        ),
        "llama3": _(
            "Like YaRN, but the ramp is over the number of turns within the trained length, and the scores are "
            "not scaled."
        ),
    }


def _equation(kind: str) -> str:
    ramp = r"\theta_i' &= \gamma_i\,\theta_i + (1 - \gamma_i)\,\frac{\theta_i}{s} \\ \gamma_i &= "
    by_parts = r"\begin{aligned}%s\end{aligned}"
    return {
        "linear": r"\theta_i' = \frac{\theta_i}{s}",
        "ntk": r"\theta_i' = \left(b\,s^{\,d/(d-2)}\right)^{-2i/d}",
        "yarn": by_parts % (ramp + r"1 - \mathrm{clip}\!\left(\frac{i - i_{fast}}{i_{slow} - i_{fast}}, 0, 1\right)"),
        "llama3": by_parts % (ramp + r"\mathrm{clip}\!\left(\frac{L\,\theta_i / 2\pi - low}{high - low}, 0, 1\right)"),
    }[kind]


def _by_parts(kind: str, factor: float, trained: int, default: tuple[float, float], *, shown: bool) -> RopeScaling:
    """Return a scaling that treats fast and slow pairs apart; its two bounds are shown when it is the chosen one."""
    low, high = default
    if shown:
        low = widgets.slider(f"position.{kind}_low", _("Stretched below (turns)"), 0.25, 3.75, low, step=0.25)
        high = widgets.slider(f"position.{kind}_high", _("Unchanged above (turns)"), 4.0, 64.0, high, step=0.5)
    return RopeScaling(
        kind=kind,  # type: ignore[arg-type]  # one of the two
        factor=factor,
        low_frequency_factor=low,
        high_frequency_factor=high,
        original_context_length=trained,
    )


def _tell_own(own: RopeScaling | None) -> None:
    if own is None:
        st.caption(_("The model itself has no scaling: the lines start from its own frequencies."))
    else:
        st.caption(
            _(
                "The model itself is scaled: {kind}, factor {factor:g}. The lines start from its unscaled frequencies."
            ).format(kind=own.kind, factor=own.factor)
        )


def _clocks(plain: Tensor, scaled: Tensor, position: int, pair: int) -> None:
    n_pairs = len(plain)
    spread = sorted({0, n_pairs // 4, n_pairs // 2, n_pairs - 1, pair})
    st.markdown("**" + _("The hands at position {position}, before and after").format(position=position) + "**")
    for key, frequencies, alt in (
        ("before", plain, _("Clock hands of some pairs at the chosen position, unscaled.")),
        ("after", scaled, _("Clock hands of the same pairs at the same position, scaled: they turn more slowly.")),
    ):
        page.figure(
            sinusoidal.clocks(frequencies, position, spread, pair, _("pair")), f"position-scaling-clocks-{key}", alt
        )


def _scores(
    name: str,
    plain: Tensor,
    scaled: Tensor,
    scaling: RopeScaling,
    title: str,
    colours: dict[str, str],
    trained: int,
) -> None:
    st.subheader(_("The score against the distance"), anchor=False)
    differences = torch.arange(min(_DRAWN * trained, _MOST_POSITIONS))
    sharper = scaling.attention_factor**2
    common: dict[str, Any] = {
        "trained": trained,
        "note": _("beyond the trained length"),
        "x_title": _("query position − key position"),
    }
    ones, real = st.columns(2)
    with ones:
        st.markdown("**" + _("Two equal vectors, all pairs of the same length") + "**")
        page.figure(
            figures.over_distance(
                {
                    _("unscaled"): rope_decay(differences, plain),
                    title: rope_decay(differences, scaled) * sharper,
                },
                colours,
                y_title=_("score relative to distance 0"),
                **common,
            ),
            "position-scaling-decay",
            _("The score of two equal vectors against their distance, before and after scaling."),
        )
    with real:
        config = session.language_model(name).config
        tokens, ids = tokens_of(name)
        if not ids:
            st.info(_("Type a prompt above to see the score of a query and a key from it."))
            return
        layer = min(int(st.session_state.get("layer", 0)), config.n_layers - 1)
        head = min(int(st.session_state.get("head", 0)), config.n_heads - 1)
        if layer in config.unrotated_layers:
            st.info(unrotated(layer))
            return
        met = rope_meeting(session.trace(ids, name), config, layer, head, len(ids) - 1, 0)
        st.markdown(
            "**"
            + _("Query {query} and key {key} of this text, block {layer}, head {head}").format(
                query=markdown_literal(tokens[-1]), key=markdown_literal(tokens[0]), layer=layer, head=head
            )
            + "**"
        )
        lines = {
            _("unscaled"): met.score_of(met.by_difference(differences, frequencies=plain).sum(-1)),
            title: met.score_of(met.by_difference(differences, frequencies=scaled).sum(-1) * sharper),
        }
        page.figure(
            figures.over_distance(lines, colours, y_title=_("score"), **common),
            "position-scaling-real",
            _("The score of a real query and key against their distance, before and after scaling."),
        )


def _table(plain: Tensor, scaled: dict[str, Tensor], titles: dict[str, str]) -> None:
    frame = pd.DataFrame(
        {
            _("pair"): range(len(plain)),
            _("wavelength (tokens)"): (2 * math.pi / plain).numpy(),
            _("θ unscaled"): plain.numpy(),
            **{f"θ {titles[key]}": line.numpy() for key, line in scaled.items()},
        }
    )
    formats = {column: "%.8f" for column in frame.columns[2:]} | {_("wavelength (tokens)"): "%.2f"}
    page.numbers_table(frame, "position-scaling", formats)
