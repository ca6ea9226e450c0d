"""One gradient step under glass: a sentence, its loss, the gradient, and what a step of size eta does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from lmcore import LanguageModel
from lmcore.analysis.training.one_step import (
    GroupGradient,
    StepPoint,
    by_group,
    gradients,
    points_along,
    squared_norm,
    stepped,
    target_loss,
    where_it_stops_helping,
)
from lmcore.worker import Worker, each_of
from pages.common import page, session, widgets
from pages.common.shared import shared
from pages.common.text import _, visible
from pages.figures import theme
from pages.figures.training import gradients as figures
from pages.stages.training.common import last_only_switch, require_memory, sentence
from pages.stages.training.reading import results_of
from pages.stages.training.step_sizes import sizes_of

OTHERS = (
    "患者服用华法林后出现头晕",
    "患者服用阿司匹林后出现胃痛",
    "患者服用华法林后出现黑便",
    "小明喜欢小红",
    "苹果很好吃",
    "The weather today is nice",
    "I like cats",
)
_MOST_PARTS = 24  # drawn as bars

CODE = """
import lmcore
from lmcore.analysis.training.one_step import gradients, losses_along, squared_norm, stepped, target_loss

lm = lmcore.load({name!r})
ids = lm.tokenizer.encode({text!r}).ids
eta, last_only = {eta:.6g}, {last_only}
gradient = gradients(lm.model, ids, last_only)              # parameter name -> dL/dtheta; the model is not changed
before, line = target_loss(lm.model, ids, last_only).item(), eta * squared_norm(gradient)
print(before, before - line)                                # L, and the first-order line at eta
print(losses_along(lm.model, gradient, [0.0, eta], ids, last_only))
moved = stepped(lm.model, gradient, eta)                    # a copy, one step on
print(target_loss(moved, ids, last_only).item())
"""


@dataclass(frozen=True)
class Slope:
    """The gradient at the start: by parameter, its squared norm, and by part of the model."""

    gradient: dict[str, Tensor]
    squared: float
    groups: list[GroupGradient]


def show() -> None:
    """Draw the view."""
    lm = session.language_model()
    require_memory(lm)
    controls, picture = page.workbench()
    with controls:
        text, ids = sentence()
        last_only = last_only_switch()
    key = (lm.name, tuple(ids), last_only)
    sizes = sizes_of(lm)
    with picture:
        found = results_of(_line(*key), "training.line", lambda: _line.clear(*key))
    if found is None:
        return
    slope: Slope = found[0]
    points: list[StepPoint] = found[1:-1]
    limit: float | None = found[-1]
    with controls:
        exponent = widgets.slider(
            "training.eta",
            "log₁₀ η",
            sizes.smallest,
            sizes.largest,
            sizes.first,
            step=sizes.between,
            help=_("The step size of plain SGD: θ − η g."),
        )
        chosen = min(points[1:], key=lambda point: abs(point.eta - 10**exponent))
        eta = chosen.eta
        st.metric("η", f"{eta:.4g}")
        _metrics(points[0], chosen, slope.squared)
    with picture:
        near = [point for point in points if point.eta <= 3.3 * eta]
        page.figure(
            figures.loss_along(
                [point.eta for point in near],
                [point.loss for point in near],
                slope.squared,
                (eta, chosen.loss),
                names=(_("measured"), _("first-order line L − η |g|²")),
                titles=("η", _("loss after the step (nats)")),
            ),
            "training-step",
            _("The loss after one step against the step size. It departs from the first-order line as the step grows."),
        )
        st.caption(_("The axis ends a little beyond η. Make η small, and the curve becomes the line."))
        page.figure(
            figures.step_sizes(
                [point.eta for point in points[1:]],
                [point.loss for point in points[1:]],
                points[0].loss,
                eta,
                x_title="η",
                y_title=_("loss after the step (nats)"),
            ),
            "training-step-sizes",
            _("The loss after one step, for step sizes over many orders of magnitude."),
        )
        st.markdown(
            _("No step size up to {largest:g} makes this loss worse.").format(largest=sizes.grid[-1])
            if limit is None
            else _("From η = {limit} on, the loss after the step is no lower than before.").format(
                limit=f"**{limit:.{sizes.digits}g}**"
            )
        )
    _tell_groups(lm, slope, eta)
    _tell_others(lm, (*key, eta), text)
    page.snippet(CODE.format(name=lm.name, text=text, eta=eta, last_only=last_only))


@shared(entries=2)
def _line(name: str, ids: tuple[int, ...], last_only: bool) -> Worker[Slope | StepPoint | float | None]:
    """Return the reading of the gradient, of the loss for each size of step, and of the size that stops helping.

    Kept for all sessions together, not in each one's state: a gradient is as large as its model. So two at most,
    and here, for no other page asks.
    """
    lm = session.language_model(name)
    model, sizes = lm.model, sizes_of(lm)

    def results() -> Iterator[Slope | StepPoint | float | None]:
        gradient = gradients(model, ids, last_only)
        yield Slope(gradient, squared_norm(gradient), by_group(model, gradient))
        losses = []
        for point in points_along(model, gradient, sizes.grid, ids, last_only):
            losses.append(point.loss)
            yield point
        yield where_it_stops_helping(
            model, gradient, ids, sizes.grid, last_only, losses, precision=0.5 * 10.0 ** (1 - sizes.digits)
        )

    return Worker(each_of(results, session.forward_lock()), total=len(sizes.grid) + 2)


@shared(entries=64)
def _others(
    name: str, ids: tuple[int, ...], last_only: bool, eta: float, text: str
) -> Worker[tuple[str, float, float] | None]:
    """Return the reading of other sentences' losses before and after the step; None for one that does not fit.

    A few numbers for each step, kept for all sessions beside the gradient that gives them.
    """
    lm = session.language_model(name)
    slope = _line(name, ids, last_only).items[0]
    assert isinstance(slope, Slope)  # the first of the items
    texts = list(dict.fromkeys([text, *OTHERS]))

    def results() -> Iterator[tuple[str, float, float] | None]:
        moved = stepped(lm.model, slope.gradient, eta)
        for other in texts:
            other_ids = ids if other == text else lm.tokenizer.encode(other).ids
            if 2 <= len(other_ids) <= lm.config.context_length:
                with torch.no_grad():
                    before, after = (target_loss(model, other_ids, last_only).item() for model in (lm.model, moved))
                yield other, before, after
            else:
                yield None

    return Worker(each_of(results, session.forward_lock()), total=len(texts))


def _metrics(start: StepPoint, chosen: StepPoint, squared: float) -> None:
    st.metric(_("Loss −ln P (nats)"), f"{chosen.loss:.5f}", f"{chosen.loss - start.loss:+.5f}", delta_color="inverse")
    st.metric(
        _("Probability of the target"),
        theme.fmt_probability(chosen.prob),
        f"{100 * (chosen.prob - start.prob):+.3f} %",
    )
    st.metric(_("Rank"), chosen.rank, chosen.rank - start.rank, delta_color="inverse")
    st.caption(
        _(
            "Before: loss {loss:.5f}, probability {prob}, rank {rank}. |g|² = {squared:.5g}; the line predicts "
            "{line:.5f}."
        ).format(
            loss=start.loss,
            prob=theme.fmt_probability(start.prob),
            rank=start.rank,
            line=start.loss - chosen.eta * squared,
            squared=squared,
        )
    )


def _tell_groups(lm: LanguageModel, slope: Slope, eta: float) -> None:
    st.subheader(_("Which parameters changed, and by how much"), anchor=False)
    tied, groups = lm.config.tie_embeddings, slope.groups
    names = [
        _("token_embedding = head") if tied and group.group == "token_embedding" else group.group for group in groups
    ]
    furthest = sorted(range(len(groups)), key=lambda place: -groups[place].gradient_norm)[:_MOST_PARTS]
    drawn = sorted(furthest)  # in the order of the model
    page.figure(
        figures.moves(
            [eta * groups[place].gradient_norm for place in drawn],
            [names[place] for place in drawn],
            _("size of the update, η |g|"),
        ),
        "training-groups",
        _("The size of the update of each part of the model in this step."),
    )
    if len(drawn) < len(groups):
        st.caption(
            _("The {n} of {all} parts with the largest update, in the order of the model. The table lists all.").format(
                n=len(drawn), all=len(groups)
            )
        )
    total = sum(group.gradient_norm**2 for group in groups) or 1.0
    page.numbers_table(
        pd.DataFrame(
            {
                _("part"): names,
                _("parameters"): [group.n_parameters for group in groups],
                _("rows with a gradient"): [group.n_moved for group in groups],
                "|g|": [group.gradient_norm for group in groups],
                _("share of |g|²"): [group.gradient_norm**2 / total for group in groups],
                "η |g|": [eta * group.gradient_norm for group in groups],
                "η |g| / |θ|": [eta * group.gradient_norm / group.parameter_norm for group in groups],
            }
        ),
        "training-step",
        {
            _("parameters"): "count",
            _("rows with a gradient"): "count",
            "|g|": "%.5f",
            _("share of |g|²"): "probability",
            "η |g|": "%.3e",
            "η |g| / |θ|": "%.3e",
        },
    )


def _tell_others(lm: LanguageModel, key: tuple[str, tuple[int, ...], bool, float], text: str) -> None:
    st.subheader(_("Effect of the step on other sentences"), anchor=False)
    st.caption(_("Loss of each sentence before and after one step on the sentence above."))
    found = results_of(_others(*key, text), "training.others", lambda: _others.clear(*key, text))
    if found is None:
        return
    rows = [(visible(row[0]), *row[1:]) for row in found if row is not None]
    page.figure(
        theme.bars(
            [after - before for _other, before, after in rows],
            [other for other, _before, _after in rows],
            kind="signed",
            value_title=_("change of the loss (nats); below 0 is better"),
        ),
        "training-others",
        _("The effect of the step on the loss of this sentence and of others."),
    )
    page.numbers_table(
        pd.DataFrame(rows, columns=[_("sentence"), _("loss before"), _("loss after")]),
        "training-others",
        {_("loss before"): "%.5f", _("loss after"): "%.5f"},
    )
