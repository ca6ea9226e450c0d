"""Vector arithmetic: a − b + c, and the tokens whose rows lie nearest to the result."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.analysis.embedding.similarity import MEASURES, Measure, combine, cosine, likeness
from lmcore.tokenizer.token_search import pieces, single_token
from pages.common import link, page, widgets
from pages.common.text import _, in_language, markdown_literal
from pages.figures.embedding import table as figures
from pages.stages.embedding.common import compare, label_of, labels_of, token_picker, trained_table

EXAMPLES = {
    "en": ("king", "man", "woman", "queen"),
    "zh": ("国王", "男人", "女人", "女王"),
    "capital": ("Paris", "France", "Japan", "Tokyo"),
    "capital-zh": ("巴黎", "法国", "日本", "东京"),
}
_SHOWN = 10

CODE = """
import lmcore
from lmcore.analysis.embedding.similarity import combine, neighbours

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
    controls, picture = page.workbench()
    own = in_language({name: name for name in EXAMPLES})
    with controls:
        example = widgets.select(
            "table.analogy",
            _("Example"),
            [*EXAMPLES, "free"],
            own,
            format_func=lambda name: _("free choice") if name == "free" else _title(EXAMPLES[name]),
        )
        first = EXAMPLES[own]
        if example == "free":
            a = token_picker("table.a", _("start from"), lm, first[:1])
            b = token_picker("table.b", _("subtract"), lm, first[1:2])
            c = token_picker("table.c", _("add"), lm, first[2:3])
            expected = token_picker("table.expected", _("what rank does this token have?"), lm, first[3:])
        choice = widgets.choice(
            "table.measure",
            _("Similarity"),
            list(MEASURES),
            "cosine",
            format_func={"cosine": _("cosine"), "dot": _("dot product")}.__getitem__,
        )
        measure: Measure = "cosine" if choice == "cosine" else "dot"
        excluded = widgets.toggle(
            "table.exclude",
            _("Exclude input tokens"),
            True,
            help=_(
                "The result often stays nearest to the row it started from. Published results exclude the input tokens."
            ),
        )
    if example != "free":
        tokens = [single_token(lm.tokenizer, word) for word in EXAMPLES[example]]
        single = [token for token in tokens if token is not None]
        if len(single) < len(tokens):
            with picture:
                _say_pieces(lm, EXAMPLES[example], tokens)
            return
        a, b, c, expected = single
    table = trained_table(lm)
    inputs = {a, b, c}
    vector = combine(table, plus=[a, c], minus=[b])
    if not vector.any():
        st.info(_("The result is the zero vector, which has no direction. Choose other tokens."))
        link.stop()
    against = compare(lm, vector)
    shown = against.neighbours(_SHOWN + len(inputs), measure).ids.tolist()
    scores = likeness(table[shown], vector, measure)
    out = [token in inputs and excluded for token in shown]
    winner = next((index for index, gone in enumerate(out) if not gone), None)
    labels = labels_of(lm, shown)
    with picture:
        st.markdown(
            _("{a} − {b} + {c} is nearest to {winner}; {expected} has {rank}.").format(
                **{
                    name: markdown_literal(lm.tokenizer.token_bytes(token))
                    for name, token in (("a", a), ("b", b), ("c", c), ("expected", expected))
                },
                winner="—" if winner is None else markdown_literal(lm.tokenizer.token_bytes(shown[winner])),
                rank=_("rank {among_all} among all tokens, rank {without} without the input tokens").format(
                    among_all=against.rank(expected, measure),
                    without=against.rank(expected, measure, inputs - {expected}),
                ),
            )
        )
        page.figure(
            figures.ranked(
                scores.numpy(),
                [
                    label + (f"·{_('input')}" if token in inputs else "")
                    for label, token in zip(labels, shown, strict=True)
                ],
                title=_("cosine to the result") if measure == "cosine" else _("dot product with the result"),
                removed=out,
                chosen=winner,
            ),
            "embedding-arithmetic",
            _("The tokens nearest to the result. Excluded input tokens are grey and hatched."),
        )
        st.caption(
            _("Compared with all {rows:,} rows in all {width} dimensions. The outlined token is the answer.").format(
                rows=len(table), width=lm.config.d_model
            )
        )
    rows = table[shown]
    page.numbers_table(
        pd.DataFrame(
            {
                _("token#id"): labels,
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


def _title(words: tuple[str, str, str, str]) -> str:
    return "{} − {} + {}".format(*words)


def _say_pieces(lm: LanguageModel, words: tuple[str, ...], tokens: list[int | None]) -> None:
    """Tell which words have no row of their own, what they are made of, and which examples work."""
    st.info(
        _(
            "Some of these words are not a single token of this model's vocabulary, with or without a space in "
            "front. A word of several tokens has several rows and no row of its own, so it cannot be used in "
            "vector arithmetic. The blocks combine the tokens into the meaning of the word."
        )
    )
    rows = [
        {
            _("word"): word,
            _("tokens"): len(made),
            _("token#id"): " ".join(labels_of(lm, made)),
        }
        for word, made in ((word, pieces(lm.tokenizer, word)) for word in words)
    ]
    page.numbers_table(pd.DataFrame(rows), "embedding-arithmetic-pieces")
    works = [
        name for name, example in EXAMPLES.items() if None not in [single_token(lm.tokenizer, word) for word in example]
    ]
    for name in works:
        inputs = ", ".join(label_of(lm, pieces(lm.tokenizer, word)[0]) for word in EXAMPLES[name][:3])
        st.button(
            _("{example} works here").format(example=_title(EXAMPLES[name])),
            key=f"table.works.{name}",
            help=markdown_literal(inputs),
            on_click=st.session_state.update,
            args=({"table.analogy": name},),
        )
