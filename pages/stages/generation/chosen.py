"""The chosen token's distribution as it was when it was drawn, and another token in its place."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from lmcore import Reshaped, SamplingSettings, distribution
from lmcore.generation.run import GenerationRun
from lmcore.generation.tree import Node
from lmcore.sampling import registry
from pages.common import page
from pages.common.text import _, in_bits, markdown_literal, visible
from pages.figures.generation import distribution as figures
from pages.figures.theme import fmt_probability
from pages.live.sampling_lab.labels import stage_titles, translated_note
from pages.stages.generation.runs import SELECTED
from pages.stages.sampling import knobs, remembered

MAX_CANDIDATES = 100  # offered to be taken instead, the most probable first


def show(run: GenerationRun, node: Node | None, top_n: int) -> None:
    """Draw the distribution of a node, or with None of the token that comes next, and what can be done there."""
    if node is None and (run.end or run.running):
        return
    result = run.next_result() if node is None else run.result(node)
    position = len(run.tree.prompt_ids) + (run.node.depth if node is None else node.depth - 1)
    order = distribution.top(result.start.dense(), top_n).ids.tolist()
    if node is not None and node.token_id not in order:
        order.append(node.token_id)
    page.figure(
        figures.distribution(
            result.initial_probs,
            result.probs,
            result.removed,
            order,
            [_label(run, token_id) for token_id in order],
            chosen=None if node is None else node.token_id,
            wording=figures.Wording(
                model=_("unmodified model (T = 1)"),
                drawn_from=_("drawn from"),
                removed=_("removed"),
                rest=_("the other {n:,} tokens"),
                axis=_("probability"),
            ),
        ),
        "generation.distribution",
        _("Next-token distribution at position {position}: {n} most probable tokens and the rest as one bar.").format(
            position=position, n=top_n
        ),
    )
    _facts(node, result, position)
    if not run.running:
        _stages(run, node, result)
        _actions(run, node, result)


def settings_in_words(settings: SamplingSettings) -> str:
    """Return the settings that are away from off, and the seed."""
    active = [f"{name} {value}" for name, value in knobs.given(settings).items()]
    return markdown_literal(", ".join([*(active or [_("plain softmax")]), f"seed {settings.seed}"])).replace("␣", " ")


def _facts(node: Node | None, result: Reshaped, position: int) -> None:
    candidates = _("{n:,} of {v:,} tokens can be drawn; {mass} of the model's probability was removed.").format(
        n=result.candidates, v=result.start.vocab_size, mass=fmt_probability(result.removed_mass)
    )
    if node is None:
        st.markdown(_("**Position {position}: not drawn yet.**").format(position=position) + " " + candidates)
    else:
        drawn = _("Chosen by hand") if node.by_hand else _("Drawn")
        st.markdown(
            _("**Position {position}: {token}**, id {token_id}. {drawn} with {settings}.").format(
                position=position,
                token=markdown_literal(node.token),
                token_id=node.token_id,
                drawn=drawn,
                settings=settings_in_words(result.settings),
            )
            + " "
            + _("Probability {p}. Unmodified model: {own}, rank {rank}, surprisal {bits}.").format(
                p=fmt_probability(node.prob),
                own=fmt_probability(float(result.initial_probs[node.token_id])),
                rank=node.rank,
                bits=in_bits(-node.log_prob / math.log(2)),
            )
            + " "
            + candidates
        )
    if result.candidates == 1:
        st.caption(_("1 candidate: the seed has no effect."))


def _stages(run: GenerationRun, node: Node | None, result: Reshaped) -> None:
    """Tell what each stage did to the distribution, and the state of those that carry one from token to token."""
    if not result.steps:
        return
    titles, rows = stage_titles(), []
    before, after = remembered.states(result), remembered.states(result, node.token_id) if node is not None else {}
    for step in result.steps:
        row = {
            _("stage"): titles[step.name],
            _("settings"): ", ".join(f"{name} {value}" for name, value in step.settings.items()),
            _("candidates"): f"{step.kept:,}",
            _("removed"): fmt_probability(step.removed_mass) if step.kept < len(step.before) else "",
            _("remark"): translated_note(step.note),
        }
        if before:
            row[_("state before")], row[_("state after")] = before.get(step.name, ""), after.get(step.name, "")
        rows.append(row)
    st.dataframe(pd.DataFrame(rows), hide_index=True, key="generation.stages_of_token")
    history = run.tree.history(run.node if node is None or node.parent is None else node.parent)
    with st.expander(_("Memory, chance and state of these stages")) if _looks_further(result) else st.container():
        remembered.show(result, history, run.tree.lm.tokenizer.token_bytes, "generation.remembered")


def _looks_further(result: Reshaped) -> bool:
    stages = [registry.get(step.name) for step in result.steps]
    if len(result.ways) > 1:
        return True
    return any(stage.name == "dry" or stage.by_chance or stage.start is not None for stage in stages)


def _actions(run: GenerationRun, node: Node | None, result: Reshaped) -> None:
    parent = run.node if node is None else node.parent
    assert parent is not None  # the root is not chosen
    present = None if node is None else node.token_id
    order = [i for i in distribution.top(result.start.dense(), MAX_CANDIDATES).ids.tolist() if i != present]
    removed, gone = result.removed, _("removed")

    described = {
        i: f"{_label(run, i)} · {gone if removed[i] else fmt_probability(float(result.probs[i]))}" for i in order
    }
    key = f"generation.candidate.{_place(run, node)}"
    now = st.session_state.get(key)
    pick, take, back = st.columns([3, 2, 2], vertical_alignment="bottom")
    wanted = pick.selectbox(
        _("Another token here"),
        order,
        order.index(now) if now in order else 0,
        format_func=described.__getitem__,
        key=key,
    )
    text = _("Choose") if node is None else _("Choose it instead")
    if take.button(text, key="generation.take", width="stretch", help=_("Starts a branch; nothing is lost.")):
        try:
            run.take(parent, wanted)
        except ValueError as error:  # the text before it may not fit the constraint that holds now
            run.error = error
        st.session_state[SELECTED] = None
        st.rerun()
    if node is not None and node is not run.node:
        ahead = node not in run.node.lineage()
        label = _("Go forward to here") if ahead else _("Rewind to here")
        if back.button(label, key="generation.go_to", width="stretch"):
            run.go_to(node)
            st.session_state[SELECTED] = None
            st.rerun()


def _place(run: GenerationRun, node: Node | None) -> str:
    """Return a name for a place in the tree: at another place there are other candidates to choose from."""
    path = run.tree.path(node or run.node)
    return ".".join(str(step.token_id) for step in path[-8:]) + f".{len(path)}.{node is None}"


def _label(run: GenerationRun, token_id: int) -> str:
    return f"{visible(run.tree.lm.tokenizer.token_bytes(token_id))} · {token_id}"
