"""The distribution after one position, compared with the grammar's where that is known."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore.distribution import entropy_bits, rank, softmax, top, total_variation
from pages.common import page, widgets
from pages.common.text import _, visible
from pages.figures.logits import positions as figures
from pages.figures.theme import fmt_probability
from pages.stages.logits.chosen import Chosen, grammar, grammar_probs


def count_picker() -> int:
    """Let the reader choose how many tokens to draw."""
    return widgets.slider("logits.n", _("Tokens shown"), 3, 30, 8)


def show(chosen: Chosen, count: int) -> None:
    """Show the most probable tokens, and how far the model is from the truth."""
    probs = softmax(chosen.logits[chosen.position])
    truth = grammar_probs(chosen)
    ids = top(probs, count).ids.tolist()
    if chosen.target not in ids:
        ids.append(chosen.target)
    names = (_("Model"), _("True (grammar)"))
    page.figure(
        figures.next_tokens(
            [chosen.name(i) for i in ids],
            probs[ids].numpy(),
            None if truth is None else truth[ids],
            names,
            ids.index(chosen.target),
        ),
        "next-tokens",
        _(
            "Bars: the probability of the most probable next tokens, with the true value from the grammar where it "
            "is known."
        ),
    )
    rest = max(0.0, 1 - probs[ids].sum().item())
    others = _("The {n} other tokens share {rest}. Entropy of the whole distribution: {bits} bits.")
    st.caption(
        others.format(
            n=f"{len(probs) - len(ids):,}", rest=fmt_probability(rest), bits=f"{entropy_bits(probs).item():.3f}"
        )
    )
    if truth is not None:
        told = _(
            "This model learned a small world whose exact distribution is known. Total variation distance "
            "between model and grammar here: **{distance}** (0 is equal, 1 is no overlap)."
        )
        st.markdown(told.format(distance=f"{total_variation(probs, truth).item():.4f}"))
    elif grammar(chosen.lm) is not None:
        st.caption(
            _(
                "The grammar of the small world cannot generate this text, so there is no true distribution to "
                "compare with."
            )
        )
    frame = pd.DataFrame(
        {
            _("Token"): [visible(chosen.lm.tokenizer.token_bytes(i)) for i in ids],
            "id": ids,
            _("Rank"): [rank(probs, i) for i in ids],
            "logit": chosen.logits[chosen.position][ids].double().numpy(),
            "P": probs[ids].numpy(),
            **({_("P in the grammar"): truth[ids]} if truth is not None else {}),
        }
    )
    formats = {"P": "probability", "logit": "logit"}
    if truth is not None:
        formats[_("P in the grammar")] = "probability"
    page.numbers_table(frame, "next-tokens", formats)


def snippet(chosen: Chosen, count: int) -> str:
    """Return the code for this section."""
    truth = ""
    if grammar(chosen.lm) is not None:
        truth = (
            "\ntruth = Truth(lm.tokenizer).next_token_probs("
            f"ids[:{chosen.position + 1}])    # None: the grammar never says this\n"
            "if truth is not None:\n"
            '    print("distance", lmcore.distribution.total_variation(probs, truth).item())'
        )
    return chosen.snippet(
        f"probs = lmcore.distribution.softmax(logits[{chosen.position}])\n"
        f"ids_, values = lmcore.distribution.top(probs, {count})\n"
        "for token_id, p in zip(ids_.tolist(), values.tolist()):\n"
        f"    print(token_id, lm.tokenizer.token_bytes(token_id), p){truth}",
        imports="\nfrom lmcore.corpus import Truth" if truth else "",
    )
