"""What the reader sets: the sampler, the seed, how many tokens and how fast."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from lmcore import LanguageModel
from lmcore.generation.run import GenerationRun
from pages.common import widgets
from pages.common.text import _, markdown_literal, visible
from pages.stages.generation import stops
from pages.stages.sampling import knobs

PRESETS = {
    "greedy": {"temperature": 0.0, "top_k": 0, "top_p": 1.0},
    "usual": {"temperature": 0.8, "top_k": 0, "top_p": 0.9},
    "plain": {"temperature": 1.0, "top_k": 0, "top_p": 1.0},
}
PACES = [2, 5, 10, 30, 0]  # tokens per second; 0 is as fast as it goes
MAX_SEED = 2**32 - 1
_PRESET = "generation.preset"


def show(lm: LanguageModel, run: GenerationRun) -> tuple[str, int]:
    """Draw the controls and give their values to the run; they hold from its next token on.

    Returns:
        What the tokens' colour means, and how many tokens are drawn as bars.
    """
    knobs.remember()  # the sampling page has more of them, and they hold here too
    presets = st.container()  # drawn last: it shows which preset the values below are
    temperature = widgets.slider("temperature", _("Temperature"), 0.0, 2.0, 1.0, step=0.05, help=_("0 is greedy."))
    top_k = widgets.slider("top_k", "top-k", 0, lm.config.vocab_size, 0, help=_("0 is off."))
    top_p = widgets.slider("top_p", "top-p", 0.0, 1.0, 1.0, step=0.01, help=_("1 is off; 0 keeps one token."))
    seed = widgets.number(
        "seed", _("Seed"), 0, MAX_SEED, 0, help=_("The n-th token is drawn with the n-th number of the seed's stream.")
    )
    with presets:
        _presets({"temperature": temperature, "top_k": top_k, "top_p": top_p})
    run.settings = replace(knobs.settings(lm.config.vocab_size), seed=seed)
    others = {name: value for name, value in knobs.given(run.settings).items() if name not in PRESETS["plain"]}
    if others:
        named = ", ".join(f"{name} {value}" for name, value in others.items())
        st.caption(_("From the sampling page: {knobs}").format(knobs=markdown_literal(named).replace("␣", " ")))
    with st.expander(_("Running and drawing")):
        return _running(lm, run)


def _running(lm: LanguageModel, run: GenerationRun) -> tuple[str, int]:
    most = lm.config.context_length
    run.max_new_tokens = widgets.number(
        "max_new_tokens", _("New tokens at most"), 1, most, 50, help=_("At most {n:,}.").format(n=most)
    )
    run.stop_strings = stops.read_strings(
        widgets.text(
            "stop_strings",
            _("Stop strings"),
            help=_("The text ends where one of them is complete. Several are separated by |; \\n is a new line."),
        )
    )
    run.stop_ids = _stop_ids(lm)
    paces = {n: _("{n} tokens a second").format(n=n) if n else _("as fast as it goes") for n in PACES}
    run.tokens_per_second = widgets.select("pace", _("Pace of running"), PACES, 10, format_func=paces.__getitem__)
    run.use_cache = widgets.toggle(
        "kv_cache",
        _("KV cache"),
        True,
        help=_("Off: every token runs the whole text through the model again, to the same logits."),
    )
    colours = {"probability": _("probability"), "rank": _("rank"), "surprisal": _("surprisal")}
    colour = widgets.select("colour_by", _("Colour by"), list(colours), "probability", format_func=colours.__getitem__)
    return colour, widgets.slider("top_n", _("Tokens drawn as bars"), 5, 30, 10)


def _stop_ids(lm: LanguageModel) -> frozenset[int]:
    own = stops.default_ids(lm)
    given = widgets.text(
        "stop_ids",
        _("Stop tokens (ids)"),
        help=_("Separated by commas. Empty: the {n:,} control tokens of this model.").format(n=len(own)),
    )
    if not given.strip():
        return own
    try:
        return stops.read_ids(given, lm.config.vocab_size)
    except ValueError as wrong:
        # st.text: what was given is shown as it is.
        st.text(
            _("{given} is no id from 0 to {last}; the control tokens hold.").format(
                given=visible(str(wrong)[:40]), last=lm.config.vocab_size - 1
            )
        )
        return own


def _presets(values: dict[str, float]) -> None:
    titles = {"greedy": _("Greedy"), "usual": "T 0.8 + top-p 0.9", "plain": "T 1"}
    st.session_state[_PRESET] = next((name for name, preset in PRESETS.items() if preset == values), None)
    st.pills(_("Preset"), list(PRESETS), format_func=titles.__getitem__, key=_PRESET, on_change=_take_preset)


def _take_preset() -> None:
    chosen = st.session_state[_PRESET]
    if chosen is not None:
        st.session_state.update(PRESETS[chosen])
