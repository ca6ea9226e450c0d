"""Where the two part first, how far they are apart along the text, and the two distributions of one place."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from lmcore.compare import Comparison, Divergence, Finding, Served, Side
from lmcore.compare.hidden import StreamStep
from pages.common import conversation, engines, link, page, session, widgets
from pages.common.shared import shared
from pages.common.text import _, plotly_literal, visible
from pages.figures.compare import apart as figures
from pages.figures.logits import positions as bars
from pages.stages.compare import words
from pages.stages.compare.sides import Pair, choose, name_of
from pages.stages.sampling import knobs

N_BARS = 5
_PLACE = "compare.place"
_WORST = "compare.worst"  # the place that was the worst when the page was drawn last
_OPENS = {
    **{"text": "tokenization", "ids": "tokenization", "logits": "logits"},
    **{"settings": "sampling", "draw": "generation"},
}
"""A stage -> the page that shows it."""


@dataclass(frozen=True)
class Found:
    """What is kept of a comparison for all sessions; the logits are kept elsewhere, as long as there is room."""

    findings: tuple[Finding, ...]
    places: tuple[tuple[int, int], ...]
    divergence: Divergence
    parts_in: StreamStep | None
    same_vocabulary: bool


def found_of(pair: Pair, comparison: Comparison) -> Found:
    """Return what a comparison finds, computed once for all sessions; the comparison then knows it too."""
    found = _found_of(pair, comparison)
    comparison.divergence = found.divergence
    return found


def _found_of(pair: Pair, comparison: Comparison) -> Found:
    lock = session.forward_lock()
    served = next((side.engine for side in (pair.a, pair.b) if isinstance(side, Served)), None)
    if served is not None:
        return engines.ask(served, ("compare", pair.key), lambda: _found(comparison, lock))
    return _kept(pair.key, comparison)


@shared(entries=32)
def _kept(key: str, _comparison: Comparison) -> Found:
    return _found(_comparison, session.forward_lock())


def _found(comparison: Comparison, lock: AbstractContextManager[object]) -> Found:
    first = comparison.first
    inside = None
    if first is not None and first.stage == "logits":
        with lock:
            inside = comparison.parts_in
    return Found(comparison.findings, comparison.places, comparison.divergence, inside, comparison.same_vocabulary)


def show() -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    with controls:
        pair = choose()
        comparison = pair.comparison()
        found = found_of(pair, comparison)
        place = _place(found.divergence) if len(found.places) > 1 else 0
    with picture:
        _verdict(pair, found)
        if found.places:
            labels = _labels(found, comparison)
            along, beside = st.columns([3, 2])
            with along:
                _along(found, labels, place)
            with beside:
                _beside(pair, comparison, place)
        else:
            st.info(_("No position can be compared: the two tell nothing of the same place of the text."))
    if found.places:
        _numbers(found, comparison, labels)
    if pair.local is not None:
        page.snippet(snippet(pair))


def _place(apart: Divergence) -> int:
    """Let the reader choose a place: the worst to begin with, which another comparison may have elsewhere."""
    first, before = worst(apart)[0], st.session_state.get(_WORST)
    if before is not None and before != first and st.session_state.get(_PLACE) == before:
        link.assign({_PLACE: first})  # nobody has moved it
    st.session_state[_WORST] = first
    return widgets.slider(_PLACE, _("Place in the text"), 0, len(apart) - 1, first)


def _verdict(pair: Pair, found: Found) -> None:
    """Say in one line where the two part first, and offer the page that shows it."""
    first = next((each for each in found.findings if each.same is False), None)
    names = words.stage_names()
    marks = {True: "✓", False: "✗", None: "–"}
    sentence = words.verdict(first)
    if found.parts_in is not None:
        sentence = f"{sentence} {words.where(found.parts_in)}"
    logits = next(each for each in found.findings if each.stage == "logits")
    if first is None and logits.same:
        sentence = f"{sentence} {words.said(logits.note)}"  # by how much at most
    st.markdown(sentence)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("   ".join(f"{marks[each.same]} {names[each.stage]}" for each in found.findings), width="content")
        if first is not None:
            _show_it(pair, first)
    if pair.cut is not None:
        st.caption(_("The first {n} tokens are compared.").format(n=pair.cut))


def _show_it(pair: Pair, first: Finding) -> None:
    """Offer the page that shows where the two part: for A here, for B in a tab of its own, so that A stays as it is."""
    stage = _OPENS[first.stage]
    values: dict[str, object] = {}
    if first.stage == "logits" and first.place is not None:
        values = {"position": first.place}
    if first.stage == "text" and conversation.is_on():
        values = {"tokenization.view": "chat"}
    with st.container(width="content"):
        if name_of(pair.a) == session.model_name():
            page.follow(page.Suggestion(_("Show A"), stage, values))
        else:
            page.follow_in_a_tab(page.Suggestion(_("Show A"), stage, {**pair.opens[0], **values}))
    if pair.opens[1]:
        with st.container(width="content"):
            page.follow_in_a_tab(page.Suggestion(_("Show B"), stage, {**pair.opens[1], **values}))


def _labels(found: Found, comparison: Comparison) -> list[str]:
    """Return the token at each place, of the side that tells its tokens; of a pasted answer, how many came before."""
    for run, column in ((comparison.a, 0), (comparison.b, 1)):
        if run.tokens:
            places = [pair[column] for pair in found.places]
            return [visible(run.tokens[i]) if i < len(run.tokens) else f"+{i - len(run.tokens) + 1}" for i in places]
    return [f"+{i}" for i, _j in found.places]


def _along(found: Found, labels: list[str], place: int) -> None:
    """Draw the curve."""
    apart = found.divergence
    page.figure(
        figures.along_the_text(
            labels,
            apart.kl_ab,
            apart.flips.tolist(),
            place,
            (_("Token"), _("KL(A‖B), bits")),
            _("another token is the most probable"),
        ),
        "compare.along",
        _(
            "Line: how far B's next-token distribution is from A's after each token, KL(A‖B) in bits. "
            "A diamond: the most probable token is another one."
        ),
    )


def _beside(pair: Pair, comparison: Comparison, place: int) -> None:
    """Draw the two distributions of a place."""
    rows = comparison.beside(place, N_BARS)[:N_BARS]
    page.figure(
        bars.next_tokens(
            [visible(row.token) for row in rows],
            [row.a or 0.0 for row in rows],
            [row.b or 0.0 for row in rows],
            (f"A: {plotly_literal(name_of(pair.a))}", f"B: {plotly_literal(name_of(pair.b))}"),
            None,
        ),
        "compare.beside",
        _(
            "Bars: the probability of each of the most probable next tokens at this place, by A and by B, before "
            "the sampler."
        ),
    )


def _numbers(found: Found, comparison: Comparison, labels: list[str]) -> None:
    """Show the means, and every place, the worst first."""
    apart = found.divergence
    columns = st.columns(4)
    columns[0].metric(_("KL(A‖B), mean"), f"{apart.kl_ab.mean():.4g}", help=_("In bits per position."))
    columns[1].metric(_("KL(B‖A), mean"), f"{apart.kl_ba.mean():.4g}", help=_("In bits per position."))
    columns[2].metric(_("Total variation, mean"), f"{apart.total_variation.mean():.4g}")
    columns[3].metric(_("Another first token"), f"{apart.flips.mean():.1%}")
    if not found.same_vocabulary:
        st.caption(
            _(
                "The two vocabularies differ: places are those at which both have a border between tokens, and the "
                "numbers are over the tokens both have. These hold {a} of A's probability and {b} of B's."
            ).format(a=f"{apart.covered_a.mean():.1%}", b=f"{apart.covered_b.mean():.1%}")
        )
    elif apart.covered_a.mean() < 0.999999:
        st.caption(
            _(
                "One side tells its most probable tokens only; all others count as one. KL and total variation are "
                "then lower bounds."
            )
        )
    order = worst(apart)
    firsts = [
        [visible(comparison.token(run, int(ids[index]))) for index in order]
        for run, ids in ((comparison.a, apart.first_a), (comparison.b, apart.first_b))
    ]
    frame = pd.DataFrame(
        {
            _("Place"): order,
            _("Token"): [labels[index] for index in order],
            _("KL(A‖B), bits"): apart.kl_ab[order],
            _("KL(B‖A), bits"): apart.kl_ba[order],
            _("Total variation"): apart.total_variation[order],
            _("A's first"): firsts[0],
            _("B's first"): firsts[1],
            _("Rank of B's first under A"): apart.rank[order],
            _("Margin of A, bits"): apart.margin[order],
        }
    )
    st.subheader(_("Every place, the worst first"), anchor=False)
    numbers = (_("KL(A‖B), bits"), _("KL(B‖A), bits"), _("Total variation"), _("Margin of A, bits"))
    page.numbers_table(frame, "compare", dict.fromkeys(numbers, "%.5f"))


def worst(apart: Divergence) -> list[int]:
    """Return the places by their KL(A‖B), the largest first."""
    return np.argsort(-apart.kl_ab, kind="stable").tolist()


def snippet(pair: Pair) -> str:
    """Return the lines of Python."""
    assert isinstance(pair.a, Side) and isinstance(pair.b, Side)
    lines = [
        "import lmcore",
        "from lmcore.compare import Side",
        "",
        f"a = {_side(pair.a)}",
        f"b = {_side(pair.b)}",
        "found = lmcore.compare(a, b)",
        "print(found.first_difference, found.sentence)",
        "print(found.kl.a_b.mean(), found.kl.b_a.mean(), found.total_variation.mean(), found.flips.mean())",
    ]
    return "\n".join(lines)


def _side(side: Side) -> str:
    values = {**knobs.given(side.settings), "seed": side.settings.seed}
    settings = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return (
        f"Side(model=lmcore.load({side.model.name!r}), ids={side.ids!r}, text={str.__str__(side.text or '')!r}, "
        f"settings=lmcore.SamplingSettings({settings}))"
    )
