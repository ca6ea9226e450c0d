"""Attention: the patterns of all heads, and one query worked out number by number."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from lmcore import ModelConfig
from lmcore.analysis import QueryAttention
from pages.common import page
from pages.common.text import _, ngettext, visible
from pages.figures.blocks import attention as figures
from pages.figures.theme import fmt_logit, fmt_probability
from pages.live.attention_text import attention_text
from pages.stages.blocks.chosen import Chosen

MAX_KEYS = 40  # more than these are not drawn one by one


def equations(chosen: Chosen) -> tuple[str, ...]:
    """Return what one head computes, with this model's sizes."""
    config, length = chosen.config, len(chosen.labels)
    bias = "+ b" if config.position_encoding in ("alibi", "relative") else ""
    rotate = r"\mathrm{RoPE}" if config.position_encoding == "rope" else ""
    q, k = (rf"{rotate}({name})" if rotate else name for name in ("q", "k"))
    tall, wide = rf"[{length},\,{config.d_head}]", rf"[{config.d_head},\,{length}]"
    product = rf"\underset{{{tall}}}{{{q}}}\;\underset{{{wide}}}{{{k}^{{\top}}}}"
    scores = rf"\underset{{[{length},\,{length}]}}{{s}} = {_scaled(config, product)}{bias}"
    pattern = (
        rf"\underset{{[{length},\,{length}]}}{{\mathrm{{pattern}}}} = \mathrm{{softmax}}(\mathrm{{mask}}(s)) \\ "
        rf"\underset{{{tall}}}{{z}} = \mathrm{{pattern}}\;\underset{{{tall}}}{{v}}"
    )
    return (rf"\begin{{gathered}} {scores} \\ {pattern} \end{{gathered}}",)


def _scaled(config: ModelConfig, product: str) -> str:
    """Return a product as the model scales and caps it, in LaTeX."""
    if config.attention_scale is None:
        scaled = rf"\frac{{{product}}}{{\sqrt{{{config.d_head}}}}}"
    else:
        scaled = rf"{config.attention_scale:.4g}\cdot {product}"
    cap = config.attention_softcap
    return scaled if cap is None else rf"{cap:g}\tanh\!\left({scaled}\,/\,{cap:g}\right)"


def patterns(chosen: Chosen, weights: np.ndarray) -> None:
    """Show the text with the chosen query's arcs, the chosen head's pattern large, and those of all heads.

    Args:
        chosen: the block, the head and the query.
        weights: the block's pattern, [head, query, key].
    """
    attention_text(
        chosen.found.tokens,
        weights[chosen.head],
        chosen.position,
        key="attention-text",
        label=_("The text; arcs connect the query with the tokens it attends to"),
        on_select=lambda position: st.session_state.update({"position": position}),
    )
    st.caption(
        _("A wider arc means more attention from the outlined token. Rest the pointer on a token to see its own arcs.")
    )
    page.figure(
        figures.pattern(weights[chosen.head], chosen.labels, chosen.position, (_("Query"), _("Key"), _("Weight"))),
        "pattern",
        _(
            "Heat map of the attention weights of one head: each row is a query, each column a key. Later keys are "
            "grey."
        ),
        chooses=lambda cell: {"position": cell.row},
    )
    st.caption(_sharing(chosen.config, chosen.head))
    if chosen.config.n_heads > 1:
        page.figure(
            figures.all_patterns(weights, chosen.head, _("Head")),
            "patterns",
            _("The attention patterns of all heads of this block side by side; the chosen one is outlined."),
            chooses=lambda cell: {
                "head": cell.trace,
                **({"position": cell.row} if len(chosen.labels) <= figures.MAX_THUMBNAIL else {}),
            },
        )
        if len(chosen.labels) > figures.MAX_THUMBNAIL:
            st.caption(_("Each cell of a small picture is the largest weight in a patch of the pattern."))
    page.downloads("pattern", lambda: pattern_rows(weights[chosen.head], chosen.found.tokens))


def pattern_rows(weights: np.ndarray, tokens: Sequence[bytes]) -> pd.DataFrame:
    """Return a head's pattern [query, key] as rows, those of the future left out."""
    query, key = np.tril_indices(len(tokens))
    shown = np.array([visible(token) for token in tokens])
    columns = {"query": query, "key": key, "query token": shown[query], "key token": shown[key]}
    return pd.DataFrame({**columns, "weight": weights[query, key]})


def one_query(chosen: Chosen, step: QueryAttention) -> None:
    """Show step by step how the chosen query's attention comes about."""
    kept = _keys_to_draw(step)
    labels = [chosen.labels[key] for key in kept]
    if len(kept) < len(step.weights):
        rest = (step.weights.sum() - step.weights[kept].sum()).item()
        st.caption(
            _(
                "The {n} keys with the largest weights are drawn; the others together have {rest}. The table lists all."
            ).format(n=len(kept), rest=fmt_probability(max(rest, 0.0)))
        )
    st.markdown(_("**1 · q and k.** The query vector, and below it the key of every token."))
    page.figure(
        figures.vectors(
            [step.q.numpy(), *step.k[kept].numpy()],
            [f"q:{chosen.labels[chosen.position]}", *(f"k:{label}" for label in labels)],
            "d_head",
            _("Value"),
            marked=0,
        ),
        "query-keys",
        _("Heat map: the query vector at the top, the key vectors below it."),
        chooses=lambda cell: {"position": kept[cell.row - 1]} if cell.row else {},
    )
    st.markdown(
        _(
            "**2 · Scores, mask, softmax.** q·k divided by the square root of d_head. Keys at later positions "
            "are masked (grey) and get weight 0. Softmax turns the scores into weights that sum to 1."
        )
    )
    if step.sink is not None:
        share = fmt_probability(max(1 - step.weights.sum().item(), 0.0))
        st.caption(
            _(
                "This head has an attention sink with the score {score}. It takes {share} of the softmax and stands "
                "for no token; the weights sum to the rest."
            ).format(score=fmt_logit(step.sink), share=share)
        )
    page.figure(
        figures.scores_to_weights(
            step.scores[kept].numpy(),
            step.weights[kept].numpy(),
            (~step.visible[kept]).tolist(),
            labels,
            (_("Score"), _("Weight")),
        ),
        "scores-weights",
        _("Two bar charts side by side: the score of every key, and its weight after the mask and softmax."),
    )
    _worked_equation(step, chosen)
    st.markdown(
        _(
            "**3 · Weighted values.** Each token's v is multiplied by its weight. Their sum is z, the output of this "
            "head."
        )
    )
    page.figure(
        figures.vectors(
            [*step.weighted_values[kept].numpy(), step.z.numpy()],
            [*(f"v:{label}" for label in labels), "z"],
            "d_head",
            _("Value"),
            marked=len(kept),
        ),
        "weighted-values",
        _("Heat map: a row for each token's weighted value; z, their sum, is at the bottom."),
        chooses=lambda cell: {"position": kept[cell.row]} if cell.row < len(kept) else {},
    )


def query_table(chosen: Chosen, step: QueryAttention) -> None:
    """Show the numbers of the chosen query's attention, a row a key."""
    numbers = ("q·k", _scaled_title(chosen.config), "bias", "score", "‖v‖", "weight·‖v‖")
    page.numbers_table(_table(step, chosen), "attention", {"weight": "probability", **dict.fromkeys(numbers, "number")})


def _scaled_title(config: ModelConfig) -> str:
    scaled = "q·k/√d_head" if config.attention_scale is None else f"{config.attention_scale:.4g}·q·k"
    return scaled if config.attention_softcap is None else _("{scaled}, capped").format(scaled=scaled)


def _table(step: QueryAttention, chosen: Chosen) -> pd.DataFrame:
    columns: dict[str, object] = {
        _("Key"): range(len(step.weights)),
        _("Token"): [visible(token) for token in chosen.found.tokens],
        "q·k": step.products.numpy(),
        _scaled_title(chosen.config): step.scaled.numpy(),
    }
    if step.bias is not None:
        columns |= {"bias": step.bias.numpy(), "score": step.scores.numpy()}
    columns |= {
        _("Masked"): (~step.visible).numpy(),
        "weight": step.weights.masked_fill(~step.visible, float("nan")).numpy(),
        "‖v‖": step.v.norm(dim=-1).numpy(),
        "weight·‖v‖": step.weighted_values.norm(dim=-1).masked_fill(~step.visible, float("nan")).numpy(),
    }
    return pd.DataFrame(columns)


def _worked_equation(step: QueryAttention, chosen: Chosen) -> None:
    key, query = int(step.weights.argmax()), chosen.position
    bias = "" if step.bias is None else f" + ({step.bias[key]:.3f})"
    total = step.scores[step.visible].exp().sum().item() + (0.0 if step.sink is None else math.exp(step.sink))
    sink = "" if step.sink is None else rf" + e^{{{step.sink:.3f}}}"
    symbols, numbers = rf"q_{{{query}}}\cdot k_{{{key}}}", f"{step.products[key]:.3f}"
    st.latex(
        rf"{_scaled(chosen.config, symbols)}{'+b' if bias else ''} = "
        rf"{_scaled(chosen.config, numbers)}{bias} = {step.scores[key]:.3f},\qquad "
        rf"\frac{{e^{{{step.scores[key]:.3f}}}}}{{\sum_{{j\le {query}}} e^{{s_j}}{sink}}} = "
        rf"\frac{{{step.scores[key].exp():.4g}}}{{{total:.4g}}} = {100 * step.weights[key]:.2f}\,\%"
    )
    shown = _("Position {query} gives its largest weight, {weight}, to position {key} (score {score}).")
    st.caption(
        shown.format(
            query=query,
            weight=fmt_probability(step.weights[key].item()),
            key=key,
            score=fmt_logit(step.scores[key].item()),
        )
    )


def _keys_to_draw(step: QueryAttention) -> list[int]:
    heaviest = step.weights.argsort(descending=True, stable=True)[:MAX_KEYS]
    return sorted(heaviest.tolist())


def _sharing(config: ModelConfig, head: int) -> str:
    """Say from the config how the heads share keys and values."""
    if config.n_kv_heads == config.n_heads:
        said = ngettext(
            "Multi-head attention (MHA): {n} head with its own q, k and v.",
            "Multi-head attention (MHA): {n} heads, each with its own q, k and v.",
            config.n_heads,
        )
        return said.format(n=config.n_heads)
    group = config.n_heads // config.n_kv_heads
    kv_head = head // group
    if config.n_kv_heads == 1:
        return _("Multi-query attention (MQA): all {n} heads share one k and v.").format(n=config.n_heads)
    return _(
        "Grouped-query attention (GQA): {n} heads share {kv} pairs of k and v; "
        "heads {first} to {last} read number {used}."
    ).format(
        n=config.n_heads, kv=config.n_kv_heads, first=kv_head * group, last=kv_head * group + group - 1, used=kv_head
    )


def snippet(chosen: Chosen) -> str:
    """Return the code for this section."""
    return chosen.snippet(
        f'pattern = trace["blocks.{chosen.layer}.attn.pattern"][{chosen.head}]    # [query, key]\n'
        "step = lmcore.analysis.attention_of_query(\n"
        f"    trace, lm.config, block={chosen.layer}, head={chosen.head}, position={chosen.position}\n)\n"
        "print(step.scores, step.weights, step.z)"
    )
