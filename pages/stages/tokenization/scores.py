"""A scored vocabulary on the prompt: the winning segmentation, its runners-up, and how far behind they are."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from lmcore.tokenizer.vocabularies import OfLibrary
from pages.common import page, widgets
from pages.common.text import _, visible
from pages.figures import theme
from pages.figures.theme import fmt_logit, fmt_probability
from pages.live.vocabulary_rows import colour
from pages.stages.tokenization import compare, vocabularies

MAX_CHARACTERS = 120  # of the text are cut: more than a reader can follow

CODE = """
from lmcore.loading.vocabulary_files import load_vocabulary

found = load_vocabulary({name!r}).segment({text!r}, {n})
print(found.count)
for each in found.best:
    print(each.score, [piece.text for piece in each.pieces])
"""


def show(name: str, text: str) -> None:
    """Draw the view."""
    if len(text) > MAX_CHARACTERS:
        st.caption(_("The first {n} characters of the prompt are cut.").format(n=MAX_CHARACTERS))
        text = text[:MAX_CHARACTERS]
    st.markdown(
        _(
            "This vocabulary has no merges: each piece has a score, the ln of its probability. A way to cut the text "
            "is as probable as the product of its pieces, so the scores add up; the highest sum wins. Few long pieces "
            "beat many short ones, unless they are rare."
        )
    )
    try:
        vocabulary = vocabularies.load(name)
    except ValueError as error:
        st.error(_("The vocabulary {name} could not be read.").format(name=vocabularies.title(name)))
        st.code(str(error), language=None, wrap_lines=True)
        return
    assert isinstance(vocabulary, OfLibrary)
    n = widgets.slider("merges.ways", _("Segmentations shown"), 2, 8, 4)
    found = vocabulary.segment(text, n)
    if not found.best or not found.best[0].pieces:
        st.info(_("No pieces of this vocabulary make up this text."))
        return
    shares = [math.exp(each.score - found.total) for each in found.best]
    compare.rows(
        found.text,
        0,
        [
            compare.Row(
                f"ln P {fmt_logit(each.score)} · {fmt_probability(share)}",
                vocabulary,
                each.cuts(),
                [fmt_logit(piece.score) for piece in each.pieces],
            )
            for each, share in zip(found.best, shares, strict=True)
        ],
        key="scores.rows",
    )
    st.caption(
        _(
            "The winner is in the first row, which is what encoding gives. Small numbers are scores; their sum is "
            "ln P. Percent: the part of the probability of all {n:,} ways to cut this text together."
        ).format(n=found.count)
    )
    names = [str(number) for number in range(1, len(shares) + 1)]
    behind = [each.score - found.best[0].score for each in found.best]
    if found.count > len(shares):
        names.append(_("{n:,} more").format(n=found.count - len(shares)))
    page.figure(
        theme.bars(
            [*shares, max(1.0 - math.fsum(shares), 0.0)][: len(names)],
            names,
            kind="probability",
            value_title=_("probability among all segmentations"),
            colours=[*(colour(row) for row in range(len(shares))), theme.REMOVED][: len(names)],
        ),
        "scores.shares",
        _("How much of the probability the best segmentations have, and all others together."),
    )
    page.numbers_table(
        pd.DataFrame(
            {
                _("segmentation"): range(1, len(shares) + 1),
                _("pieces"): [" | ".join(visible(piece.text) for piece in each.pieces) for each in found.best],
                _("number of pieces"): [len(each.pieces) for each in found.best],
                "ln P": [each.score for each in found.best],
                _("behind the winner"): behind,
                _("probability among all segmentations"): shares,
                "ids": [", ".join(str(piece.token_id) for piece in each.pieces) for each in found.best],
            }
        ),
        "segmentations",
        {
            "ln P": "logit",
            _("behind the winner"): "logit",
            _("probability among all segmentations"): "probability",
        },
    )
    page.snippet(CODE.format(name=name, text=text, n=n))
