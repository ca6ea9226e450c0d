"""LM head and logits: every position's scores for the next token, and where they come from."""

from __future__ import annotations

import math

import streamlit as st

from lmcore import Encoding, LanguageModel
from lmcore.distribution import top
from pages.common import engines, link, page, session, widgets
from pages.common.text import _
from pages.stages.logits import dot_product, engine, lens, next_token, parts, several, whole_text
from pages.stages.logits.chosen import Chosen, scores_of
from pages.stages.logits.tokens import token_field

VIEWS = ("next", "text", "several", "dot", "lens", "parts")
names = (_("Next token"), _("Whole text"), _("Several texts"), _("h · e"), _("Logit lens"), _("Why this token"))
titles = dict(zip(VIEWS, names, strict=True))


def show_prompt(found: Encoding, lm: LanguageModel, view: str) -> None:
    """Show a view of the prompt's logits, its controls beside it."""
    if view in ("dot", "lens", "parts"):
        session.trace()  # its pass gives the logits too
    logits = session.logits()
    controls, picture = page.workbench()
    explanation = st.container()
    with controls:
        uniform = math.log2(lm.config.vocab_size)
        scores = scores_of(lm, found, logits)
        bits = [0.0, *(scores.bits.tolist() if scores else [])]
        position = widgets.position_picker(
            label=_(
                "Position: choose a token. The darker its colour, the more it surprised the model. The darkest "
                "is {bits} bits, a random guess."
            ).format(bits=f"{uniform:.1f}"),
            strength=[value / uniform for value in bits],
        )
        best = top(logits[position], 2).ids.tolist()
        target = token_field("target", _("Token to follow"), lm.tokenizer, best[0])
        rival = (
            token_field("rival", _("Compare with"), lm.tokenizer, best[1 if target != best[1] else 0])
            if view == "parts"
            else best[1]
        )
        chosen = Chosen(lm, found, position, logits, scores, target, rival)
        count = next_token.count_picker() if view == "next" else whole_text.count_picker() if view == "text" else 0
        colour = whole_text.colour_picker() if view == "text" else ""
        quantity, within = (lens.quantity_picker(), lens.within_picker(chosen)) if view == "lens" else ("", False)
        split = parts.of_picker() if view == "parts" else ""

    if view == "next":
        with picture:
            next_token.show(chosen, count)
        page.snippet(next_token.snippet(chosen, count))
    elif view == "text":
        with picture:
            whole_text.show(chosen, colour)
        whole_text.table(chosen, count)
        page.snippet(whole_text.snippet(chosen))
    elif view == "dot":
        hidden = session.trace()["hidden_state"][position]
        out = dot_product.readout(chosen, hidden)
        with explanation:
            page.equation(dot_product.equation(chosen, out))
        with picture:
            dot_product.show(chosen, out)
        dot_product.check_rankings(out, chosen)
        dot_product.important_dimensions(chosen, hidden)
        page.snippet(dot_product.snippet(chosen))
    elif view == "lens":
        layers, part = lens.layers_of(chosen, session.trace(), within), lens.window(chosen, within)
        with picture:
            lens.show(chosen, layers, part, quantity)
        lens.table(chosen, layers, part)
        page.snippet(lens.snippet(chosen))
    else:
        attribution = parts.attribution(chosen, session.trace())
        with explanation:
            page.equation(parts.equation(attribution, split))
        with picture:
            parts.show(chosen, attribution, split)
        parts.table(chosen, attribution)
        page.snippet(parts.snippet(chosen))


def show() -> None:
    """Show the view that the reader looks at."""
    found, lm = session.require_tokens(), session.language_model()
    view = widgets.views("logits.view", titles, 4)
    if view == "several":
        several.show(lm)
    else:
        show_prompt(found, lm, view)


if (served := engines.chosen()) is not None:
    engine.show(served)
    link.stop()
config = session.language_model().config
transposed = r"=E^{\top}" if config.tie_embeddings else ""
n_numbers = f"{config.d_model * config.vocab_size:,}"
tied = _("W has {n} numbers: it is the embedding table E, used a second time.")
untied = _("W has {n} numbers of its own; it is not tied to the embedding table.")
page.header(
    _("LM head and logits"),
    _("The head turns the hidden state at each position into one number for every token of the vocabulary: its logit."),
    rf"\underset{{[S,\,{config.vocab_size}]}}{{\mathrm{{logits}}}} = "
    rf"\underset{{[S,\,{config.d_model}]}}{{H}}\;\underset{{[{config.d_model},\,{config.vocab_size}]}}{{W{transposed}}}"
    + (rf" + \underset{{[{config.vocab_size}]}}{{b}}" if config.head_bias else ""),
    (tied if config.tie_embeddings else untied).format(n=n_numbers),
)
link.fragment(show)
page.try_next(
    page.Suggestion(
        _("今天天气: how close is the model to the grammar it learned?"),
        "logits",
        {"prompt": "今天天气", "logits.view": "next"},
    ),
    page.Suggestion(
        _("A text with an odd word: which token is surprising, and by how many bits?"),
        "logits",
        {"prompt": "The weather today is cat", "logits.view": "text"},
    ),
    page.Suggestion(_("Nearest by angle, or largest logit?"), "logits", {"logits.view": "dot"}),
    page.Suggestion(_("Reshape this distribution with temperature, top-k and top-p."), "sampling"),
)
