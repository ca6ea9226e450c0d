"""An id is only a name: renumbered together with their rows, the ids give the same logits."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

from lmcore import LanguageModel, distribution
from lmcore.analysis.tokenization.permutation import random_permutation, rename_ids
from pages.common import page, session, widgets
from pages.common.text import _, visible
from pages.figures.tokenization import merges as figures

MAX_DRAWN, MOST_PROBABLE = 6_000, 100  # points; more of them take a browser seconds, and hide one another
_LAST = "names.logits"  # (what was asked, the logits found for it)
CODE = """
import torch
import lmcore
from lmcore.analysis.tokenization.permutation import random_permutation, rename_ids

lm = lmcore.load({name!r})
ids = torch.tensor(lm.tokenizer.encode({prompt!r}).ids)
new_id = random_permutation(lm.config.vocab_size, seed={seed})   # old id -> new id
renamed = lmcore.LanguageModel("renamed", rename_ids(lm.model, new_id), lm.tokenizer)
before = lm(ids)[-1]
print((renamed(new_id[ids])[-1][new_id] - before).abs().max().item())   # rows moved along
print((lm(new_id[ids])[-1][new_id] - before).abs().max().item())        # ids alone changed
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    found = session.require_tokens()
    controls, picture = page.workbench()
    with controls:
        seed = widgets.number("id_seed", _("Seed of the permutation"), 0, 2**32 - 1, 1)
    new_id = random_permutation(lm.config.vocab_size, seed)
    ids = torch.tensor(found.ids)
    before, moved, unmoved = _three(lm, ids, seed)
    with controls:
        st.markdown(
            _(
                "Largest difference of a logit, over all {n:,} tokens at the last position: **{moved}** if the "
                "rows are moved too, **{unmoved}** if only the ids change."
            ).format(
                n=len(before),
                moved=f"{(moved - before).abs().max().item():.3g}",
                unmoved=f"{(unmoved - before).abs().max().item():.3g}",
            )
        )
    drawn = to_draw(before)
    labels = [f"{visible(lm.tokenizer.token_bytes(i))} · {i} → {int(new_id[i])}" for i in drawn.tolist()]
    with picture:
        if len(drawn) < len(before):
            st.caption(
                _("{n:,} of the {size:,} tokens are drawn: the {most} most probable, and others evenly spaced.").format(
                    n=len(drawn), size=len(before), most=MOST_PROBABLE
                )
            )
        page.figure(
            figures.renamed_logits(
                before[drawn],
                moved[drawn],
                unmoved[drawn],
                labels,
                moved_name=_("rows moved too"),
                unmoved_name=_("only ids changed"),
                x_title=_("logit before"),
                y_title=_("logit after"),
            ),
            "names.logits",
            _(
                "The logit of each token before and after renumbering. The points lie on the diagonal if the rows "
                "are moved too."
            ),
        )
    st.markdown(
        _(
            "Give every token a random new id and move its row of the embedding (and of the head) with it: the "
            "model computes the same result. Change the ids without moving the rows, and each id selects the "
            "row of another token."
        )
    )
    st.caption(_("The prompt's tokens, then the five most probable next tokens"))
    top = distribution.top(before, 5).ids.tolist()
    rows = [*found.ids, *top]
    page.numbers_table(
        pd.DataFrame(
            {
                _("token"): [visible(lm.tokenizer.token_bytes(i)) for i in rows],
                _("item"): [_("prompt")] * len(found.ids) + [_("next token")] * len(top),
                _("old id"): rows,
                _("new id"): [int(new_id[i]) for i in rows],
                _("logit before"): [before[i].item() for i in rows],
                _("logit after, rows moved too"): [moved[i].item() for i in rows],
                _("logit after, only ids changed"): [unmoved[i].item() for i in rows],
            }
        ),
        "renamed-ids",
        {
            _("logit before"): "logit",
            _("logit after, rows moved too"): "logit",
            _("logit after, only ids changed"): "logit",
        },
    )
    _against_embedding(lm, len(found.ids))
    page.snippet(CODE.format(name=lm.name, prompt=found.text, seed=seed))


def to_draw(logits: Tensor) -> Tensor:
    """Return the ids that are drawn, rising: all of a small vocabulary, some of a large one."""
    size = len(logits)
    if size <= MAX_DRAWN:
        return torch.arange(size)
    spaced = torch.linspace(0, size - 1, MAX_DRAWN - MOST_PROBABLE).long()
    return torch.cat((distribution.top(logits, MOST_PROBABLE).ids, spaced)).unique()


def _three(lm: LanguageModel, ids: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the last position's logits in the order of the old ids: unchanged, renumbered, renumbered without rows.

    The session keeps them: a renumbered table is as large as the model's own and is made once.
    """
    asked = (lm.name, tuple(ids.tolist()), seed)
    last = st.session_state.get(_LAST)
    if last is None or last[0] != asked:
        with st.spinner(_("Renumbering every token …")):
            new_id = random_permutation(lm.config.vocab_size, seed)
            before = session.logits(ids.tolist())[-1]
            with session.forward_lock():
                renamed = LanguageModel(lm.name, rename_ids(lm.model, new_id), lm.tokenizer)
                found = before, renamed(new_id[ids])[-1][new_id], lm(new_id[ids])[-1][new_id]
        last = st.session_state[_LAST] = (asked, found)
    return last[1]


def _against_embedding(lm: LanguageModel, length: int) -> None:
    st.subheader(_("Tokenizer against embedding"), anchor=False)
    rows, width = lm.config.vocab_size, lm.config.d_model
    st.table(
        pd.DataFrame(
            {
                "": [
                    _("input"),
                    _("output"),
                    _("operation"),
                    _("network parameters"),
                    _("changed by back-propagation"),
                ],
                _("Tokenizer"): [
                    _("text"),
                    _("ids [S], here S = {n}").format(n=length),
                    _("{n:,} merges of a fixed list").format(n=len(lm.tokenizer.merges)),
                    "0",
                    _("no: it is made before training and does not change"),
                ],
                _("Embedding"): [
                    _("ids [S], here S = {n}").format(n=length),
                    _("vectors [S, d_model], here [{n}, {width}]").format(n=length, width=width),
                    _("row t of the table E"),
                    f"{rows} × {width} = {rows * width:,}",
                    _("yes: every step of training changes it"),
                ],
            }
        ).set_index("")
    )
