"""Temperature 0 over a text: how near the two best tokens are, and which other ways of running it change the best."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from lmcore.analysis.sampling.ties import WAYS, margins, run_ways
from lmcore.language_model import LanguageModel
from pages.common import page, session, widgets
from pages.common.text import _, markdown_literal, visible

MAX_WEIGHTS = 200_000_000  # "order" and "bfloat16" hold another copy of them for a moment
MAX_TOKENS = 128
_FOUND = "ties.found"

CODE = """
import lmcore
from lmcore.analysis.sampling.ties import margins, run_ways

lm = lmcore.load({name!r})
ids = lm.tokenizer.encode({prompt!r}).ids[:{n}]
print(margins(lm(ids)).ulps)
for way in run_ways(lm, ids):
    print(way.name, way.difference.max(), way.flips)
"""


def show(lm: LanguageModel, ids: tuple[int, ...]) -> None:
    """Show the margin of each position's best token, and run the text in other ways once it is asked for."""
    ids = ids[:MAX_TOKENS]
    st.subheader(_("Temperature 0 and ties"), anchor=False)
    if not widgets.toggle("ties", _("Run the prompt in other ways, and see whether the best token changes")):
        st.caption(
            _(
                "A cache, a batch, another order of the sums or bfloat16 round differently: near ties may go either "
                "way. Two servers can therefore differ at temperature 0."
            )
        )
        return
    if sum(weights.numel() for weights in lm.model.parameters()) > MAX_WEIGHTS:
        st.info(_("This model is too large to be copied here. The lines of Python below run it elsewhere."))
    else:
        st.table(_ways(lm, ids))
    near = margins(session.logits()[: len(ids)])
    name = lm.tokenizer.token_bytes
    frame = pd.DataFrame(
        {
            _("After token"): [visible(name(token)) for token in ids],
            _("best"): [visible(name(token)) for token in near.best.tolist()],
            _("second"): [visible(name(token)) for token in near.second.tolist()],
            _("margin (logits)"): near.logits.tolist(),
            _("in ulp of float32"): near.ulps.tolist(),
            _("in ulp of bfloat16"): near.bfloat16_ulps.tolist(),
        }
    ).sort_values(_("margin (logits)"))
    page.numbers_table(frame, "margins", {_("margin (logits)"): "logit"})
    st.code(
        CODE.format(name=lm.name, prompt=session.prompt(), n=MAX_TOKENS).strip("\n"), language="python", wrap_lines=True
    )


def _ways(lm: LanguageModel, ids: tuple[int, ...]) -> pd.DataFrame:
    """Run the ways once a text; only what is shown of them is kept."""
    last = st.session_state.get(_FOUND)
    if last is None or last[0] != (lm.name, ids):
        plain = session.logits()[: len(ids)]
        with session.forward_lock():
            found = [(w.name, float(w.difference.max()), w.flips) for w in run_ways(lm, ids, WAYS, plain)]
        last = st.session_state[_FOUND] = ((lm.name, ids), found)
    titles = {
        "cache": _("token by token, with a KV cache"),
        "batch": _("in a batch of four texts"),
        "order": _("the MLP's neurons in another order"),
        "bfloat16": _("weights and sums in bfloat16"),
    }
    rows = [
        {
            _("The same text"): titles[name],
            _("Largest difference of a logit"): f"{difference:.3g}",
            _("Best token changes after"): _places(lm, ids, flips),
        }
        for name, difference, flips in last[1]
    ]
    return pd.DataFrame(rows).set_index(_("The same text"))


def _places(lm: LanguageModel, ids: Sequence[int], flips: Sequence[int]) -> str:
    shown = [f"{markdown_literal(lm.tokenizer.token_bytes(ids[place]))} ({place})" for place in flips[:8]]
    return ", ".join([*shown, *(["…"] if len(flips) > 8 else [])]) or _("nowhere")
