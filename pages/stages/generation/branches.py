"""All that was tried from this prompt: the branches, to be walked, compared, named and pruned."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from lmcore.generation import tree_file
from lmcore.generation.run import GenerationRun
from lmcore.generation.tree import Node
from pages.common import page
from pages.common.text import _, markdown_literal, ngettext, visible
from pages.figures import theme
from pages.figures.generation.tree import Path, tree
from pages.figures.theme import fmt_logit, fmt_probability
from pages.stages.generation import runs
from pages.stages.generation.wide import wide

MAX_TOKENS = 24  # of a branch's end are named in the list
MAX_DRAWN = 1_500  # tokens of a tree; more are too small to see
LIST_HEIGHT = 260  # pixels; a longer list of branches scrolls
_OTHER = "generation.other"  # the leaf the branch in view is compared with


def show(run: GenerationRun) -> None:
    """Draw the tree of branches, what can be done with them, and the runs of other prompts."""
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
            _comparison(run, in_view, other, leaves)
    elif run.pruned:
        _undo(run)
    _earlier()


def mean_log_prob(path: list[Node]) -> float:
    """Return the mean of ln P of a branch's tokens under the model itself, at T = 1."""
    return math.fsum(step.log_prob for step in path) / len(path) if path else 0.0


def _row(run: GenerationRun, number: int, leaf: Node, in_view: bool) -> None:
    st.button(
        _summary(run, number, leaf),
        key=f"generation.branch.{number}",
        icon=":material/radio_button_checked:" if in_view else ":material/radio_button_unchecked:",
        type="tertiary",
        help=_("Show this branch"),
        on_click=_walk,
        args=(run, leaf),
    )


def _edit(run: GenerationRun, leaf: Node, leaves: list[Node]) -> None:
    """Name the branch in view, cut it off, put the last one cut off back, choose one to compare it with."""
    widths = [3, 3, 2, 2] if len(leaves) > 1 else [3, 0.1, 2, 2]  # without another branch there is nothing to compare
    name, other, prune, undo = st.columns(widths, vertical_alignment="bottom")
    key = f"generation.name.{'.'.join(str(step.token_id) for step in run.tree.path(leaf)[-8:])}.{leaf.depth}"
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


def _undo(run: GenerationRun) -> None:
    st.button(
        _("Restore the removed branch"),
        key="generation.undo",
        icon=":material/undo:",
        disabled=run.running,
        on_click=lambda: (run.undo_prune(), st.session_state.update({runs.SELECTED: None})),
        width="stretch",
    )


def _rename(run: GenerationRun, leaf: Node, name: str) -> None:
    start = run.tree.branch_start(leaf)
    for node in leaf.lineage():
        node.name = ""
        if node is start:
            break
    leaf.name = name[: tree_file.MAX_NAME]


def _prune(run: GenerationRun, leaf: Node) -> None:
    run.prune(run.tree.branch_start(leaf))
    st.session_state[runs.SELECTED] = None


def _walk(run: GenerationRun, leaf: Node) -> None:
    run.show_branch(leaf)
    st.session_state[runs.SELECTED] = None


def _other(leaves: list[Node], in_view: Node) -> Node | None:
    options = [leaf for leaf in leaves if leaf is not in_view]
    chosen = st.session_state.get(_OTHER)
    return chosen if chosen in options else options[0] if options else None


def _comparison(run: GenerationRun, one: Node, other: Node, leaves: list[Node]) -> None:
    """Hold two branches side by side: where they part, and how probable each is."""
    first, second = run.tree.path(one), run.tree.path(other)
    pairs = zip(first, second, strict=False)
    shared = next((n for n, (a, b) in enumerate(pairs) if a is not b), min(len(first), len(second)))
    st.markdown(_("**Two branches compared**"))
    if shared < min(len(first), len(second)):
        st.markdown(
            _("They differ from position {position} on: {a} with {p} here, {b} with {q} there.").format(
                position=len(run.tree.prompt_ids) + shared,
                a=markdown_literal(first[shared].token),
                p=fmt_probability(math.exp(first[shared].log_prob)),
                b=markdown_literal(second[shared].token),
                q=fmt_probability(math.exp(second[shared].log_prob)),
            )
        )
    sides = ((one, first, theme.CATEGORICAL[0]), (other, second, theme.CATEGORICAL[1]))
    st.dataframe(
        pd.DataFrame(
            {
                _("branch"): [_plain(run, leaf) for leaf, _path, _colour in sides],
                _("tokens"): [len(path) for _leaf, path, _colour in sides],
                _("tokens of its own"): [len(path) - shared for _leaf, path, _colour in sides],
                _("mean of ln P"): [mean_log_prob(path) for _leaf, path, _colour in sides],
                _("mean of ln P of its own tokens"): [mean_log_prob(path[shared:]) for _leaf, path, _colour in sides],
                "ln P": [math.fsum(step.log_prob for step in path) for _leaf, path, _colour in sides],
                _("probability"): [
                    fmt_probability(math.exp(math.fsum(step.log_prob for step in path)))
                    for _leaf, path, _colour in sides
                ],
                _("as drawn"): [
                    fmt_probability(math.prod(step.prob for step in path)) for _leaf, path, _colour in sides
                ],
            }
        ),
        hide_index=True,
        key="generation.comparison",
        column_config={
            name: st.column_config.NumberColumn(format="%.3f")
            for name in (_("mean of ln P"), _("mean of ln P of its own tokens"), "ln P")
        },
    )
    st.caption(
        _(
            "Probability: of all the tokens after the prompt, under the unmodified model (T = 1). As drawn: "
            "under the settings with which each token was drawn. A longer text has a smaller probability, so "
            "compare the means."
        )
    )


def _summary(run: GenerationRun, number: int, leaf: Node) -> str:
    path = run.tree.path(leaf)
    text = markdown_literal(b"".join(step.token for step in path[-MAX_TOKENS:]))
    name = run.tree.branch_name(leaf)
    return _("{number}: {text} ({n} tokens, mean ln P {mean})").format(
        number=f"{number + 1} {markdown_literal(name)}".replace("␣", " ") if name else number + 1,
        text=text if len(path) <= MAX_TOKENS else f"… {text}",
        n=len(path),
        mean=fmt_logit(mean_log_prob(path)),
    )


def _short(run: GenerationRun, number: int, leaf: Node) -> str:
    """Return a branch's number and name, or how it ends, for a list."""
    return f"{number + 1}: {_plain(run, leaf)}"


def _plain(run: GenerationRun, leaf: Node) -> str:
    name = run.tree.branch_name(leaf)
    return (_named(name) if name else visible(b"".join(step.token for step in run.tree.path(leaf)[-6:])))[:60]


def _named(name: str) -> str:
    """Return a branch's name as it is read: its spaces are spaces."""
    return visible(name).replace("␣", " ")


def _tree(run: GenerationRun, present: Node, in_view: Node, other: Node | None) -> None:
    nodes = run.tree.nodes()
    if len(nodes) > MAX_DRAWN:
        st.caption(_("A tree of {n:,} tokens is too large to draw.").format(n=len(nodes)))
        return
    number = {node: index for index, node in enumerate(nodes)}
    labels = [_("prompt") if node.parent is None else visible(node.token) for node in nodes]
    paths = [Path([number[node] for node in in_view.lineage()], _("current"), theme.CATEGORICAL[0])]
    if other is not None:
        paths.append(Path([number[node] for node in other.lineage()], _("compared"), theme.CATEGORICAL[1]))
    with wide(max(node.depth for node in nodes)):
        page.figure(
            tree(
                [-1 if node.parent is None else number[node.parent] for node in nodes],
                labels,
                [0.0 if node.parent is None else node.prob for node in nodes],
                [
                    label if node.parent is None else f"{label} · {node.token_id} · {fmt_probability(node.prob)}"
                    for label, node in zip(labels, nodes, strict=True)
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


def _earlier() -> None:
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
            help=_("Restore"),
            on_click=runs.bring_back,
            args=(key,),
        )
