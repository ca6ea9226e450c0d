"""The same knobs in each inference engine: what each makes of them, and where two of them part."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch

import lmcore
from lmcore import Reshaped, SamplingSettings
from lmcore.sampling import OFF, PRESETS, preset
from lmcore.sampling.presets import Refused
from lmcore.sampling.registry import get as stage_of
from pages.common import page, widgets
from pages.common.text import _, markdown_literal, visible
from pages.figures.theme import fmt_probability
from pages.live.sampling_lab.engines import says, title
from pages.live.sampling_lab.labels import stage_titles
from pages.stages.sampling import knobs
from pages.stages.sampling.sources import Source

MAX_DIFFERENT = 50


def show(source: Source, here: Reshaped) -> None:
    """Show every engine under the knobs of a result in one table, then two of them token by token."""
    st.subheader(_("The same knobs in {n} engines").format(n=len(PRESETS)), anchor=False)
    own = widgets.toggle(
        "engine_defaults",
        _("Where a stage is off here, use the engine's default"),
        help=_("When off, the engine's defaults are not used, so only the order and the rules differ."),
    )
    results: dict[str, Reshaped | str] = {name: reshape_as(name, source, here.settings, own) for name in PRESETS}
    st.table(_overview(results, here))
    reshaped = {name: result for name, result in results.items() if isinstance(result, Reshaped)}
    names = list(reshaped)
    if len(names) < 2:
        return
    left, right = st.columns(2)
    titles = {name: PRESETS[name].title for name in names}
    with left:
        first = widgets.select("engine_a", _("Compare"), names, names[0], format_func=titles.__getitem__)
    with right:
        usual = "llama.cpp" if "llama.cpp" in names else names[1]
        second = widgets.select("engine_b", _("with"), names, usual, format_func=titles.__getitem__)
    _compare(source, reshaped[first], reshaped[second], titles[first], titles[second])


def reshape_as(name: str, source: Source, settings: SamplingSettings, own_defaults: bool) -> Reshaped | str:
    """Reshape as an engine would; the sentence it refuses with, where it does (transformers at temperature 0)."""
    given = knobs.given(settings)
    for field in ("order", "rules"):  # an engine runs its stages in its own order, under its own rules
        given.pop(field, None)
    if not own_defaults:
        given = {**dict.fromkeys(PRESETS[name].defaults), **given}
    try:
        chosen = preset(name, **given)
    except Refused as refused:
        return _("refuses {field} {value}").format(field=refused.field, value=f"{refused.value:g}")
    except ValueError:
        return _("refuses temperature 0 when sampling")
    try:
        return lmcore.reshape(torch.from_numpy(source.logits), chosen, source.history)
    except ValueError:
        return _("no token is left, or a logit overflows")


def _overview(results: dict[str, Reshaped | str], here: Reshaped) -> pd.DataFrame:
    stages = stage_titles()
    rows = []
    for name, result in results.items():
        row = {
            _("Engine"): PRESETS[name].title,
            _("Stages, in the engine's order"): "",
            _("Candidates"): "",
            _("From the lab"): "",
        }
        if isinstance(result, str):
            row[_("Stages, in the engine's order")] = result
        else:
            settings = result.settings
            run = " → ".join(_numbers(name, settings) for name in settings.active if name != "logit_bias")
            ignored = ", ".join(
                stages.get(field, field) if field in OFF else markdown_literal(stages.get(field, field))
                for field in settings.ignored
            )
            row[_("Stages, in the engine's order")] = run + (
                " · " + _("has no {stages}").format(stages=ignored) if ignored else ""
            )
            row[_("Candidates")] = f"{result.candidates:,}"
            row[_("From the lab")] = f"{lmcore.distribution.total_variation(result.probs, here.probs).item():.4f}"
        rows.append(row)
    st.caption(_("“From the lab”: total variation distance to the distribution above; 0 is equal, 1 is no overlap."))
    return pd.DataFrame(rows).set_index(_("Engine"))


def _numbers(name: str, settings: SamplingSettings) -> str:
    """Return a stage's name with its numbers: "Top-k 40"."""
    used = {field: value for field, value in stage_of(name).used(settings).items() if isinstance(value, (int, float))}
    first, *others = used.items()
    more = ", ".join(f"{field} {value:g}" for field, value in others if field != "penalty_last_n")
    return f"{stage_titles()[name]} {first[1]:g}" + (f" ({more})" if more else "")


def _compare(source: Source, first: Reshaped, second: Reshaped, name: str, other: str) -> None:
    distance = lmcore.distribution.total_variation(first.probs, second.probs).item()
    st.text(_("Total variation distance: {distance:.4f}").format(distance=distance))
    reasons = why(first.settings, second.settings)
    if reasons:
        st.caption(_("Differences between the two with the same settings"))
        st.text("\n".join(f"· {reason}" for reason in reasons))
    different = (first.probs > 0) != (second.probs > 0)
    ids = different.nonzero().squeeze(1)
    if not len(ids):
        st.text(_("Both keep the same tokens."))
        return
    ids = ids[torch.sort(first.initial_probs[ids], descending=True, stable=True).indices]
    st.text(_("Tokens that only one of them keeps: {n:,}").format(n=len(ids)))
    shown = ids[:MAX_DIFFERENT].tolist()
    frame = pd.DataFrame(
        {
            _("id"): shown,
            _("Token"): [visible(source.token(token)) for token in shown],
            name: [fate(first, token) for token in shown],
            other: [fate(second, token) for token in shown],
        }
    )
    page.numbers_table(frame, "engines")


def why(first: SamplingSettings, second: SamplingSettings) -> list[str]:
    """Say what two engines do differently with the stages that are on."""
    titles, names = stage_titles(), [title(settings.engine) for settings in (first, second)]
    reasons = []
    for name in [*first.active, *(stage for stage in second.active if stage not in first.active)]:
        for settings, engine in zip((first, second), names, strict=True):
            if name not in settings.active:
                reasons.append(_("{stage} does not run in {engine}.").format(stage=titles[name], engine=engine))
    common = [name for name in first.active if name in second.active]
    for index, earlier in enumerate(common):
        for later in common[index + 1 :]:
            if second.active.index(later) < second.active.index(earlier):
                reasons.append(
                    _("{a} runs before {b} in {first}, after it in {second}.").format(
                        a=titles[earlier], b=titles[later], first=names[0], second=names[1]
                    )
                )
    rules = [says(settings.rules) for settings in (first, second)]
    for name in common:
        if name == "temperature" and first.temperature >= max(s.rules.greedy_below for s in (first, second)) > 0:
            continue  # where greedy begins makes no difference here
        ours, theirs = (told.get(name, _("counts all tokens")) for told in rules)
        if name in rules[0].keys() | rules[1].keys() and ours != theirs:
            reasons.append(
                _("{stage}: in {first} {ours}; in {second} {theirs}.").format(
                    stage=titles[name], first=names[0], ours=ours, second=names[1], theirs=theirs
                )
            )
    return reasons


def fate(result: Reshaped, token: int) -> str:
    """Say a token's probability, or which stage removed it and the number that decided."""
    index = int(result.removed_by[token])
    if index < 0:
        return fmt_probability(result.probs[token].item())
    step = result.steps[index]
    stage = stage_titles()[step.name]
    before = step.before
    position = int((before.token_ids == token).nonzero())
    p, value = before.probs[position].item(), next(iter(step.settings.values()))
    if step.name == "top_k":
        place = 1 + int((before.logits > before.logits[position]).sum())
        return _("{stage}: place {place:,}, k = {k:,}").format(stage=stage, place=place, k=value)
    if step.name == "top_p":
        mass = before.probs[before.probs > p].sum().item()
        return _("{stage}: the more probable ones sum to {mass}").format(stage=stage, mass=fmt_probability(mass))
    if step.name == "min_p":
        share = p / before.probs.max().item()
        return _("{stage}: {share} of the largest").format(stage=stage, share=fmt_probability(share))
    return _("{stage}: at {p}").format(stage=stage, p=fmt_probability(p))
