"""Experts: which token goes to which, how busy each is, what they write, and the answer with one of them off."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

import lmcore
from lmcore import LanguageModel, ModelConfig, Trace
from lmcore.analysis import edits_of, expert_loads, experts_at, given_to_experts, routing
from lmcore.analysis.blocks.experts import replacing
from lmcore.corpus import HELD_OUT_SEED, windows
from lmcore.distribution import softmax, top, total_variation
from lmcore.trace import Edit
from pages.common import page, session, widgets
from pages.common.shared import shared
from pages.common.text import _, markdown_literal, visible
from pages.figures.blocks import experts as figures
from pages.figures.blocks.interventions import before_and_after
from pages.figures.labels import token_labels, vocabulary_label
from pages.figures.theme import fmt_count

BUILT_IN = "small-world-experts"
_PROMOTED = 5  # tokens of an expert that a row of the table names
_TOKENS = 6  # of the answer that are drawn
_TEXTS, _LENGTH = 64, 64  # held-out texts of the small world, and their tokens
_AT_A_TIME = 8  # texts in one pass
_LEAST = 8  # times that a token occurs in them
_FAVOURITES = 8  # tokens of an expert that a row names
_INSTEAD = "expert.instead"


def show(own: LanguageModel) -> None:
    """Draw the view, for the chosen model or, where it has no experts, for the built-in one that has."""
    lm = own if own.config.n_experts is not None else session.language_model(BUILT_IN)
    found = session.encoding(session.beginning(), lm.name)
    tokens, ids = found.tokens[: lm.config.context_length], found.ids[: lm.config.context_length]
    config, n_experts = lm.config, lm.config.n_experts or 0
    controls, picture = page.workbench()
    with controls:
        if lm is not own:
            st.caption(_("{name} has no experts. Shown is {other}.").format(name=own.name, other=lm.name))
        layer = widgets.slider("layer", _("Block"), 0, config.n_layers - 1, 0)
        position = widgets.token_picker(tokens, ids)
        trace = session.trace(ids, lm.name)
        here = experts_at(lm.model, trace, layer, position)
        expert = widgets.select("expert", _("Expert to change"), range(n_experts), here[0].expert)
        if st.session_state.get(_INSTEAD) == expert:
            st.session_state[_INSTEAD] = -1  # an expert does not stand in for itself
        others = [-1, *(other for other in range(n_experts) if other != expert)]
        other = widgets.select(_INSTEAD, _("In its place"), others, -1, format_func=_instead)
        _tell_sizes(lm)
    labels = token_labels(tokens)
    with picture:
        _routing(trace, lm, layer, position, labels)
        _loads(trace, lm, layer)
    st.subheader(_("What the experts write at {token}").format(token=markdown_literal(tokens[position])), anchor=False)
    _writing(lm, trace, layer, position)
    _specialities(lm, layer)
    st.subheader(_("The prediction without this expert"), anchor=False)
    _answer(lm, ids, layer, position, expert, other)
    page.equation(_equation(config))
    page.snippet(_snippet(lm, found.text, layer, position, expert))


def _equation(config: ModelConfig) -> str:
    over = r"x W_r\text{, chosen}" if config.expert_weights_over == "chosen" else "x W_r"
    return (
        rf"\mathrm{{out}} = \sum_{{e\,\in\,\mathrm{{top}}\,{config.n_experts_used}}} w_e\,\mathrm{{MLP}}_e(x),\qquad "
        rf"w = \mathrm{{softmax}}({over})"
    )


def _instead(other: int) -> str:
    return _("the router's next choice") if other < 0 else str(other)


def _tell_sizes(lm: LanguageModel) -> None:
    stored = lmcore.parameters.count(lm.config).total
    used = lmcore.parameters.used_by_a_token(lm.config)
    st.caption(
        _("{stored} parameters are stored; each token uses {used}: {n} of {total} experts in each block.").format(
            stored=fmt_count(stored), used=fmt_count(used), n=lm.config.n_experts_used, total=lm.config.n_experts
        )
    )


def _routing(trace: Trace, lm: LanguageModel, layer: int, position: int, labels: list[str]) -> None:
    weights = routing(trace, lm.config, layer).float()
    chosen = torch.zeros_like(weights, dtype=torch.bool)
    chosen.T.scatter_(1, trace[f"blocks.{layer}.mlp.chosen"].long(), True)
    page.figure(
        figures.routing(
            weights.where(chosen, torch.nan).numpy(), labels, position, (_("Expert"), _("Position"), _("Weight"))
        ),
        "expert-routing",
        _("Heat map: a row for each expert, a column for each token; filled where the token goes to the expert."),
        chooses=lambda cell: {"position": cell.column, "expert": cell.row},
    )


def _loads(trace: Trace, lm: LanguageModel, layer: int) -> None:
    shares = expert_loads(trace, lm.config)
    st.caption(
        _("How busy each expert is in this text. With equal loads each would have {even:.1%} of the choices.").format(
            even=1 / shares.shape[1]
        )
    )
    page.figure(
        figures.loads(shares.numpy(), layer, (_("Block"), _("Expert"), _("Share of the choices"))),
        "expert-loads",
        _("Heat map: a row for each block, a column for each expert; its share of all choices in this text."),
        chooses=lambda cell: {"layer": cell.row, "expert": cell.column},
    )


def _writing(lm: LanguageModel, trace: Trace, layer: int, position: int) -> None:
    rows = [
        {
            _("Expert"): each.expert,
            _("Weight"): each.weight,
            _("Router logit"): each.logit,
            _("Promotes most"): _named(lm, each.contributions),
            _("Suppresses most"): _named(lm, -each.contributions),
        }
        for each in experts_at(lm.model, trace, layer, position)
    ]
    page.numbers_table(pd.DataFrame(rows), "experts", {_("Weight"): "probability", _("Router logit"): "number"})
    st.caption(
        _(
            "An expert promotes a token when its weighted output adds to that token's logit, directly through the "
            "final norm and the head. What later blocks make of it is not counted."
        )
    )


@shared(entries=4, doing="Counting which tokens go to which expert · 正在统计各专家收到哪些词元")
def _given(name: str, _lm: LanguageModel) -> Tensor:
    texts = next(windows(HELD_OUT_SEED, _TEXTS, _LENGTH, _lm.tokenizer))[:, :_LENGTH]
    counts = []
    for some in torch.from_numpy(texts).split(_AT_A_TIME):
        with session.forward_lock():  # between two of them it is another session's turn
            counts.append(given_to_experts(_lm.model, some))
    return torch.stack(counts).sum(0)


def _specialities(lm: LanguageModel, layer: int) -> None:
    """Show which tokens of the small world go to each expert, where the model was trained on it."""
    if session.grammar(lm) is None:
        return
    counts = _given(lm.name, lm)[layer]
    occurrences = counts.sum(0) // (lm.config.n_experts_used or 1)
    shares = (counts / occurrences.clamp(min=1)).where(occurrences >= _LEAST, 0.0)
    rows = []
    for expert, (share, given) in enumerate(zip(shares, counts, strict=True)):
        # Of tokens with equal shares, the more frequent ones first.
        order = torch.argsort(share + given / (given.sum() + 1), descending=True)[:_FAVOURITES].tolist()
        told = [f"{visible(lm.tokenizer.token_bytes(i))} {share[i]:.0%}" for i in order if share[i] > 0]
        load = float(given.sum() / counts.sum())
        rows.append({_("Expert"): expert, _("Share of the choices"): load, _("Given most"): "   ".join(told)})
    st.subheader(_("What the experts specialise in, in block {layer}").format(layer=layer), anchor=False)
    page.numbers_table(pd.DataFrame(rows), "experts-given", {_("Share of the choices"): "probability"})
    st.caption(
        _(
            "Over {n} held-out texts of {length} tokens from the small world. A token's percentage is the share of its "
            "occurrences that went to this expert; each goes to {used}. Tokens that occur fewer than {least} times are "
            "left out."
        ).format(n=_TEXTS, length=_LENGTH, used=lm.config.n_experts_used, least=_LEAST)
    )


def _named(lm: LanguageModel, contributions: Tensor) -> str:
    return "  ".join(visible(lm.tokenizer.token_bytes(int(i))) for i in top(contributions, _PROMOTED).ids)


def _answer(lm: LanguageModel, ids: list[int], layer: int, position: int, expert: int, other: int) -> None:
    edits = _edits(lm, len(ids), layer, expert, other)
    before = softmax(session.logits(ids, lm.name)[position])
    with session.forward_lock():
        after = softmax(lm(ids[: position + 1], edits=edits)[-1])
    shown = {int(token) for probs in (before, after) for token in top(probs, _TOKENS).ids}
    order = sorted(shown, key=lambda token: -max(before[token].item(), after[token].item()))
    page.figure(
        before_and_after(
            [vocabulary_label(token, lm.tokenizer.token_bytes(token)) for token in order],
            before[order].numpy(),
            after[order].numpy(),
            (_("Original model"), _("With this change")),
            _("the other {n} tokens").format(n=fmt_count(len(before) - len(order))),
        ),
        "expert-answer",
        _("Bars: the probability of the most probable next tokens, in the original model and with the change."),
    )
    st.caption(
        _(
            "Total variation distance: {distance}. The expert is taken from every token of the text in this block."
        ).format(distance=f"{total_variation(before, after).item():.4f}")
    )


def _edits(lm: LanguageModel, length: int, layer: int, expert: int, other: int) -> dict[str, Edit]:
    if other < 0:
        return edits_of([f"blocks.{layer}.mlp.expert.{expert}"], lm.config, length)
    return {f"blocks.{layer}.mlp.chosen": replacing(expert, other)}


def _snippet(lm: LanguageModel, text: str, layer: int, position: int, expert: int) -> str:
    return (
        "import lmcore.analysis\n"
        f"lm = lmcore.load({lm.name!r})\n"
        f"ids = lm.tokenizer.encode({text!r}).ids\n"
        "trace = lmcore.Trace()\n"
        "logits = lm(ids, trace=trace)\n"
        f"print(lmcore.analysis.routing(trace, lm.config, block={layer}))      # [expert, position]\n"
        "print(lmcore.analysis.expert_loads(trace, lm.config))         # [block, expert]\n"
        f"for each in lmcore.analysis.experts_at(lm.model, trace, block={layer}, position={position}):\n"
        "    print(each.expert, each.weight, lmcore.distribution.top(each.contributions, 5).ids)\n"
        f"off = lmcore.analysis.edits_of(['blocks.{layer}.mlp.expert.{expert}'], lm.config, len(ids))\n"
        f"print(lmcore.distribution.softmax(lm(ids, edits=off)[{position}]).max())"
    )
