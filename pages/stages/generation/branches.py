"""All that was tried from this prompt: the branches, to be compared and walked."""

from __future__ import annotations

import math

import streamlit as st

from lmcore.generation.run import GenerationRun
from lmcore.generation.tree import Node
from pages.common import page
from pages.common.text import _, markdown_literal, ngettext, visible
from pages.figures import generation as figures
from pages.figures.theme import fmt_probability
from pages.stages.generation import runs

MAX_TOKENS = 24  # of a branch's end are named in the list
LIST_HEIGHT = 260  # pixels; a longer list of branches scrolls


def show(run: GenerationRun) -> None:
    """Draw the tree of branches, where there is more than one, and offer the runs of other prompts."""
    node, tip = run.node, run.tip  # as they are now: a generation that runs moves on
    leaves = run.tree.leaves()
    if len(leaves) > 1:
        st.subheader(_("Branches"), anchor=False)
        _tree(run, node, tip)
        in_view = next(leaf for leaf in leaves if tip in leaf.lineage())
        with st.container(height=LIST_HEIGHT if len(leaves) > 5 else "content", border=False):
            for number, leaf in enumerate(leaves):
                st.button(
                    _summary(run, number, leaf),
                    key=f"generation.branch.{number}",
                    icon=":material/radio_button_checked:" if leaf is in_view else ":material/radio_button_unchecked:",
                    type="tertiary",
                    help=_("Bring this branch into view"),
                    on_click=_walk,
                    args=(run, leaf),
                )
    others = runs.earlier()
    if others:
        st.subheader(_("Earlier generations"), anchor=False)
    for number, (key, other) in enumerate(others):
        n = other.tip.depth
        st.button(
            ngettext("{prompt} ({model}): {n} token", "{prompt} ({model}): {n} tokens", n).format(
                prompt=markdown_literal(key[1][:40]), model=key[0], n=n
            ),
            key=f"generation.earlier.{number}",
            icon=":material/undo:",
            help=_("Bring it back"),
            on_click=runs.bring_back,
            args=(key,),
        )


def mean_log_prob(path: list[Node]) -> float:
    """Return the mean of ln P of a branch's tokens under the model itself, at T = 1."""
    return math.fsum(step.log_prob for step in path) / len(path) if path else 0.0


def _walk(run: GenerationRun, leaf: Node) -> None:
    run.show_branch(leaf)
    st.session_state[runs.SELECTED] = None


def _summary(run: GenerationRun, number: int, leaf: Node) -> str:
    path = run.tree.path(leaf)
    text = markdown_literal(b"".join(step.token for step in path[-MAX_TOKENS:]))
    return _("{number}: {text} ({n} tokens, mean ln P {mean})").format(
        number=number + 1,
        text=text if len(path) <= MAX_TOKENS else f"… {text}",
        n=len(path),
        mean=f"{mean_log_prob(path):.3f}".replace("-", "−"),
    )


def _tree(run: GenerationRun, present: Node, tip: Node) -> None:
    nodes: list[Node] = []
    waiting = [run.tree.root]
    while waiting:
        nodes.append(node := waiting.pop())
        waiting.extend(reversed(node.children))
    number = {id(node): index for index, node in enumerate(nodes)}
    in_view = {id(node) for node in tip.lineage()}
    labels = [_("prompt") if node.parent is None else visible(node.token) for node in nodes]
    page.figure(
        figures.branches(
            [-1 if node.parent is None else number[id(node.parent)] for node in nodes],
            labels,
            [0.0 if node.parent is None else node.prob for node in nodes],
            [
                label if node.parent is None else f"{label} · {node.token_id} · {fmt_probability(node.prob)}"
                for label, node in zip(labels, nodes, strict=True)
            ],
            in_view=[id(node) in in_view for node in nodes],
            present=number[id(present)],
            by_hand=[node.by_hand for node in nodes],
            x_title=_("tokens after the prompt"),
        ),
        "generation.branches",
        _("The tree of everything tried; the branch in view is drawn in blue, the present place outlined."),
    )
