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
        st.caption(_("Only the first {n} characters of the prompt are tokenized.").format(n=MAX_CHARACTERS))
        text = text[:MAX_CHARACTERS]
    st.markdown(
        _(
            "This vocabulary has no merges. Each piece has a score, the logarithm of its probability. The "
            "probability of a segmentation is the product over its pieces, so the scores add up, and the "
            "highest sum wins. A few long pieces beat many short ones, unless they are rare."
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
        st.info(_("The pieces of this vocabulary cannot make up this text."))
        return
    shares = [math.exp(each.score - found.total) for each in found.best]
    compare.rows(
        found.text,
        0,
        [
            compare.Split(
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
            "The first row is the best segmentation, which is what encoding gives. Small numbers are scores; "
            "their sum is ln P. The percentage is the share of the total probability of all {n:,} "
            "segmentations."
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
        _("The share of the probability of the best segmentations, and of all others together."),
    )
    page.numbers_table(
        pd.DataFrame(
            {
                _("segmentation"): range(1, len(shares) + 1),
                _("pieces"): [" | ".join(visible(piece.text) for piece in each.pieces) for each in found.best],
                _("number of pieces"): [len(each.pieces) for each in found.best],
                "ln P": [each.score for each in found.best],
                _("difference from the best"): behind,
                _("probability among all segmentations"): shares,
                "ids": [", ".join(str(piece.token_id) for piece in each.pieces) for each in found.best],
            }
        ),
        "segmentations",
        {
            "ln P": "logit",
            _("difference from the best"): "logit",
            _("probability among all segmentations"): "probability",
        },
    )
    page.snippet(CODE.format(name=name, text=text, n=n))
