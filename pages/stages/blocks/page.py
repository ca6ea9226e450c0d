"""Transformer blocks: the model opened down to a head, a query, a unit, a number."""

from __future__ import annotations

import streamlit as st

from lmcore import Encoding, LanguageModel
from lmcore.analysis import attention_of_query, residual_stream
from pages.common import link, page, session, widgets
from pages.common.text import _
from pages.live.model_map import model_map
from pages.stages.blocks import attention, experts, interventions, mlp, residual, tensors
from pages.stages.blocks.chosen import Chosen
from pages.stages.blocks.diagram import OF_A_HEAD, diagram, shape_line
from pages.stages.embedding import sentences

VIEWS = ("attention", "query", "residual", "mlp", "interventions", "experts", "context", "tensors")


def choose(key: str, value: int | str) -> None:
    """Take what was clicked in the diagram."""
    link.take_over("blocks.view")
    link.assign({"blocks.view" if key == "view" else key: value})
    if key == "head" and st.session_state["blocks.view"] not in OF_A_HEAD:
        link.assign({"blocks.view": "attention"})


def current_position(length: int) -> int:
    """Return the position chosen so far, the last one to begin with."""
    position = link.remember("position", None, int)
    return length - 1 if position is None else min(max(position, 0), length - 1)


def show_pass(lm: LanguageModel, found: Encoding, view: str) -> None:
    """Show a view of the traced pass, its controls beside it, the diagram and the equations below."""
    trace, length = session.trace(), len(found.ids)
    controls, picture = page.workbench()
    map_place, explanation = st.container(), st.container()
    with controls:
        layer = widgets.layer_picker()
        head = widgets.head_picker() if view in OF_A_HEAD else 0
        if view in OF_A_HEAD:
            pattern = trace[f"blocks.{layer}.attn.pattern"]
            position = widgets.position_picker(
                label=_("Query: choose a token. The darker a token, the more this query attends to it."),
                strength=pattern[head, current_position(length)].tolist(),
            )
        else:
            position = widgets.position_picker()
        chosen = Chosen(lm, found, position, trace, layer, head)
        quantity = residual.quantity_picker() if view == "residual" else ""
        count, choice = (mlp.count_picker(chosen), mlp.expert_picker(chosen)) if view == "mlp" else (0, 0)
        tensor = tensors.pick(chosen) if view == "tensors" else ("", 0, 0)

    with map_place:
        show_map(lm, found, view, layer, head)
    equations = {"attention": attention.equations, "residual": residual.equations, "mlp": mlp.equations}
    with explanation:
        for latex in equations[view](chosen) if view in equations else ():
            page.equation(latex)
        if view in equations:
            st.code(shape_line(lm.config, length, view), language=None)

    if view == "attention":
        with picture:
            attention.patterns(chosen, pattern.numpy())
        page.snippet(attention.snippet(chosen))
    elif view == "query":
        step = attention_of_query(trace, lm.config, layer, head, position)
        with picture:
            attention.one_query(chosen, step)
        attention.query_table(chosen, step)
        page.snippet(attention.snippet(chosen))
    elif view == "residual":
        stream = residual_stream(trace)
        with picture:
            residual.show(chosen, stream, quantity)
        residual.at_position(chosen, stream)
        page.snippet(residual.snippet(chosen))
    elif view == "mlp":
        with picture:
            mlp.show(chosen, count, choice)
        page.snippet(mlp.snippet(chosen, count, choice))
    else:
        with picture:
            tensors.show(chosen, *tensor)
        tensors.table(chosen)
        page.snippet(tensors.snippet(chosen, tensor[0]))


def show_map(lm: LanguageModel, found: Encoding, view: str, layer: int, head: int) -> None:
    """Show the model as a diagram, in which a block, a head or a part can be chosen."""
    title = _("Block {i} of {name}").format(i=layer, name=lm.name)
    model_map(
        diagram(lm.config, len(found.ids), layer, head if view in OF_A_HEAD else None, view, title),
        key="model-map",
        label=_("The model with its sizes; choose a block, a head or a part"),
        on_choose=choose,
    )


def show() -> None:
    """Show what the reader looks at, and the model as a diagram."""
    found, lm = session.require_tokens(), session.language_model()
    titles = (
        _("Attention"),
        _("One query step by step"),
        _("Residual stream"),
        _("MLP"),
        _("Interventions"),
        _("Experts"),
        _("Context"),
        _("All tensors"),
    )
    names = dict(zip(VIEWS, titles, strict=True))
    view = widgets.views("blocks.view", names, 4)
    if view == "experts":
        experts.show(lm)
        return
    if view not in ("interventions", "context"):
        show_pass(lm, found, view)
        return
    if view == "interventions":
        interventions.show(lm, found)
    else:
        st.markdown(
            _(
                "One token in two sentences: its row of the table is the same. Attention makes the two vectors "
                "different, block by block."
            )
        )
        sentences.show(lm)
    show_map(lm, found, view, min(max(link.remember("layer", 0, int), 0), lm.config.n_layers - 1), 0)


page.header(
    _("Transformer blocks"),
    _("Attention moves information between positions; the MLP works on each position separately."),
)
link.fragment(show)
page.try_next(
    page.Suggestion(
        _("Swap who likes whom: which weights change?"),
        "blocks",
        {"prompt": "小红喜欢小明", "blocks.view": "attention"},
    ),
    page.Suggestion(
        _("Apple the company: which tokens does the last token attend to?"),
        "blocks",
        {"prompt": "Apple released a new", "blocks.view": "attention"},
    ),
    page.Suggestion(_("How much does each component add?"), "blocks", {"blocks.view": "residual", "quantity": "added"}),
    page.Suggestion(
        _("What would the model predict after each block? The logit lens shows it."), "logits", {"logits.view": "lens"}
    ),
)
