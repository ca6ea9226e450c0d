"""One storage or two, by identity; and what the two matrices of an untied model have in common."""

from __future__ import annotations

import pandas as pd
import streamlit as st

import lmcore
from lmcore import LanguageModel
from lmcore.analysis.embedding.similarity import cosine
from lmcore.analysis.tying.storage import storage_of, storage_of_model, stored_twice
from lmcore.checkpoints.weights import own_tensors
from lmcore.parameters import count, count_model
from pages.common import page, session
from pages.common.text import _
from pages.figures.theme import fmt_count
from pages.figures.tying import parameters as figures
from pages.stages.tying.subject import mebibytes

CODE = """
import lmcore
from lmcore.analysis.tying.storage import storage_of, storage_of_model

for name in {names}:
    lm = lmcore.load(name)
    embedding, head = lm.model.token_embedding.weight, lm.model.head.weight
    print(name, head is embedding, head.data_ptr() == embedding.data_ptr(), storage_of_model(lm.model).max_difference)

copy = embedding.detach().clone()                  # equal values, a storage of its own
print(storage_of(embedding, copy))
print(lmcore.parameters.count(lm.config).tying_saves)
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    names = list(dict.fromkeys([lm.name, lmcore.builtin.DEFAULT, f"{lmcore.builtin.DEFAULT}-untied"]))
    models = {name: session.language_model(name).model for name in names}
    table = models[lmcore.builtin.DEFAULT].token_embedding.weight
    cases = {name: storage_of_model(model) for name, model in models.items()}
    cases[_("a copy with equal values")] = storage_of(table, table.detach().clone())

    counted = count(lm.config)
    facts, picture = page.workbench(widths=(2, 3))  # numbers of nine digits have to be read in full
    with facts:
        twice = stored_twice(lm.model)
        st.markdown(_storage_sentence(cases[lm.name].shared, lm.name) if twice is None else _twice_sentence(lm, twice))
        st.metric(
            _("Tying saves") if lm.config.tie_embeddings else _("Tying would save"),
            fmt_count(counted.tying_saves),
            help=_("Size: vocab_size × d_model."),
        )
        st.metric(_("share of the untied total"), f"{100 * counted.tying_saves / counted.untied_total:.2f} %")
        st.metric(_("in float32"), mebibytes(4 * counted.tying_saves))
        st.caption(
            _("Counted from the tensors in memory, each storage once: {n} parameters.").format(
                n=fmt_count(count_model(lm.model))
            )
        )
    with picture:
        page.figure(
            figures.stored(
                {name: (found.size, found.numbers - found.size) for name, found in cases.items()},
                names=(_("token embedding E"), _("head W, stored separately")),
                value_title=_("numbers in memory"),
            ),
            "tying-storage",
            _("Numbers in memory for the embedding and the head: once when tied, twice when untied or copied."),
        )
        untied = models[f"{lmcore.builtin.DEFAULT}-untied"]
        cosines = cosine(untied.token_embedding.weight.detach(), untied.head.weight.detach()).numpy()
        page.figure(
            figures.row_cosines(
                cosines,
                x_title=_("cosine of row t of E and of W, untied"),
                y_title=_("tokens"),
            ),
            "tying-cosines",
            _(
                "The cosine between the input row and the output row of each token in the untied model. In a tied "
                "model every cosine is 1."
            ),
        )
        st.caption(
            _(
                "When the two matrices are learned separately, the input row and the output row of a token "
                "become different vectors: their mean cosine is {mean:.3f}. In a tied model it is 1 for every "
                "token."
            ).format(mean=cosines.mean())
        )
    page.numbers_table(
        pd.DataFrame(
            [
                {
                    _("model"): name,
                    "W is E": str(found.same_object),
                    _("address of E"): hex(found.addresses[0]),
                    _("address of W"): hex(found.addresses[1]),
                    _("one storage"): str(found.shared),
                    _("largest |E − W|"): found.max_difference,
                    _("numbers in memory"): found.numbers,
                    _("head.weight in the saved file"): str("head.weight" in own_tensors(models[name]))
                    if name in models
                    else "—",
                }
                for name, found in cases.items()
            ]
        ),
        "tying-storage",
        {_("largest |E − W|"): "%.6g", _("numbers in memory"): "count"},
    )
    st.caption(
        _(
            "Equal values do not prove a tie: the copy differs by 0 but is a second storage, and training would "
            "make the two differ."
        )
    )
    page.snippet(CODE.format(names=names))


def _twice_sentence(lm: LanguageModel, cosine: float) -> str:
    return _(
        "{name} was trained tied, but its file stores the matrix twice, rounded in two ways: as embedding and as head. "
        "The mean cosine between the two rows of a token is {cosine:.4f}. With both matrices the model has {apart} "
        "parameters, as it was trained {tied}."
    ).format(
        name=f"`{lm.name}`",
        cosine=cosine,
        apart=fmt_count(count(lm.config, tie_embeddings=False).total),
        tied=fmt_count(count(lm.config, tie_embeddings=True).total),
    )


def _storage_sentence(shared: bool, name: str) -> str:
    sentence = (
        _("In {name}, the head and the embedding share one storage: changing one changes the other.")
        if shared
        else _("In {name}, the head and the embedding have two storages and are learned separately.")
    )
    return sentence.format(name=f"`{name}`")
