"""Encodings that act on the attention scores: ALiBi's fixed slopes and T5's learned bias by distance bucket."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch

from lmcore.analysis.position.measures import without_score_bias
from lmcore.position import alibi_slopes, relative_bucket
from pages.common import link, page, session, widgets
from pages.common.text import _, markdown_literal, visible
from pages.figures import theme
from pages.figures.position import comparison
from pages.live.cells import HeatMapCell
from pages.stages.position.common import model_with, tokens_of

_MOST_NAMED = 12  # lines with a name beside the picture
_MOST_TOKENS = 64  # five matrices of more would be slow to draw

ALIBI_CODE = """
from lmcore.position import alibi_slopes

print(alibi_slopes({n_heads}))
"""
RELATIVE_CODE = """
import torch
import lmcore
from lmcore.position import relative_bucket

lm = lmcore.load({name!r})
buckets = relative_bucket(torch.arange({length}), {n_buckets}, {max_distance})
print(buckets)
own = relative_bucket(torch.arange({length}), lm.config.relative_buckets, lm.config.relative_max_distance)
print(lm.model.position.get_parameter("weight").detach()[own, {head}])     # the learned bias at each distance
"""
TEXT_CODE = """
import lmcore
from lmcore.analysis.position.measures import without_score_bias

lm = lmcore.load({name!r})
trace = lmcore.Trace()
lm(lm.tokenizer.encode({prompt!r}).ids, trace=trace)
scores, pattern = without_score_bias(trace, {layer})           # [head, query, key]
print(scores[{head}, -1], trace["position_bias"][{head}, -1])
print(pattern[{head}, -1], trace["blocks.{layer}.attn.pattern"][{head}, -1])
"""


def show_alibi() -> None:
    """Draw ALiBi."""
    name = model_with("alibi")
    own = session.language_model(name).config.n_heads
    controls, picture = page.workbench()
    with controls:
        n_heads = widgets.slider("position.n_heads", _("Number of heads"), 1, 32, own)
        length = widgets.slider("position.length", _("Positions shown"), 8, 512, 128, step=8)
        power = n_heads & (n_heads - 1) == 0
        st.caption(
            _("{n} is a power of two: one falling sequence of slopes.").format(n=n_heads)
            if power
            else _(
                "{n} is not a power of two: first come the slopes of the next lower power, then every other "
                "slope of the next higher power."
            ).format(n=n_heads)
        )
    slopes = alibi_slopes(n_heads)
    distance = torch.arange(length)
    with picture:
        chart = theme.lines(
            distance,
            {
                _("head {h}: slope {slope:.6g}").format(h=head, slope=slope): -slope * distance
                for head, slope in enumerate(slopes.tolist())
            },
            x_title=_("distance query − key (tokens)"),
            y_title=_("added to the score"),
            height=420,
        )
        chart.update_layout(showlegend=n_heads <= _MOST_NAMED)
        page.figure(
            chart,
            "position-alibi",
            _("What ALiBi adds to the score at each distance: a straight line for each head, some steep, some flat."),
        )
        page.equation(r"s_{hqk} = \frac{q\cdot k}{\sqrt{d_{head}}} - m_h\,(q - k)")
    page.figure(
        comparison.slopes(
            slopes,
            1 << (n_heads.bit_length() - 1),
            names=(_("the next lower power of two"), _("every other slope of the next higher")),
            x_title=_("head"),
            y_title=_("slope m"),
        ),
        "position-alibi-slopes",
        _(
            "The slope of every head on a logarithmic scale. Slopes from the next higher power of two have another "
            "colour."
        ),
    )
    page.numbers_table(
        pd.DataFrame({_("head"): range(n_heads), _("slope"): slopes.numpy()}), "position-alibi", {_("slope"): "%.8f"}
    )
    code = ALIBI_CODE.format(n_heads=n_heads)
    page.snippet(code + _on_this_text(name))


def show_relative() -> None:
    """Draw T5's relative bias."""
    name = model_with("relative")
    lm = session.language_model(name)
    config = lm.config
    controls, picture = page.workbench()
    with controls:
        n_buckets = widgets.slider("position.buckets", _("Buckets"), 2, 64, config.relative_buckets)
        max_distance = widgets.slider(
            "position.max_distance", _("Largest distance distinguished"), 8, 512, config.relative_max_distance, step=8
        )
        length = widgets.slider("position.length", _("Positions shown"), 8, 512, 128, step=8)
        st.caption(_("Model of the learned bias: {name}").format(name=name))
    distance = torch.arange(length)
    buckets = relative_bucket(distance, n_buckets, max_distance)
    own = relative_bucket(distance, config.relative_buckets, config.relative_max_distance)
    learned = lm.model.position.get_parameter("weight").detach()[own]  # [distance, head]
    with picture:
        for key, series, title, alt in (
            (
                "position-buckets",
                {_("bucket"): buckets},
                _("bucket"),
                _(
                    "The bucket of each distance: one bucket for each small distance, and wider buckets for larger "
                    "distances."
                ),
            ),
            (
                "position-relative",
                {_("head {h}").format(h=head): learned[:, head] for head in range(config.n_heads)},
                _("learned, added to the score"),
                _("The bias that each head has learned for every distance."),
            ),
        ):
            chart = theme.lines(distance, series, x_title=_("distance query − key (tokens)"), y_title=title, height=330)
            chart.update_traces(line_shape="hv")  # a bucket is one number for several distances
            page.figure(chart, key, alt)
        page.equation(
            r"\begin{gathered} s_{hqk} = \frac{q\cdot k}{\sqrt{d_{head}}} + b_h[\mathrm{bucket}(q - k)] \\ "
            rf"b \in \mathbb{{R}}^{{{config.relative_buckets} \times {config.n_heads}}} \end{{gathered}}"
        )
    head = st.session_state.get("head", 0)
    page.numbers_table(
        pd.DataFrame(
            {
                _("distance"): distance.numpy(),
                _("bucket"): buckets.numpy(),
                _("this model's bucket"): own.numpy(),
                **{_("head {h}").format(h=h): learned[:, h].numpy() for h in range(config.n_heads)},
            }
        ),
        "position-relative",
        {_("head {h}").format(h=h): "%.5f" for h in range(config.n_heads)},
    )
    code = RELATIVE_CODE.format(
        name=name, length=length, n_buckets=n_buckets, max_distance=max_distance, head=min(head, config.n_heads - 1)
    )
    page.snippet(code + _on_this_text(name))


def _on_this_text(name: str) -> str:
    """Show the bias on the prompt's real scores and return the lines of Python for it."""
    st.subheader(_("On the scores of this text"), anchor=False)
    config = session.language_model(name).config
    tokens, ids = tokens_of(name)
    if not ids:
        st.info(_("Type a prompt above to see its scores with and without the bias."))
        return ""
    if len(ids) > _MOST_TOKENS:
        st.caption(_("The first {n} of {total} tokens are drawn.").format(n=_MOST_TOKENS, total=len(ids)))
    tokens, ids = tokens[:_MOST_TOKENS], ids[:_MOST_TOKENS]
    left, right = st.columns(2)
    with left:
        layer = widgets.slider("layer", _("Block"), 0, config.n_layers - 1, 0)
    with right:
        head = widgets.slider("head", _("Head"), 0, config.n_heads - 1, 0)
    query, key = _chosen_pair(len(ids))
    trace = session.trace(ids, name)
    scores, alone = without_score_bias(trace, layer)
    biased, pattern = trace[f"blocks.{layer}.attn.scores"], trace[f"blocks.{layer}.attn.pattern"]
    bias = trace["position_bias"]
    labels = [f"{index} · {visible(token)}" for index, token in enumerate(tokens)]
    parts = {"q·k / √d_head": scores, _("+ bias"): bias, _("= score"): biased}
    limit = max(values[head].tril().abs().max().item() for values in parts.values()) or None
    for number, (column, (title, values)) in enumerate(zip(st.columns([4, 3, 3]), parts.items(), strict=True)):
        with column:
            st.markdown(f"**{title}**")
            chart = comparison.scores(values[head], labels, probability=False, limit=limit, named=number == 0)
            theme.outline_cells(chart, (query, query), (key, key))
            page.figure(chart, f"position-bias-{number}", title, said=False, chooses=_choose)
    patterns = {_("softmax without the bias"): alone, _("softmax with the bias"): pattern}
    for number, (column, (title, values)) in enumerate(zip(st.columns(2), patterns.items(), strict=True)):
        with column:
            st.markdown(f"**{title}**")
            chart = comparison.scores(values[head], labels, probability=True, limit=None)
            theme.outline_cells(chart, (query, query), (key, key))
            page.figure(chart, f"position-pattern-{number}", title, said=False, chooses=_choose)
    st.markdown(
        _(
            "Query {query} at position {m}, key {key} at position {n}: the score {score} and the bias {bias} give "
            "{biased}; the weight goes from {before} to {after}. Click a cell to choose another query and key."
        ).format(
            query=markdown_literal(tokens[query]),
            m=query,
            key=markdown_literal(tokens[key]),
            n=key,
            score=theme.fmt_logit(scores[head, query, key].item()),
            bias=theme.fmt_logit(bias[head, query, key].item()),
            biased=theme.fmt_logit(biased[head, query, key].item()),
            before=theme.fmt_probability(alone[head, query, key].item()),
            after=theme.fmt_probability(pattern[head, query, key].item()),
        )
    )
    st.caption(_("Model: {name}, on the prompt above.").format(name=name))
    return TEXT_CODE.format(name=name, prompt=session.prompt(), layer=layer, head=head)


def _chosen_pair(length: int) -> tuple[int, int]:
    """Return the query and the key chosen on another view or by a click, or the last query and the first key."""
    query = link.remember("position", None, int)
    query = length - 1 if query is None else min(max(query, 0), length - 1)
    return query, min(max(link.remember("position.key", 0, int), 0), query)


def _choose(cell: HeatMapCell) -> dict[str, int]:
    return {"position": cell.row, "position.key": cell.column} if cell.column <= cell.row else {}
