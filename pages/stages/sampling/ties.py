"""Temperature 0 over a text: how near the two best tokens are, and which other ways of running it change the best."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from lmcore.analysis.sampling.ties import WAYS, Ties, ties
from lmcore.language_model import LanguageModel
from pages.common import page, session, widgets
from pages.common.text import _, markdown_literal, visible
from pages.figures.sampling.ties import margins_and_differences
from pages.stages.generation import jobs

MAX_WEIGHTS = 200_000_000  # "order" and "bfloat16" hold another copy of them for a moment
MAX_NUMBERS = 128 * 49_152  # logits of the text; "batch" holds four times as many for a moment
AT_ONCE = 5_000  # tokens of a vocabulary: models of so few are run without being asked
_LISTED = 8

CODE = """
import lmcore
from lmcore.analysis.sampling.ties import ties

lm = lmcore.load({name!r})
ids = {ids}
*_, found = ties(lm, ids, first={first})
print(found.margins.logits, found.margins.ulps)
for way in found.ways:
    print(way.name, way.difference.max(), way.flips)
"""


def show() -> None:
    """Offer to look at the prompt of the sampling page."""
    st.subheader(_("Temperature 0 and ties"), anchor=False)
    if not widgets.toggle("ties", _("Run the prompt in other ways, and see whether the best token changes")):
        st.caption(why())
        return
    lm = session.language_model()
    ids = tuple(session.encoding().ids)[: longest(lm)]
    with st.columns([1, 3])[0]:
        controls(lm, ids, 0)
    picture(lm, ids, 0)
    st.code(code(lm, ids, 0), language="python", wrap_lines=True)


def why() -> str:
    """Return the sentence of why two servers differ at temperature 0."""
    return _(
        "A cache, a batch, another order of the sums or bfloat16 round differently: near ties may go either way. Two "
        "servers can therefore differ at temperature 0."
    )


def longest(lm: LanguageModel) -> int:
    """Return how many tokens of a text are run."""
    return min(max(MAX_NUMBERS // lm.config.vocab_size, 2), lm.config.context_length)


def controls(lm: LanguageModel, ids: tuple[int, ...], first: int) -> None:
    """Show the button that runs a text in other ways.

    Args:
        lm: the model.
        ids: the text.
        first: the position of the first step; what stands before it is run at once, as a prompt is.
    """
    ways = _ways_of(lm)
    jobs.button(
        "ties",
        (lm.name, ids, first),
        _("Run it in other ways"),
        lambda: ties(lm, ids, first, ways),
        at_once=lm.config.vocab_size <= AT_ONCE,
    )
    if ways != WAYS:
        st.caption(_("This model is too large to be copied here, so two of the four ways are left out."))


def picture(lm: LanguageModel, ids: tuple[int, ...], first: int) -> None:
    """Draw what is known so far; the arguments are those of `controls`."""
    question = (lm.name, ids, first)
    if jobs.find("ties", question) is None:
        st.info(_("Press the button. This machine runs the text again in each way and compares the logits."))
    jobs.show("ties", question, lambda found: len(found.ways) / found.n_ways, lambda found, _all: _draw(lm, ids, found))


def code(lm: LanguageModel, ids: tuple[int, ...], first: int) -> str:
    """Return the Python that gives the numbers."""
    return CODE.format(name=lm.name, ids=list(ids), first=first).strip("\n")


def _ways_of(lm: LanguageModel) -> tuple[str, ...]:
    copied = sum(weights.numel() for weights in lm.model.parameters()) <= MAX_WEIGHTS
    return WAYS if copied else ("cache", "batch")


def _titles() -> dict[str, str]:
    return {
        "cache": _("token by token, with a KV cache"),
        "batch": _("in a batch of four texts"),
        "order": _("the MLP's neurons in another order"),
        "bfloat16": _("weights and sums in bfloat16"),
    }


def _draw(lm: LanguageModel, ids: Sequence[int], found: Ties) -> None:
    titles = _titles()
    labels = [visible(lm.tokenizer.token_bytes(token)) for token in ids[found.first :]]
    page.figure(
        margins_and_differences(
            labels,
            found.margins.logits,
            {titles[way.name]: way.difference for way in found.ways},
            [bool(found.flips(step)) for step in range(len(labels))],
            titles=(_("step"), _("logits, logarithmic")),
            names=(_("margin of the best token"), _("another token is the best in some way")),
        ),
        "ties-chart",
        _(
            "Points: how far the best logit is ahead of the second, after each token. Lines: the largest change of any "
            "logit in each way. A point above twice a line cannot change its choice there."
        ),
    )
    if found.ways:
        st.table(_summary(found, labels))
    page.numbers_table(_steps(lm, found, labels), "margins", {_("margin (logits)"): "logit"})


def _summary(found: Ties, labels: Sequence[str]) -> pd.DataFrame:
    titles = _titles()
    rows = [
        {
            _("The same text"): titles[way.name],
            _("Largest difference of a logit"): f"{float(way.difference.max()):.3g}",
            _("Best token changes after"): _places(labels, way.flips),
        }
        for way in found.ways
    ]
    return pd.DataFrame(rows).set_index(_("The same text"))


def _places(labels: Sequence[str], flips: Sequence[int]) -> str:
    shown = [f"{markdown_literal(labels[step])} ({step + 1})" for step in flips[:_LISTED]]
    return ", ".join([*shown, *(["…"] if len(flips) > _LISTED else [])]) or _("nowhere")


def _steps(lm: LanguageModel, found: Ties, labels: Sequence[str]) -> pd.DataFrame:
    """Return a row for each step, in the order of the text."""
    near, titles = found.margins, _titles()

    def name(token: int) -> str:
        return visible(lm.tokenizer.token_bytes(token))

    flips = [found.flips(step) for step in range(len(labels))]
    return pd.DataFrame(
        {
            _("step"): range(1, len(labels) + 1),
            _("After token"): labels,
            _("best"): [name(token) for token in near.best.tolist()],
            _("second"): [name(token) for token in near.second.tolist()],
            _("margin (logits)"): near.logits.tolist(),
            _("in ulp of float32"): near.ulps.tolist(),
            _("in ulp of bfloat16"): near.bfloat16_ulps.tolist(),
            _("other choices"): [
                "; ".join(f"{titles[way]}: {name(token)}" for way, token in each.items()) for each in flips
            ],
        }
    )
