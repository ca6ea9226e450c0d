"""What the reader sets: the sampler, the seed, how many tokens and how fast."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from lmcore import LanguageModel
from lmcore.generation.run import GenerationRun
from pages.common import link, widgets
from pages.common.text import _, visible
from pages.stages.generation import constraints, stages, stops
from pages.stages.sampling import knobs

PRESETS = {
    "greedy": {"temperature": 0.0, "top_k": 0, "top_p": 1.0},
    "usual": {"temperature": 0.8, "top_k": 0, "top_p": 0.9},
    "plain": {"temperature": 1.0, "top_k": 0, "top_p": 1.0},
}
PACES = [2, 5, 10, 30, 0]  # tokens per second; 0 is as fast as it goes
MAX_SEED = 2**32 - 1
SET = ("seed", "max_new_tokens", "stop_strings", "stop_ids", "pace", "kv_cache")
_NAMED = 8  # end tokens that a help text names


def show(lm: LanguageModel, run: GenerationRun) -> tuple[str, int]:
    """Draw the controls and give their values to the run; they hold from its next token on.

    The constraint is set by the view of constraints, and holds here.

    Returns:
        What the tokens' colour means, and how many tokens are drawn as bars.
    """
    size = lm.config.vocab_size
    knobs.remember()  # those of the sampling page: they hold here too
    presets = st.container()  # drawn last: it shows which preset the values below are
    values = stages.common(size)
    with presets:
        _presets({name: values[name] for name in PRESETS["plain"]})
    stages.others(size)
    stages.rules(size)
    widgets.number(
        "seed",
        _("Seed"),
        0,
        MAX_SEED,
        0,
        help=_("The n-th token is drawn with the n-th number of the seed's sequence."),
    )
    apply(lm, run)
    with st.expander(_("Running and drawing")):
        return _running(lm, run)


def apply(lm: LanguageModel, run: GenerationRun) -> None:
    """Give a run what the reader has set: what is on screen is what its next token is drawn with.

    Buttons call it too, for a control may have been moved after the page last ran.
    """
    link.take_over(*SET)
    stages.take_over()
    state = st.session_state
    run.settings = replace(knobs.settings(lm.config.vocab_size), seed=state["seed"])
    run.constraint = constraints.under(run.settings)
    if all(name in state for name in SET):  # else the page is drawn for the first time, and those below are to come
        run.max_new_tokens = state["max_new_tokens"]
        run.stop_strings = stops.read_strings(state["stop_strings"])
        run.stop_ids = _stop_ids(lm, state["stop_ids"])
        run.tokens_per_second = state["pace"]
        run.use_cache = state["kv_cache"]


def _running(lm: LanguageModel, run: GenerationRun) -> tuple[str, int]:
    most = lm.config.context_length
    widgets.number("max_new_tokens", _("New tokens at most"), 1, most, 50, help=_("At most {n:,}.").format(n=most))
    widgets.text(
        "stop_strings",
        _("Stop strings"),
        help=_("The text ends where one of them is complete. Several are separated by |; \\n is a new line."),
    )
    own = stops.ids_of_prompt(lm)
    given = widgets.text(
        "stop_ids",
        _("Stop tokens (ids)"),
        help=_("Separated by commas. If empty: the end tokens of this model, {ids}.").format(
            ids=", ".join(map(str, sorted(own)[:_NAMED])) + (" …" if len(own) > _NAMED else "")
        ),
    )
    _say_wrong_ids(lm, given)
    paces = {n: _("{n} tokens per second").format(n=n) if n else _("as fast as possible") for n in PACES}
    widgets.select("pace", _("Pace of running"), PACES, 10, format_func=paces.__getitem__)
    widgets.toggle(
        "kv_cache",
        _("KV cache"),
        True,
        help=_("When off, every token runs the whole text through the model again, with the same logits."),
    )
    apply(lm, run)
    colours = {"probability": _("probability"), "rank": _("rank"), "surprisal": _("surprisal")}
    colour = widgets.select("colour_by", _("Colour by"), list(colours), "probability", format_func=colours.__getitem__)
    return colour, widgets.slider("top_n", _("Tokens drawn as bars"), 5, 30, 10)


def _stop_ids(lm: LanguageModel, given: str) -> frozenset[int]:
    """Read the reader's stop tokens; those of the model where there are none, or what was given are no ids."""
    try:
        return stops.read_ids(given, lm.config.vocab_size) or stops.ids_of_prompt(lm)
    except ValueError:
        return stops.ids_of_prompt(lm)


def _say_wrong_ids(lm: LanguageModel, given: str) -> None:
    try:
        stops.read_ids(given, lm.config.vocab_size)
    except ValueError as wrong:
        # st.text: what was given is shown as it is.
        st.text(
            _("{given} is not an id from 0 to {last}; the end tokens of the model are used.").format(
                given=visible(str(wrong)[:40]), last=lm.config.vocab_size - 1
            )
        )


def _presets(values: dict[str, float]) -> None:
    """Draw the presets. Buttons: a press is an event, which a choice that the server changes meanwhile is not."""
    titles = {"greedy": _("Greedy"), "usual": "T 0.8 + top-p 0.9", "plain": "T 1"}
    with st.container(horizontal=True, gap="small"):
        for name, preset in PRESETS.items():
            st.button(
                titles[name],
                key=f"generation.preset.{name}",
                type="primary" if preset == values else "secondary",
                on_click=link.assign,
                args=(preset,),
            )
