"""Vector arithmetic: a − b + c, and the tokens whose rows lie nearest to the result."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.analysis.similarity import MEASURES, combine, cosine, likeness, neighbours, rank_of
from pages.common import page, widgets
from pages.common.text import _, language, markdown_literal
from pages.figures import embedding as figures
from pages.stages.embedding.common import labels_of, token_picker

EXAMPLES = {
    "en": (" king", " man", " woman", " queen"),
    "zh": ("国王", "男人", "女人", "女王"),
}
_SHOWN = 10

CODE = """
import lmcore
from lmcore.analysis.similarity import combine, neighbours

lm = lmcore.load({name!r})
table = lm.model.token_embedding.weight.detach()
a, b, c = {a}, {b}, {c}
vector = combine(table, plus=[a, c], minus=[b])
found = neighbours(table, vector, n=10, measure={measure!r}, exclude={exclude})
for token, score in zip(found.ids.tolist(), found.scores.tolist()):
    print(token, lm.tokenizer.token_bytes(token), score)
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    labels = labels_of(lm)
    controls, picture = page.workbench()
    with controls:
        example = widgets.select(
            "table.analogy",
            _("Example"),
            [*EXAMPLES, "free"],
            language(),
            format_func={"en": "king − man + woman", "zh": "国王 − 男人 + 女人", "free": _("free choice")}.__getitem__,
        )
        if example == "free":
            first = EXAMPLES[language()]
            a = token_picker("table.a", _("start from"), lm, labels, first[0])
            b = token_picker("table.b", _("take away"), lm, labels, first[1])
            c = token_picker("table.c", _("add"), lm, labels, first[2])
            expected = token_picker("table.expected", _("where does this token come?"), lm, labels, first[3])
        else:
            a, b, c, expected = (lm.tokenizer.encode(text).ids[0] for text in EXAMPLES[example])
        measure = widgets.choice(
            "table.measure",
            _("Nearest by"),
            list(MEASURES),
            "cosine",
            format_func={"cosine": _("cosine"), "dot": _("dot product")}.__getitem__,
        )
        excluded = widgets.toggle(
            "table.exclude",
            _("Without inputs"),
            True,
            help=_("The result often stays nearest to the row it starts from; published results leave the inputs out."),
        )
    table = lm.model.token_embedding.weight.detach()
    inputs = {a, b, c}
    vector = combine(table, plus=[a, c], minus=[b])
    scores = likeness(table, vector, measure)
    shown = neighbours(table, vector, min(_SHOWN + len(inputs), len(table)), measure).ids.tolist()
    out = [token in inputs and excluded for token in shown]
    winner = next((index for index, gone in enumerate(out) if not gone), None)
    with picture:
        st.markdown(
            _("{a} − {b} + {c} lies nearest to {winner}; {expected} comes {rank}.").format(
                **{
                    name: markdown_literal(lm.tokenizer.token_bytes(token))
                    for name, token in (("a", a), ("b", b), ("c", c), ("expected", expected))
                },
                winner="—" if winner is None else markdown_literal(lm.tokenizer.token_bytes(shown[winner])),
                rank=_rank_text(rank_of(scores, expected), rank_of(scores, expected, inputs - {expected})),
            )
        )
        page.figure(
            figures.ranked(
                scores[shown].numpy(),
                [labels[token] + (f"·{_('input')}" if token in inputs else "") for token in shown],
                title=_("cosine to the result") if measure == "cosine" else _("dot product with the result"),
                removed=out,
                chosen=winner,
            ),
            "embedding-arithmetic",
            _("The tokens nearest to the result; inputs that are left out are grey and hatched."),
        )
    rows = table[shown]
    page.numbers_table(
        pd.DataFrame(
            {
                _("token#id"): [labels[token] for token in shown],
                _("input"): [_("yes") if token in inputs else _("no") for token in shown],
                _("cosine"): cosine(rows, vector).numpy(),
                _("dot product"): (rows.double() @ vector).numpy(),
                _("distance"): (rows.double() - vector).norm(dim=-1).numpy(),
            }
        ),
        "embedding-arithmetic",
        {_("cosine"): "number", _("dot product"): "number", _("distance"): "number"},
    )
    exclude = "{a, b, c}" if excluded else "()"
    page.snippet(CODE.format(name=lm.name, a=a, b=b, c=c, measure=measure, exclude=exclude))


def _rank_text(among_all: int, without_inputs: int) -> str:
    return _("number {among_all} of all tokens, number {without} without the inputs").format(
        among_all=among_all, without=without_inputs
    )
