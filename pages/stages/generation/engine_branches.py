"""All that a server drew from this prompt: its branches, to be walked, and the numbers of the one in view."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from lmcore.generation.engine_run import EngineRun, ServedNode
from pages.common import engines, page
from pages.common.text import _, markdown_literal
from pages.figures import theme
from pages.figures.generation.tree import Path, tree
from pages.stages.generation import engine_line
from pages.stages.generation.branches import MAX_DRAWN, MAX_TOKENS


def show(run: EngineRun) -> None:
    """Draw the tree of branches and the table of the one in view."""
    tip, node = run.tip, run.node  # as they are now: a run moves on
    leaves = run.tree.leaves()
    if len(leaves) > 1:
        st.subheader(_("Branches"), anchor=False)
        _tree(run, node, tip)
        for number, leaf in enumerate(leaves):
            _row(run, number, leaf, leaf in tip.lineage() or tip in leaf.lineage())
    if node.parent is not None:
        st.subheader(_("The numbers"), anchor=False)
        page.numbers_table(
            engines.without_empty_ids(table(node)), "engine-generation", {"P": "probability", "ln P": "logit"}
        )


def table(node: ServedNode) -> pd.DataFrame:
    """Return one row per token of the text up to a node."""
    path = node.path()
    pieces = [step.piece for step in path if step.piece is not None]
    samplers = [step.settings for step in path]
    return pd.DataFrame(
        {
            _("token after the prompt"): range(1, len(path) + 1),
            "id": pd.array([piece.token_id for piece in pieces], dtype="Int64"),
            _("token"): [engine_line.token_label(step) for step in path],
            "P": [math.nan if piece.log_prob is None else math.exp(piece.log_prob) for piece in pieces],
            "ln P": [math.nan if piece.log_prob is None else piece.log_prob for piece in pieces],
            _("rank"): pd.array([piece.rank for piece in pieces], dtype="Int64"),
            _("by hand"): [step.by_hand for step in path],
            "temperature": [None if sampler is None else sampler.temperature for sampler in samplers],
            "top_k": pd.array([None if sampler is None else sampler.top_k for sampler in samplers], dtype="Int64"),
            "top_p": [None if sampler is None else sampler.top_p for sampler in samplers],
            "seed": pd.array([None if sampler is None else sampler.seed for sampler in samplers], dtype="Int64"),
        }
    )


def _row(run: EngineRun, number: int, leaf: ServedNode, in_view: bool) -> None:
    path = leaf.path()
    text = "".join(step.piece.text for step in path[-MAX_TOKENS:] if step.piece is not None)
    shown = markdown_literal(text)
    st.button(
        _("{number}: {text} ({n} tokens)").format(
            number=number + 1, text=shown if len(path) <= MAX_TOKENS else f"… {shown}", n=len(path)
        ),
        key=f"generation.engine.branch.{number}",
        icon=":material/radio_button_checked:" if in_view else ":material/radio_button_unchecked:",
        type="tertiary",
        help=_("Show this branch"),
        on_click=lambda: (run.show_branch(leaf), st.session_state.update({engine_line.SELECTED: None})),
    )


def _tree(run: EngineRun, present: ServedNode, tip: ServedNode) -> None:
    nodes = run.tree.nodes()
    if len(nodes) > MAX_DRAWN:
        st.caption(_("A tree of {n:,} tokens is too large to draw.").format(n=len(nodes)))
        return
    number = {node: index for index, node in enumerate(nodes)}
    labels = [_("prompt") if node.piece is None else engine_line.token_label(node) for node in nodes]
    page.figure(
        tree(
            [-1 if node.parent is None else number[node.parent] for node in nodes],
            labels,
            [math.exp(node.piece.log_prob) if node.piece and node.piece.log_prob else 0.0 for node in nodes],
            labels,
            paths=[Path([number[node] for node in tip.lineage()], _("current"), theme.CATEGORICAL[0])],
            present=number[present],
            by_hand=[number[node] for node in nodes if node.by_hand],
            x_title=_("tokens after the prompt"),
        ),
        "generation.engine.branches",
        _("The tree of all drawn tokens: the current branch in blue, the current position outlined."),
    )
