"""All encodings side by side: what each does to a score, by query and key and by distance; where it enters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

import lmcore
from lmcore.analysis.position.measures import rope_decay, similarity, wavelengths
from lmcore.position import alibi_slopes, query_key_distance, relative_bucket, rope_frequencies, sinusoidal_table
from pages.common import page, session, widgets
from pages.common.text import _
from pages.figures.position import encodings as figures
from pages.figures.position import scaling as scaling_figures
from pages.stages.position.common import built_in_models

CODE = """
import torch
import lmcore
from lmcore.analysis.position.measures import rope_decay, similarity
from lmcore.position import alibi_slopes, relative_bucket, rope_frequencies, sinusoidal_table

query = {query}
distance = torch.arange(query + 1)
print("sinusoidal", similarity(sinusoidal_table({length}, {d_model}, {base}))[query, : query + 1].flip(0))
learned = lmcore.load({learned!r}).model.position.get_parameter("weight").detach()[:{length}]
print("learned   ", similarity(learned)[query, : query + 1].flip(0))
print("rope      ", rope_decay(distance, rope_frequencies({d_rope}, {base})))
print("alibi     ", -alibi_slopes({n_heads})[{head}] * distance)
lm = lmcore.load({relative!r})
buckets = relative_bucket(distance, lm.config.relative_buckets, lm.config.relative_max_distance)
print("relative  ", lm.model.position.get_parameter("weight").detach()[buckets, {head}])
"""


@dataclass(frozen=True)
class Effect:
    """What an encoding does to the score of a query and a key.

    Attributes:
        title: its name on screen.
        told: what the number is.
        square: [query, key].
    """

    title: str
    told: str
    square: Tensor


def show() -> None:
    """Draw the view."""
    names = built_in_models()
    n_heads = lmcore.builtin.configs()[names["alibi"]].n_heads
    longest = lmcore.builtin.configs()[names["learned"]].context_length
    controls, picture = page.workbench()
    with controls:
        d_model = widgets.slider("position.d_model", "d_model", 2, 256, 128)
        base = float(widgets.select("position.base", _("Base"), [100, 1_000, 10_000, 100_000, 1_000_000], 10_000))
        length = widgets.slider("position.compared", _("Positions shown"), 8, longest, 64, step=8)
        head = widgets.slider("head", _("Head"), 0, n_heads - 1, 0)
        query = widgets.slider("position.query", _("Query position"), 1, length - 1, length - 1)
        if d_model % 2:
            st.caption(
                _(
                    "{d} is odd: the last sine has no cosine to pair with. RoPE rotates pairs and needs an "
                    "even number; it is drawn with {even}."
                ).format(d=d_model, even=d_model - 1 or 2)
            )
    d_rope = max(d_model - d_model % 2, 2)
    effects = _effects(names, length, d_model, d_rope, base, head)
    with picture:
        for encoding, effect in _in_threes(effects):
            st.markdown(f"**{effect.title}**  \n:small[{effect.told}]")
            page.figure(
                figures.effect(effect.square.numpy(), query, row_title=_("query"), column_title=_("key")),
                f"position-compare-{encoding}",
                _("The effect of the encoding on the score of every query and key."),
                said=False,
                chooses=lambda cell: {"position.query": max(cell.row, 1)},
            )
        st.markdown(
            _(
                "Each square shows the effect of the encoding alone on the score of a query (row) and a key "
                "(column): blue below 0, orange above, later positions empty. The lines below show the same "
                "value against the distance, for the outlined query; a click on a square chooses another. Where "
                "every diagonal has one colour, only the distance matters."
            )
        )
    for encoding, effect in _in_threes(effects):
        st.markdown(f"**{effect.title}**")
        page.figure(
            figures.small_line(
                effect.square[query, : query + 1].flip(0),
                colour=figures.COLOURS[encoding],
                x_title=_("distance (tokens)"),
            ),
            f"position-compare-{encoding}-distance",
            _("The same value against the distance between query and key, for the outlined query."),
            said=False,
        )
    page.numbers_table(_properties(d_model, n_heads), "position-compare")
    st.markdown("**" + _("Wavelength of each pair: sinusoidal and RoPE share the formula, but not the width") + "**")
    d_head = lmcore.builtin.configs()[names["rope"]].d_head
    sizes = {f"sinusoidal, d_model {d_model}": d_model, f"RoPE, d_head {d_head}": d_head}
    page.figure(
        scaling_figures.by_pair(
            {title: wavelengths(d, base) for title, d in sizes.items()},
            dict(zip(sizes, (figures.COLOURS["sinusoidal"], figures.COLOURS["rope"]), strict=True)),
            "",
            None,
            x_title=_("pair of dimensions, fast to slow"),
            y_title=_("wavelength (tokens)"),
            logarithmic=True,
        ),
        "position-compare-wavelengths",
        _("Wavelength of every pair of dimensions of the sinusoidal table and of RoPE."),
    )
    page.snippet(
        CODE.format(
            length=length,
            d_model=d_model,
            d_rope=d_rope,
            base=base,
            n_heads=n_heads,
            head=head,
            query=query,
            learned=names["learned"],
            relative=names["relative"],
        )
    )


def _effects(
    names: dict[str, str], length: int, d_model: int, d_rope: int, base: float, head: int
) -> list[tuple[str, Effect]]:
    distance = query_key_distance(0, length)
    relative = session.language_model(names["relative"])
    config = relative.config
    buckets = relative_bucket(distance, config.relative_buckets, config.relative_max_distance)
    learned = session.language_model(names["learned"]).model.position.get_parameter("weight").detach()[:length]
    slope = alibi_slopes(lmcore.builtin.configs()[names["alibi"]].n_heads)[head]
    return [
        (
            "sinusoidal",
            Effect(
                _("Sinusoidal"), _("PE · PE, added to the vectors"), similarity(sinusoidal_table(length, d_model, base))
            ),
        ),
        ("learned", Effect(_("Learned"), _("P · P, added to the vectors"), similarity(learned))),
        (
            "rope",
            Effect(
                "RoPE", _("equal q and k, relative score"), rope_decay(distance, rope_frequencies(d_rope, base)).float()
            ),
        ),
        ("alibi", Effect("ALiBi", _("added to the score"), -slope * distance)),
        (
            "relative",
            Effect(
                _("Relative bias"),
                _("learned, added to the score"),
                relative.model.position.get_parameter("weight").detach()[buckets, head],
            ),
        ),
        ("none", Effect(_("None"), _("none: all positions are alike"), torch.zeros(length, length))),
    ]


def _in_threes(effects: list[tuple[str, Effect]]) -> Iterator[tuple[str, Effect]]:
    """Yield the effects, each to be drawn in its column of a row of three."""
    for start in range(0, len(effects), 3):
        for column, effect in zip(st.columns(3), effects[start : start + 3], strict=True):
            with column:
                yield effect


def _properties(d_model: int, n_heads: int) -> pd.DataFrame:
    """Return how the encodings differ, with the sizes of the built-in models."""
    configs = lmcore.builtin.configs()
    names = built_in_models()
    learned, relative = configs[names["learned"]], configs[names["relative"]]
    none, everywhere = _("no limit"), _("each block")
    rows: list[tuple[str, str, str, int, str]] = [
        (_("Sinusoidal"), _("added to the token vectors"), f"[S, {d_model}]", 0, none),
        (
            _("Learned"),
            _("added to the token vectors"),
            f"[S, {learned.d_model}]",
            learned.context_length * learned.d_model,
            _("{n} positions").format(n=learned.context_length),
        ),
        ("RoPE", _("rotates q and k") + ", " + everywhere, "[H, S, d_head]", 0, none),
        ("ALiBi", _("added to the scores") + ", " + everywhere, f"[{n_heads}, S, S]", 0, none),
        (
            _("Relative bias"),
            _("added to the scores") + ", " + everywhere,
            f"[{relative.n_heads}, S, S]",
            relative.relative_buckets * relative.n_heads,
            none,
        ),
        (_("None"), _("only the causal mask"), "—", 0, none),
    ]
    columns = (_("encoding"), _("where it is applied"), _("shape"), _("learned parameters"), _("last position"))
    return pd.DataFrame(rows, columns=list(columns))
