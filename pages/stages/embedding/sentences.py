"""The same token in two sentences: one row, and hidden states that become different layer by layer."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from torch import Tensor

from lmcore import LanguageModel, Trace
from lmcore.analysis.embedding.similarity import cosine
from lmcore.tokenizer import Encoding
from pages.common import link, page, session, widgets
from pages.common.text import _, language, markdown_literal
from pages.figures.embedding import table as figures
from pages.figures.labels import vocabulary_label

EXAMPLES = {
    "shop": ("水果店里，苹果很好吃", "手机店里，苹果发布了新手机"),
    "apple": ("苹果很好吃", "苹果发布了新手机"),
    "bank": ("The river is green, and Tom sits on the bank", "The money is in the bank"),
}

CODE = """
import lmcore
from lmcore.analysis.embedding.similarity import cosine

lm = lmcore.load({name!r})
traces = [lmcore.Trace(), lmcore.Trace()]
for text, trace in zip(({first!r}, {second!r}), traces):
    lm(lm.tokenizer.encode(text).ids, trace=trace)
for name in {names}:
    print(name, cosine(traces[0][name][{i}], traces[1][name][{j}]).item())
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    with controls:
        example = widgets.select(
            "table.pair",
            _("Example"),
            [*EXAMPLES, "free"],
            "shop" if language() == "zh" else "bank",
            format_func={
                "shop": _("苹果 after a context"),
                "apple": _("苹果 comes first"),
                "bank": "bank",
                "free": _("free choice"),
            }.__getitem__,
        )
        if example == "free":
            texts = (
                widgets.text("table.first", _("First sentence"), EXAMPLES["shop"][0]),
                widgets.text("table.second", _("Second sentence"), EXAMPLES["shop"][1]),
            )
        else:
            texts = EXAMPLES[example]
            for text in texts:
                st.markdown(markdown_literal(text))
        first, second = (_encoding(lm, text) for text in texts)
        shared = shared_tokens(first, second)
        if not shared:
            st.info(_("These sentences share no token. Write a word that occurs in both."))
            link.stop()
        token = widgets.select(
            "table.shared",
            _("Token in both"),
            shared,
            max(shared, key=lambda other: len(lm.tokenizer.token_bytes(other))),
            format_func=lambda other: vocabulary_label(other, lm.tokenizer.token_bytes(other)),
        )
    i, j = (len(found.ids) - 1 - found.ids[::-1].index(token) for found in (first, second))
    traces = [session.trace(found.ids) for found in (first, second)]
    names = state_names(lm)
    values = [_pair(traces, name, i, j) for name in names]
    cosines = [cosine(a, b).item() for a, b in values]
    titles = [_("row E[id]"), _("into block 0"), *[_("after block {n}").format(n=n) for n in range(lm.config.n_layers)]]
    titles.append(_("hidden state"))
    with picture:
        row, hidden = st.columns(2)
        row.metric(_("Cosine of the two rows"), f"{cosines[0]:.6f}")
        hidden.metric(_("Cosine of the two hidden states"), f"{cosines[-1]:.6f}")
        if first.ids[: i + 1] == second.ids[: j + 1]:
            st.markdown(
                _(
                    "Up to this token the two sentences are the same. This model sees only earlier tokens, so "
                    "later ones cannot change the hidden state: choose a pair in which the context comes "
                    "before the token."
                )
            )
        page.figure(
            figures.by_layer(titles, cosines, title=_("cosine between the two sentences")),
            "embedding-sentences",
            _(
                "Cosine between the token's vectors in the two sentences, from the embedding row to the last "
                "hidden state."
            ),
        )
    page.numbers_table(
        pd.DataFrame(
            {
                _("place in the model"): titles,
                _("name in the trace"): names,
                _("cosine"): cosines,
                _("distance"): [(a - b).norm().item() for a, b in values],
            }
        ),
        "embedding-sentences",
        {_("cosine"): "%.6f", _("distance"): "number"},
    )
    page.snippet(CODE.format(name=lm.name, first=texts[0], second=texts[1], names=names, i=i, j=j))


def shared_tokens(first: Encoding, second: Encoding) -> list[int]:
    """Return the ids that both texts have, in the order of the first; tokens added in front do not count."""
    others = set(second.ids[second.n_added :])
    return [token for token in dict.fromkeys(first.ids[first.n_added :]) if token in others]


def state_names(lm: LanguageModel) -> list[str]:
    """Return the trace's names of a token's vector from the table to the head, in order."""
    after = [f"blocks.{layer}.resid_post" for layer in range(lm.config.n_layers)]
    return ["token_embedding", "blocks.0.resid_pre", *after, "hidden_state"]


def _pair(traces: list[Trace], name: str, i: int, j: int) -> tuple[Tensor, Tensor]:
    first, second = traces
    return first[name][i], second[name][j]


def _encoding(lm: LanguageModel, text: str) -> Encoding:
    found = session.encoding(text)
    if not 1 <= len(found.ids) <= lm.config.context_length:
        st.info(
            _("A sentence here may have 1 to {limit} tokens; this one has {n}.").format(
                limit=lm.config.context_length, n=len(found.ids)
            )
        )
        link.stop()
    return found
