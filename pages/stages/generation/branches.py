"""All that was tried from a prompt, whoever drew it: the branches, to be walked, compared, named and pruned."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import pandas as pd
import streamlit as st

from lmcore.generation import tree_file
from lmcore.generation.text_run import TextRun
from lmcore.generation.text_tree import TextNode
from lmcore.generation.tree import Node
from pages.common import page
from pages.common.text import _, markdown_literal, visible
from pages.figures import theme
from pages.figures.generation.tree import Path, tree
from pages.figures.theme import fmt_logit, fmt_probability
from pages.stages.generation.runs import SELECTED
from pages.stages.generation.wide import wide

MAX_TOKENS = 24  # of a branch's end are named in the list
MAX_DRAWN = 1_500  # tokens of a tree; more are too small to see
LIST_HEIGHT = 260  # pixels; a longer list of branches scrolls
AnyRun: TypeAlias = TextRun[Any]  # of a local model or of an engine
AnyNode: TypeAlias = Any
_OTHER = "generation.other"  # the leaf the branch in view is compared with


def show(run: AnyRun, first: int | None) -> None:
    """Draw the tree of branches and what can be done with them.

    Args:
        run: where they are.
        first: the position of the first token after the prompt; None where that is not known.
    """
    node, tip = run.node, run.tip  # as they are now: a generation that runs moves on
    leaves = run.tree.leaves()
    if run.tree.root.children or run.pruned:
        st.subheader(_("Branches"), anchor=False)
    if run.tree.root.children:
        in_view = next(leaf for leaf in leaves if tip in leaf.lineage())
        other = _other(leaves, in_view)
        if len(leaves) > 1:
            _tree(run, node, in_view, other)
            with st.container(height=LIST_HEIGHT if len(leaves) > 5 else "content", border=False):
                for number, leaf in enumerate(leaves):
                    _row(run, number, leaf, leaf is in_view)
        _edit(run, in_view, leaves)
        if other is not None:
            _comparison(run, in_view, other, first)
    elif run.pruned:
        _undo(run)


def label(node: TextNode) -> str:
    """Return a token's text, or what stands for one of which the source tells no text."""
    if node.parent is None:
        return _("prompt")
    return visible(node.token) if node.token else "⟨…⟩" if node.token_id is None else f"⟨{node.token_id}⟩"


def log_prob(path: list[AnyNode]) -> float:
    """Return ln P of tokens under the model itself, at T = 1; NaN where one of them is not told."""
    return math.fsum(math.nan if step.log_prob is None else step.log_prob for step in path)


def mean_log_prob(path: list[AnyNode]) -> float:
    """Return the mean of ln P of a branch's tokens under the model itself, at T = 1."""
    return log_prob(path) / len(path) if path else 0.0


def _prob(node: AnyNode) -> float:
    """Return the probability a token was drawn with, or of an engine's what the model itself gives it."""
    if isinstance(node, Node):
        return node.prob
    return 0.0 if node.log_prob is None else math.exp(node.log_prob)


def _row(run: AnyRun, number: int, leaf: AnyNode, in_view: bool) -> None:
    st.button(
        _summary(run, number, leaf),
        key=f"generation.branch.{number}",
        icon=":material/radio_button_checked:" if in_view else ":material/radio_button_unchecked:",
        type="tertiary",
        help=_("Show this branch"),
        on_click=_walk,
        args=(run, leaf),
    )


def _edit(run: AnyRun, leaf: AnyNode, leaves: list[AnyNode]) -> None:
    """Name the branch in view, cut it off, put the last one cut off back, choose one to compare it with."""
    widths = [3, 3, 2, 2] if len(leaves) > 1 else [3, 0.1, 2, 2]  # without another branch there is nothing to compare
    name, other, prune, undo = st.columns(widths, vertical_alignment="bottom")
    key = f"generation.name.{'.'.join(map(label, leaf.path()[-8:]))}.{leaf.depth}"
    st.session_state[key] = run.tree.branch_name(leaf)
    name.text_input(
        _("Name of the current branch"),
        key=key,
        max_chars=tree_file.MAX_NAME,
        on_change=lambda: _rename(run, leaf, st.session_state[key]),
        disabled=run.running,
    )
    if len(leaves) > 1:
        options = [each for each in leaves if each is not leaf]
        chosen = st.session_state.get(_OTHER)
        other.selectbox(
            _("Compare it with"),
            range(len(options)),
            index=options.index(chosen) if chosen in options else 0,
            format_func=lambda index: _short(run, leaves.index(options[index]), options[index]),
            key=f"{key}.other.{len(options)}",
            on_change=lambda: st.session_state.update(
                {_OTHER: options[st.session_state[f"{key}.other.{len(options)}"]]}
            ),
        )
    prune.button(
        _("Remove this branch"),
        key="generation.prune",
        icon=":material/content_cut:",
        help=_("Removes only what belongs to this branch. It can be restored."),
        disabled=run.running,
        on_click=_prune,
        args=(run, leaf),
        width="stretch",
    )
    if run.pruned:
        with undo:
            _undo(run)


def _undo(run: AnyRun) -> None:
    st.button(
        _("Restore the removed branch"),
        key="generation.undo",
        icon=":material/undo:",
        disabled=run.running,
        on_click=_undo_prune,
        args=(run,),
        width="stretch",
    )


def _undo_prune(run: AnyRun) -> None:
    run.undo_prune()
    st.session_state[SELECTED] = None


def _rename(run: AnyRun, leaf: AnyNode, name: str) -> None:
    start = run.tree.branch_start(leaf)
    for node in leaf.lineage():
        node.name = ""
        if node is start:
            break
    leaf.name = name[: tree_file.MAX_NAME]


def _prune(run: AnyRun, leaf: AnyNode) -> None:
    run.prune(run.tree.branch_start(leaf))
    st.session_state[SELECTED] = None


def _walk(run: AnyRun, leaf: AnyNode) -> None:
    run.show_branch(leaf)
    st.session_state[SELECTED] = None


def _other(leaves: list[AnyNode], in_view: AnyNode) -> AnyNode | None:
    options = [leaf for leaf in leaves if leaf is not in_view]
    chosen = st.session_state.get(_OTHER)
    return chosen if chosen in options else options[0] if options else None


def _comparison(run: AnyRun, one: AnyNode, other: AnyNode, start: int | None) -> None:
    """Hold two branches side by side: where they part, and how probable each is."""
    first, second = one.path(), other.path()
    pairs = zip(first, second, strict=False)
    shared = next((n for n, (a, b) in enumerate(pairs) if a is not b), min(len(first), len(second)))
    st.markdown(_("**Two branches compared**"))
    if start is not None and shared < min(len(first), len(second)):
        st.markdown(
            _("They differ from position {position} on: {a} with {p} here, {b} with {q} there.").format(
                position=start + shared,
                a=markdown_literal(first[shared].token),
                p=_probability(first[shared : shared + 1]),
                b=markdown_literal(second[shared].token),
                q=_probability(second[shared : shared + 1]),
            )
        )
    sides = ((one, first), (other, second))
    columns = {
        _("branch"): [_plain(run, leaf) for leaf, _path in sides],
        _("tokens"): [len(path) for _leaf, path in sides],
        _("tokens of its own"): [len(path) - shared for _leaf, path in sides],
        _("mean of ln P"): [mean_log_prob(path) for _leaf, path in sides],
        _("mean of ln P of its own tokens"): [mean_log_prob(path[shared:]) for _leaf, path in sides],
        "ln P": [log_prob(path) for _leaf, path in sides],
        _("probability"): [_probability(path) for _leaf, path in sides],
    }
    told = _(
        "Probability: of all the tokens after the prompt, under the unmodified model (T = 1). A longer text has a "
        "smaller probability, so compare the means."
    )
    if isinstance(one, Node):
        drawn = [math.prod(step.prob for step in path) for _leaf, path in sides]
        columns[_("as drawn")] = list(map(fmt_probability, drawn))
        told += " " + _("As drawn: under the settings with which each token was drawn.")
    st.dataframe(
        pd.DataFrame(columns),
        hide_index=True,
        key="generation.comparison",
        column_config={
            name: st.column_config.NumberColumn(format="%.3f")
            for name in (_("mean of ln P"), _("mean of ln P of its own tokens"), "ln P")
        },
    )
    st.caption(told)


def _probability(path: list[AnyNode]) -> str:
    """Return the probability of tokens under the model itself, or a dash where it is not told."""
    found = math.exp(log_prob(path))
    return "–" if math.isnan(found) else fmt_probability(found)


def _summary(run: AnyRun, number: int, leaf: AnyNode) -> str:
    path = run.tree.path(leaf)
    text = markdown_literal(b"".join(step.token for step in path[-MAX_TOKENS:]))
    name = run.tree.branch_name(leaf)
    return _("{number}: {text} ({n} tokens, mean ln P {mean})").format(
        number=f"{number + 1} {markdown_literal(name)}".replace("␣", " ") if name else number + 1,
        text=text if len(path) <= MAX_TOKENS else f"… {text}",
        n=len(path),
        mean="–" if math.isnan(mean := mean_log_prob(path)) else fmt_logit(mean),
    )


def _short(run: AnyRun, number: int, leaf: AnyNode) -> str:
    """Return a branch's number and name, or how it ends, for a list."""
    return f"{number + 1}: {_plain(run, leaf)}"


def _plain(run: AnyRun, leaf: AnyNode) -> str:
    name = run.tree.branch_name(leaf)
    return (_named(name) if name else visible(b"".join(step.token for step in run.tree.path(leaf)[-6:])))[:60]


def _named(name: str) -> str:
    """Return a branch's name as it is read: its spaces are spaces."""
    return visible(name).replace("␣", " ")


def _tree(run: AnyRun, present: AnyNode, in_view: AnyNode, other: AnyNode | None) -> None:
    nodes = run.tree.nodes()
    if len(nodes) > MAX_DRAWN:
        st.caption(_("A tree of {n:,} tokens is too large to draw.").format(n=len(nodes)))
        return
    number = {node: index for index, node in enumerate(nodes)}
    labels = list(map(label, nodes))
    paths = [Path([number[node] for node in in_view.lineage()], _("current"), theme.CATEGORICAL[0])]
    if other is not None:
        paths.append(Path([number[node] for node in other.lineage()], _("compared"), theme.CATEGORICAL[1]))
    with wide(max(node.depth for node in nodes)):
        page.figure(
            tree(
                [-1 if node.parent is None else number[node.parent] for node in nodes],
                labels,
                [0.0 if node.parent is None else _prob(node) for node in nodes],
                [
                    text if node.parent is None else f"{text} · {node.token_id or ''} · {fmt_probability(_prob(node))}"
                    for text, node in zip(labels, nodes, strict=True)
                ],
                paths=paths,
                present=number[present],
                by_hand=[number[node] for node in nodes if node.by_hand],
                ends={
                    number[leaf]: _named(run.tree.branch_name(leaf))[:24]
                    for leaf in run.tree.leaves()
                    if run.tree.branch_name(leaf)
                },
                x_title=_("tokens after the prompt"),
            ),
            "generation.branches",
            _(
                "The tree of all branches: the current branch in blue, the one compared with it in orange, the "
                "current position outlined."
            ),
        )
