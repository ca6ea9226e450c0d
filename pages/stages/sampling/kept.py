"""A distribution kept from an earlier step of a generation: the logits a token was drawn from, and the settings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from lmcore import LanguageModel, Reshaped
from lmcore.generation.run import GenerationRun
from lmcore.generation.tree import Node
from pages.common import link, stages
from pages.common.text import _, markdown_literal, visible
from pages.figures.theme import fmt_probability
from pages.live.token_strip import token_strip
from pages.stages.generation import runs
from pages.stages.sampling import knobs

_RUN, _LEAF, _PLACE = "kept.run", "kept.leaf", "kept.place"


@dataclass(frozen=True)
class KeptStep:
    """The step that was chosen.

    Attributes:
        lm: the model that made it.
        prompt_ids: the prompt.
        generated: ids of the tokens generated before the step.
        logits: [V] float32, what it was drawn from.
    """

    lm: LanguageModel
    prompt_ids: tuple[int, ...]
    generated: tuple[int, ...]
    logits: np.ndarray


def choose() -> KeptStep:
    """Let the reader choose a generation, a branch of it and a step; without any the page says so and stops."""
    found = runs.kept()
    if not found:
        st.info(_("Nothing has been generated in this session yet. Every step is kept, and you can look at it here."))
        st.page_link(stages.script("generation"), label=_("Generate a text"), icon=":material/arrow_forward:")
        link.stop()
    run = _run(found)
    path = run.tree.path(_leaf(run))
    place = st.session_state.get(_PLACE)
    place = len(path) - 1 if place is None else min(place, len(path) - 1)
    st.caption(_("Choose a step: the distribution it was drawn from is shown"))
    token_strip(
        [node.token for node in path],
        [fmt_probability(node.prob) for node in path],
        key="kept.strip",
        label=_("Choose a step: the distribution it was drawn from is shown"),
        selected=place,
        on_select=lambda chosen: st.session_state.update({_PLACE: chosen}),
        first_position=len(run.tree.prompt_ids),
    )
    node = path[place]
    result = run.result(node)
    _tell(node, result)
    generated = tuple(step.token_id for step in path[:place])
    return KeptStep(run.tree.lm, run.tree.prompt_ids, generated, _dense(result))


def _run(found: list[tuple[runs.Key, GenerationRun]]) -> GenerationRun:
    titles = [f"{key[0]}: {visible(key[1])}" + (" · " + _("Chat") if key[2] else "") for key, _run in found]
    by_title = dict(zip(titles, (run for _key, run in found), strict=True))
    if st.session_state.get(_RUN) not in by_title:
        st.session_state[_RUN] = titles[0]
    now = titles.index(st.session_state[_RUN])
    chosen = st.selectbox(_("Generation"), titles, now, key=_RUN, persist_state="session", on_change=_forget_place)
    return by_title[chosen]


def _leaf(run: GenerationRun) -> Node:
    leaves = run.tree.leaves()
    if len(leaves) == 1:
        return leaves[0]
    texts = {number: b"".join(node.token for node in run.tree.path(leaf)) for number, leaf in enumerate(leaves)}
    shown = next((number for number, leaf in enumerate(leaves) if leaf is run.tip), 0)
    if st.session_state.get(_LEAF) not in texts:
        st.session_state[_LEAF] = shown
    number = st.selectbox(
        _("Branch"),
        list(texts),
        st.session_state[_LEAF],
        format_func=lambda number: f"{number + 1}: {visible(texts[number])[:80]}",
        key=_LEAF,
        persist_state="session",
        on_change=_forget_place,
    )
    return leaves[number]


def _tell(node: Node, result: Reshaped) -> None:
    """Say what was drawn and under which settings, and offer to set the knobs to them."""
    settings = result.settings
    given = [f"{name} {value}" for name, value in knobs.given(settings).items()] or [_("the plain softmax")]
    named = markdown_literal(", ".join([*given, f"seed {settings.seed}"])).replace("␣", " ")
    token = markdown_literal(node.token)
    p = fmt_probability(node.prob).replace(" ", "\u00a0")  # no line begins with a %
    said, button = st.columns([3, 1], vertical_alignment="center")
    took = _("{token} was chosen by hand") if node.by_hand else _("{token} was drawn")
    sentence = took + _(" under {settings}, where its probability was {p}.")
    said.markdown(sentence.format(token=token, settings=named, p=p))
    button.button(
        _("Use these settings"),
        key="kept.take",
        on_click=knobs.set_to,
        args=(settings,),
        disabled=knobs.given(knobs.settings(result.start.vocab_size)) == knobs.given(settings),
        width="stretch",
    )


def _dense(result: Reshaped) -> np.ndarray:
    start = result.start
    if start.ids is None:
        return start.logits.numpy()
    logits = np.full(start.vocab_size, -np.inf, dtype=start.logits.numpy().dtype)
    logits[start.ids.numpy()] = start.logits.numpy()
    return logits


def _forget_place() -> None:
    st.session_state[_PLACE] = None
