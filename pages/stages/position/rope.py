"""RoPE on real queries and keys: pairs turned by position, scores that depend on the difference only."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch

from lmcore.analysis.position_measures import pairs_of, rope_scores_by_difference, wavelengths
from lmcore.position import make_rotation, rope_frequencies
from pages.common import page, session, widgets
from pages.common.text import _, markdown_literal
from pages.figures.position import rope as figures
from pages.stages.position.common import model_with, tokens_of

_SHIFTS = (0, 1, 10, 100, 1000)

CODE = """
import torch
import lmcore
from lmcore.position import make_rotation, rope_frequencies
from lmcore.analysis.position_measures import rope_scores_by_difference

lm = lmcore.load({name!r})
trace = lmcore.Trace()
lm(lm.tokenizer.encode({prompt!r}).ids, trace=trace)
q, k = trace["blocks.{layer}.attn.q"][{head}, {query}], trace["blocks.{layer}.attn.k"][{kv_head}, {key}]
frequencies = rope_frequencies({d_head}, lm.config.rope_base)
for shift in {shifts}:
    turn = make_rotation(torch.tensor([{query} + shift, {key} + shift]), frequencies, lm.config.rope_layout)
    a, b = turn(torch.stack([q, k]))
    print(shift, (a @ b).item() / {d_head} ** 0.5)
difference = torch.tensor([{query} - {key}])
print(rope_scores_by_difference(q, k, difference, frequencies, lm.config.rope_layout).sum().item())
print(trace["blocks.{layer}.attn.scores"][{head}, {query}, {key}].item())     # what the model used
"""


def show() -> None:
    """Draw the view."""
    session.require_tokens()
    name = model_with("rope")
    lm = session.language_model(name)
    config = lm.config
    tokens, ids = tokens_of(name)
    n_pairs = config.d_head // 2
    page.equation(
        r"\begin{pmatrix} a' \\ b' \end{pmatrix} = "
        r"\begin{pmatrix} \cos m\theta_i & -\sin m\theta_i \\ \sin m\theta_i & \cos m\theta_i \end{pmatrix}"
        r"\begin{pmatrix} a \\ b \end{pmatrix}, \qquad "
        rf"\theta_i = {config.rope_base:.0f}^{{-2i/{config.d_head}}}, \quad i = 0 \ldots {n_pairs - 1}"
    )
    controls, picture = page.workbench()
    with controls:
        query = min(widgets.position_picker(label=_("Query: choose a token")), len(ids) - 1)
        key = widgets.slider("position.key", _("Key position"), 0, query, 0)
        layer = widgets.slider("layer", _("Block"), 0, config.n_layers - 1, 0)
        head = widgets.slider("head", _("Head"), 0, config.n_heads - 1, 0)
        pair = widgets.slider("position.pair_index", _("Pair of dimensions"), 0, n_pairs - 1, min(4, n_pairs - 1))
        st.caption(_("Model: {name}").format(name=name))
    kv_head = head * config.n_kv_heads // config.n_heads
    trace = session.trace(ids, name)
    q, k = trace[f"blocks.{layer}.attn.q"][head, query], trace[f"blocks.{layer}.attn.k"][kv_head, key]
    q_turned = trace[f"blocks.{layer}.attn.q_rotated"][head, query]
    k_turned = trace[f"blocks.{layer}.attn.k_rotated"][kv_head, key]
    layout = config.rope_layout
    query_pairs, key_pairs = (
        (pairs_of(before, layout), pairs_of(after, layout)) for before, after in ((q, q_turned), (k, k_turned))
    )
    frequencies = rope_frequencies(config.d_head, config.rope_base, config.rope_scaling)
    with picture:
        st.markdown(
            _(
                "Query {query} at position {m} and key {key} at position {n}: each pair turns by position × θ, its "
                "length kept. Each plane has its own scale; v is not turned."
            ).format(query=markdown_literal(tokens[query]), m=query, key=markdown_literal(tokens[key]), n=key)
        )
        page.figure(
            figures.pair_planes(
                query_pairs, key_pairs, pair, names=(_("q before"), _("q turned"), _("k before"), _("k turned"))
            ),
            "position-rope-pairs",
            _("Each pair of the query and of the key as an arrow before and after its rotation, one plane a pair."),
        )
    st.subheader(_("The score depends on the difference of positions only"), anchor=False)
    plane, curve = st.columns([1, 2])
    with plane:
        page.figure(
            figures.pair_plane(
                tuple(pairs[pair] for pairs in query_pairs),
                tuple(pairs[pair] for pairs in key_pairs),
                names=(_("q before"), _("q turned"), _("k before"), _("k turned")),
            ),
            "position-rope-pair",
            _("The chosen pair of query and key, before and after they are turned."),
        )
    with curve:
        _tell_difference(q, k, query - key, pair, frequencies, layout)
    scores = _shifted(q, k, query, key, frequencies, layout)
    st.markdown(
        _("Both positions moved by the same amount: the score stays. The model's own score here is {score}.").format(
            score=f"**{trace[f'blocks.{layer}.attn.scores'][head, query, key].item():.5f}**"
        )
    )
    page.numbers_table(
        pd.DataFrame(
            {
                _("query position"): [query + shift for shift in _SHIFTS],
                _("key position"): [key + shift for shift in _SHIFTS],
                _("score q·k / √d_head"): scores,
            }
        ),
        "position-rope-shift",
        {_("score q·k / √d_head"): "%.5f"},
    )
    _tell_layouts(q, k, query, key, frequencies, layout)
    _pairs_table(q, k, query - key, frequencies, layout, wavelengths(config.d_head, config.rope_base))
    page.snippet(
        CODE.format(
            name=name, prompt=session.prompt(), layer=layer, head=head, kv_head=kv_head, query=query, key=key,
            d_head=config.d_head, shifts=_SHIFTS,
        )
    )  # fmt: skip


def _tell_difference(
    q: torch.Tensor, k: torch.Tensor, here: int, pair: int, frequencies: torch.Tensor, layout: str
) -> None:
    differences = torch.arange(0, max(128, here + 1))
    parts = rope_scores_by_difference(q, k, differences, frequencies, layout)
    page.figure(
        figures.score_by_difference(
            differences,
            parts.sum(-1),
            parts[:, pair],
            here,
            names=(_("score of this q and k"), _("share of pair {pair}").format(pair=pair)),
            titles=(_("query position − key position"), _("score")),
        ),
        "position-rope-difference",
        _("The score these two vectors would have at every difference of positions; the circle is this text."),
    )


def _shifted(
    q: torch.Tensor, k: torch.Tensor, query: int, key: int, frequencies: torch.Tensor, layout: str
) -> list[float]:
    scores = []
    for shift in _SHIFTS:
        turn = make_rotation(torch.tensor([query + shift, key + shift]), frequencies, layout)
        a, b = turn(torch.stack([q, k]))
        scores.append((a @ b).item() / len(q) ** 0.5)
    return scores


def _tell_layouts(
    q: torch.Tensor, k: torch.Tensor, query: int, key: int, frequencies: torch.Tensor, layout: str
) -> None:
    st.subheader(_("Two layouts of the pairs"), anchor=False)
    names = {"half_split": _("half-split"), "interleaved": _("interleaved")}
    other = "interleaved" if layout == "half_split" else "half_split"
    difference = torch.tensor([query - key])

    def score(a: torch.Tensor, b: torch.Tensor, chosen: str) -> str:
        return f"{rope_scores_by_difference(a, b, difference, frequencies, chosen).sum().item():.5f}"

    moved = [_as_other_layout(x, layout) for x in (q, k)]
    st.markdown(
        _(
            "Which two components form a pair is a convention of the weights file. Read with this model's layout "
            "({own}) the score is {right}; read with the other one, {wrong}; with the other one and the components "
            "moved to its places, {again}."
        ).format(
            own=names[layout],
            right=f"**{score(q, k, layout)}**",
            wrong=f"**{score(q, k, other)}**",
            again=f"**{score(*moved, other)}**",
        )
    )
    page.figure(
        figures.layout_strip(len(q), names=names, component=_("component of q or k"), pair=_("pair")),
        "position-rope-layouts",
        _("Which components form a pair, in the half-split and in the interleaved layout."),
    )


def _as_other_layout(x: torch.Tensor, layout: str) -> torch.Tensor:
    pairs = pairs_of(x, layout)
    return pairs.flatten() if layout == "half_split" else pairs.T.flatten()


def _pairs_table(
    q: torch.Tensor, k: torch.Tensor, here: int, frequencies: torch.Tensor, layout: str, lengths: torch.Tensor
) -> None:
    shares = rope_scores_by_difference(q, k, torch.tensor([here]), frequencies, layout)[0]
    page.numbers_table(
        pd.DataFrame(
            {
                _("pair"): range(len(frequencies)),
                _("θ (rad per token)"): frequencies.numpy(),
                _("wavelength (tokens)"): lengths.numpy(),
                _("|q| of the pair"): pairs_of(q, layout).norm(dim=-1).numpy(),
                _("|k| of the pair"): pairs_of(k, layout).norm(dim=-1).numpy(),
                _("share of the score"): shares.numpy(),
            }
        ),
        "position-rope-pairs",
        {
            _("θ (rad per token)"): "%.6f", _("wavelength (tokens)"): "%.2f", _("|q| of the pair"): "%.4f",
            _("|k| of the pair"): "%.4f", _("share of the score"): "%.5f",
        },
    )  # fmt: skip
