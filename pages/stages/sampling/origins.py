"""Where each setting in view comes from: the reader, the model's own files, or the engine's defaults."""

from __future__ import annotations

import streamlit as st

from lmcore import SamplingSettings
from lmcore.model_card import ModelCard
from lmcore.sampling import PRESETS, given_fields
from lmcore.sampling.registry import all_fields
from pages.common.text import _, visible


def show(settings: SamplingSettings, card: ModelCard) -> None:
    """Say it in a line below the lab; nothing under lmcore's own rules, where there are no defaults."""
    if settings.engine not in PRESETS:
        return
    sorted_out: dict[str, list[str]] = {}
    for name, whose in origins(settings, card).items():
        value = getattr(settings, name)
        shown = _("off") if value is None else f"{value:g}" if isinstance(value, (int, float)) else _("set")
        sorted_out.setdefault(whose, []).append(f"{visible(name)} {shown}")
    titles = {
        "you": _("From you: {names}"),
        "model": _("From the model's {file}: {names}").format(file=visible(card.sampling_file), names="{names}"),
        "engine": _("{engine}'s defaults: {names}").format(engine=PRESETS[settings.engine].title, names="{names}"),
    }
    told = [titles[whose].format(names=", ".join(names)) for whose, names in sorted_out.items()]
    if told:
        st.caption(" · ".join(told))


def origins(settings: SamplingSettings, card: ModelCard) -> dict[str, str]:
    """Return "you", "model" or "engine" for each setting that is on or that someone's default would switch on."""
    engine = PRESETS[settings.engine]
    model, defaults = engine.taken_from(card.sampling), engine.defaults if engine.silent is None else engine.silent
    found = {}
    for name in (name for name in all_fields() if name in {*given_fields(settings), *model, *defaults}):
        value = getattr(settings, name)
        if name in model and value == model[name]:
            found[name] = "model"
        elif name in defaults and name not in model and value == defaults[name]:
            found[name] = "engine"
        else:
            found[name] = "you"
    return dict(sorted(found.items(), key=lambda pair: ("you", "model", "engine").index(pair[1])))
