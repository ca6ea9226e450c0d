"""One gradient step under glass: a sentence, its loss, the gradient, and what a step of size eta does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
import torch

from lmcore import LanguageModel
from lmcore.analysis.one_step import (
    by_group,
    gradients,
    losses_along,
    squared_norm,
    stepped,
    target_loss,
    where_it_stops_helping,
)
from lmcore.distribution import rank, softmax
from pages.common import page, session, widgets
from pages.common.text import _, visible
from pages.figures import theme
from pages.figures.training import gradients as figures
from pages.stages.training.common import sentence

OTHERS = (
    "患者服用华法林后出现头晕",
    "患者服用阿司匹林后出现胃痛",
    "今天天气不错",
    "小明喜欢小红",
    "苹果很好吃",
    "The weather today is nice",
    "I like cats",
)
_GRID = [10.0 ** (k / 5) for k in range(-20, 11)]  # eta from 1e-4 to 100

CODE = """
import lmcore
from lmcore.analysis.one_step import gradients, losses_along, squared_norm, stepped, target_loss

lm = lmcore.load({name!r})
ids = lm.tokenizer.encode({text!r}).ids
eta = {eta:.6g}
gradient = gradients(lm.model, ids)              # parameter name -> dL/dtheta; the model is not changed
before, line = target_loss(lm.model, ids).item(), eta * squared_norm(gradient)
print(before, before - line)                     # L, and the first-order line at eta
print(losses_along(lm.model, gradient, [0.0, eta], ids))
moved = stepped(lm.model, gradient, eta)         # a copy, one step on
print(target_loss(moved, ids).item())
"""


@dataclass(frozen=True)
class Step:
    """What the view needs of the step: computed once, by `compute`."""

    before: float
    after: float
    prob_before: float
    prob_after: float
    rank_before: int
    rank_after: int


def show() -> None:
    """Draw the view."""
    lm = session.language_model()
    text, ids = sentence()
    controls, picture = page.workbench()
    with controls:
        exponent = widgets.slider(
            "training.eta", "log₁₀ η", -4.0, 2.0, -2.0, step=0.1, help=_("The size of the step: plain SGD, θ − η g.")
        )
    eta = 10**exponent
    with session.forward_lock():
        gradient = gradients(lm.model, ids)
        moved = LanguageModel(lm.name, stepped(lm.model, gradient, eta), lm.tokenizer)
        step = _compare(lm, moved, ids)
        near = np.linspace(0, 2 * eta, 25).tolist()
        along = losses_along(lm.model, gradient, near, ids)
        wide = losses_along(lm.model, gradient, _GRID, ids)
        limit = where_it_stops_helping(lm.model, gradient, ids, _GRID)
    squared = squared_norm(gradient)
    with controls:
        st.metric("η", f"{eta:.4g}")
        _metrics(step, squared, eta)
    with picture:
        page.figure(
            figures.loss_along(
                near,
                along,
                squared,
                (eta, step.after),
                names=(_("measured"), _("first-order line L − η |g|²")),
                titles=("η", _("loss after the step (nats)")),
            ),
            "training-step",
            _("The loss after one step over the step's size, leaving the first-order line as the step grows."),
        )
        st.caption(_("The axis ends at 2 η: make η small and the curve becomes the line."))
        page.figure(
            figures.step_sizes(_GRID, wide, step.before, eta, x_title="η", y_title=_("loss after the step (nats)")),
            "training-step-sizes",
            _("The loss after one step for sizes from a ten-thousandth to a hundred."),
        )
        st.markdown(
            _("No size up to {largest:g} makes this loss worse.").format(largest=_GRID[-1])
            if limit is None
            else _("A step stops helping at η = **{limit:.4g}**: from there the loss is no lower than before.").format(
                limit=limit
            )
        )
    _tell_groups(lm, gradient, eta)
    _tell_others(lm, moved, ids, text)
    page.snippet(CODE.format(name=lm.name, text=text, eta=eta))


def _compare(lm: LanguageModel, moved: LanguageModel, ids: list[int]) -> Step:
    old, new = (softmax(model(ids[:-1])[-1]) for model in (lm, moved))
    target = ids[-1]
    with torch.no_grad():
        before, after = (target_loss(model.model, ids).item() for model in (lm, moved))
    return Step(before, after, old[target].item(), new[target].item(), rank(old, target), rank(new, target))


def _metrics(step: Step, squared: float, eta: float) -> None:
    st.metric(_("Loss −ln P (nats)"), f"{step.after:.5f}", f"{step.after - step.before:+.5f}", delta_color="inverse")
    st.metric(
        _("Probability of the target"),
        theme.fmt_probability(step.prob_after),
        f"{100 * (step.prob_after - step.prob_before):+.3f} %",
    )
    st.metric(_("Rank"), step.rank_after, step.rank_after - step.rank_before, delta_color="inverse")
    st.caption(
        _("Before: loss {loss:.5f}, probability {prob}, rank {rank}. |g|² = {squared:.5g}; line: {line:.5f}.").format(
            loss=step.before,
            prob=theme.fmt_probability(step.prob_before),
            rank=step.rank_before,
            line=step.before - eta * squared,
            squared=squared,
        )
    )


def _tell_groups(lm: LanguageModel, gradient: dict[str, torch.Tensor], eta: float) -> None:
    st.subheader(_("Which parameters moved, and by how much"), anchor=False)
    groups = by_group(lm.model, gradient)
    tied = lm.config.tie_embeddings
    names = [
        _("token_embedding = head") if tied and group.group == "token_embedding" else group.group for group in groups
    ]
    page.figure(
        theme.bars(
            [eta * group.gradient_norm for group in groups],
            names,
            kind="amount",
            value_title=_("length of the move, η |g|"),
        ),
        "training-groups",
        _("How far each part of the model moved in this step."),
    )
    total = sum(group.gradient_norm**2 for group in groups) or 1.0
    page.numbers_table(
        pd.DataFrame(
            {
                _("part"): names,
                _("parameters"): [group.n_parameters for group in groups],
                _("with a gradient"): [group.n_moved for group in groups],
                "|g|": [group.gradient_norm for group in groups],
                _("share of |g|²"): [group.gradient_norm**2 / total for group in groups],
                "η |g|": [eta * group.gradient_norm for group in groups],
                "η |g| / |θ|": [eta * group.gradient_norm / group.parameter_norm for group in groups],
            }
        ),
        "training-step",
        {
            _("parameters"): "count",
            _("with a gradient"): "count",
            "|g|": "%.5f",
            _("share of |g|²"): "probability",
            "η |g|": "%.3e",
            "η |g| / |θ|": "%.3e",
        },
    )


def _tell_others(lm: LanguageModel, moved: LanguageModel, ids: list[int], text: str) -> None:
    st.subheader(_("What the step did to other sentences"), anchor=False)
    st.caption(_("Loss of each sentence's last token, before and after the step that was taken for the one above."))
    rows = []
    with session.forward_lock(), torch.no_grad():
        for other in dict.fromkeys([text, *OTHERS]):
            other_ids = ids if other == text else lm.tokenizer.encode(other).ids
            if 2 <= len(other_ids) <= lm.config.context_length:
                losses = [target_loss(model.model, other_ids).item() for model in (lm, moved)]
                rows.append((visible(other), *losses))
    page.figure(
        theme.bars(
            [after - before for _other, before, after in rows],
            [other for other, _before, _after in rows],
            kind="signed",
            value_title=_("change of the loss (nats); below 0 is better"),
        ),
        "training-others",
        _("How the step changed the loss of this sentence and of others."),
    )
    page.numbers_table(
        pd.DataFrame(rows, columns=[_("sentence"), _("loss before"), _("loss after")]),
        "training-others",
        {_("loss before"): "%.5f", _("loss after"): "%.5f"},
    )
