"""The same knobs in six inference engines: what each makes of them, and where two of them part."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch

import lmcore
from lmcore import Reshaped, SamplingSettings
from lmcore.sampling import ENGINES, Rules, preset
from pages.common import page, widgets
from pages.common.text import _, visible
from pages.figures.theme import fmt_probability
from pages.live.sampling_lab.labels import stage_titles
from pages.stages.sampling import knobs
from pages.stages.sampling.sources import Source

MAX_DIFFERENT = 50


def show(source: Source, settings: SamplingSettings) -> None:
    """Show every engine under the same knobs in one table, then two of them token by token."""
    st.subheader(_("The same knobs in six engines"), anchor=False)
    own = widgets.toggle(
        "engine_defaults",
        _("Where a stage is off here, use the engine's own default"),
        help=_("Off: an engine's defaults are switched off, so that only order and rules differ."),
    )
    results: dict[str, Reshaped | str] = {name: reshape_as(name, source, settings, own) for name in ENGINES}
    here = lmcore.reshape(torch.from_numpy(source.logits), settings, lmcore.History(prompt=source.history))
    st.table(_overview(results, here))
    names = [name for name, result in results.items() if isinstance(result, Reshaped)]
    if len(names) < 2:
        return
    left, right = st.columns(2)
    titles = {name: ENGINES[name].title for name in names}
    with left:
        first = widgets.select("engine_a", _("Compare"), names, names[0], format_func=titles.__getitem__)
    with right:
        second = widgets.select(
            "engine_b", _("with"), names, names[min(2, len(names) - 1)], format_func=titles.__getitem__
        )
    _compare(source, results[first], results[second], titles[first], titles[second])


def reshape_as(name: str, source: Source, settings: SamplingSettings, own_defaults: bool) -> Reshaped | str:
    """Reshape as an engine would; the sentence it refuses with, where it does (transformers at temperature 0)."""
    given = knobs.given(settings)
    given.pop("order", None)  # an engine runs its stages in its own order
    if not own_defaults:
        given = {**dict.fromkeys(ENGINES[name].defaults), **given}
    try:
        chosen = preset(name, **given)
        return lmcore.reshape(torch.from_numpy(source.logits), chosen, lmcore.History(prompt=source.history))
    except ValueError as error:
        return str(error)


def _overview(results: dict[str, Reshaped | str], here: Reshaped) -> pd.DataFrame:
    stages = stage_titles()
    rows = []
    for name, result in results.items():
        row = {
            _("Engine"): ENGINES[name].title,
            _("Stages, in its order"): "",
            _("Candidates"): "",
            _("From the lab"): "",
        }
        if isinstance(result, str):
            row[_("Stages, in its order")] = _("refuses temperature 0 when sampling")
        else:
            settings = result.settings
            run = " → ".join(
                f"{stages[step]} {getattr(settings, step):g}" for step in settings.active if step != "logit_bias"
            )
            ignored = ", ".join(stages.get(field, field) for field in settings.ignored)
            row[_("Stages, in its order")] = run + (
                " · " + _("has no {stages}").format(stages=ignored) if ignored else ""
            )
            row[_("Candidates")] = f"{result.candidates:,}"
            row[_("From the lab")] = f"{lmcore.distribution.total_variation(result.probs, here.probs).item():.4f}"
        row[_("Its rules")] = " · ".join(rules(ENGINES[name].rules))
        rows.append(row)
    st.caption(_("“From the lab”: total variation distance to the distribution above, 0 equal, 1 nothing in common."))
    return pd.DataFrame(rows).set_index(_("Engine"))


def rules(of: Rules) -> list[str]:
    """Say the boundary rules of an engine."""
    return [
        _("ties at the k-th: all stay") if of.top_k_ties == "all" else _("ties at the k-th: exactly k stay"),
        _("top-p: the crossing token stays")
        if of.top_p_boundary == "crossing kept"
        else _("top-p: the crossing token is dropped"),
        *(
            [_("presence and frequency count generated tokens only")]
            if of.additive_penalties_count == "generated"
            else []
        ),
        *([_("T = 0 is an error")] if of.zero_temperature == "error" else []),
    ]


def _compare(source: Source, first: Reshaped, second: Reshaped, name: str, other: str) -> None:
    distance = lmcore.distribution.total_variation(first.probs, second.probs).item()
    st.text(_("Total variation distance: {distance:.4f}").format(distance=distance))
    different = (first.probs > 0) != (second.probs > 0)
    ids = different.nonzero().squeeze(1)
    if not len(ids):
        st.text(_("Both keep the same tokens."))
        return
    ids = ids[torch.sort(first.initial_probs[ids], descending=True, stable=True).indices]
    st.text(_("Tokens that one keeps and the other removes: {n:,}").format(n=len(ids)))
    shown = ids[:MAX_DIFFERENT].tolist()
    frame = pd.DataFrame(
        {
            _("id"): shown,
            _("Token"): [visible(source.token(token)) for token in shown],
            name: [_fate(first, token) for token in shown],
            f"{other} " if other == name else other: [_fate(second, token) for token in shown],
        }
    )
    page.numbers_table(frame, "engines")


def _fate(result: Reshaped, token: int) -> str:
    step = int(result.removed_by[token])
    if step < 0:
        return fmt_probability(result.probs[token].item())
    return _("removed by {stage}").format(stage=stage_titles()[result.steps[step].name])
