"""The whole text under the model: top tokens of every position, surprisal, loss, perplexity, one token followed."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from lmcore.analysis import Scores, ranks, token_probs, top_tokens
from pages.common import page, widgets
from pages.common.text import _, visible
from pages.figures.logits import positions as figures
from pages.figures.theme import fmt_probability
from pages.live.generated_text import TextToken, generated_text
from pages.stages.logits.chosen import Chosen, grammar


def count_picker() -> int:
    """Let the reader choose how many tokens to list for each position."""
    return widgets.slider("logits.top", _("Top tokens per position"), 1, 10, 3)


def colour_picker() -> str:
    """Let the reader choose what colours the text."""
    names = {"surprisal": _("Surprisal"), "probability": _("Probability"), "rank": _("Rank")}
    return widgets.select(
        "logits.colour", _("Colour the text by"), list(names), "surprisal", format_func=names.__getitem__
    )


def show(chosen: Chosen, colour: str) -> None:
    """Show loss and perplexity, where the text surprised, and one token followed."""
    if chosen.scores is None:
        st.info(_("A single token has no surprisal, because nothing predicts the first token. Type more above."))
    else:
        _coloured(chosen, chosen.scores, colour)
        _surprise(chosen, chosen.scores)
    probs = token_probs(chosen.logits, chosen.target, chosen.normaliser).numpy()
    places = ranks(chosen.logits, chosen.logits.new_full((len(chosen.logits),), chosen.target).long()).tolist()
    followed = _("The followed token, {token}: its probability as the next token after each position.")
    st.text(followed.format(token=chosen.name(chosen.target)))
    page.figure(
        figures.followed(chosen.labels, probs, places, (_("Position"), _("Probability")), _("Rank")),
        "followed",
        _("Line: the probability of the followed token after each position."),
    )


def _coloured(chosen: Chosen, scores: Scores, colour: str) -> None:
    """Show the text, each token coloured by how it was foreseen."""
    size = chosen.config.vocab_size
    numbers, strengths = {
        "surprisal": ([f"{bits:.1f}" for bits in scores.bits.tolist()], scores.bits / math.log2(size)),
        "probability": ([f"{100 * p:.0f} %" for p in scores.probs.tolist()], scores.probs),
        "rank": ([f"{rank:,}" for rank in scores.ranks.tolist()], scores.ranks.double().log() / math.log(size)),
    }[colour]
    first, *others = chosen.found.tokens
    hint = _("P {p}, rank {rank}, {bits} bits")
    foreseen = [
        TextToken(
            token, number, min(strength, 1.0), hint.format(p=fmt_probability(p), rank=f"{rank:,}", bits=f"{bits:.3f}")
        )
        for token, number, strength, p, rank, bits in zip(
            others,
            numbers,
            strengths.tolist(),
            scores.probs.tolist(),
            scores.ranks.tolist(),
            scores.bits.tolist(),
            strict=True,
        )
    ]
    generated_text([TextToken(first, kind="prompt"), *foreseen], key="coloured-text", label=_("The coloured text"))
    st.caption(
        {
            "surprisal": _("The darker the colour, the larger the surprisal. The darkest is a random guess."),
            "probability": _("The darker the colour, the more probable the token was."),
            "rank": _("No colour: the model's first choice. The darker, the lower its rank (logarithmic)."),
        }[colour]
    )


def _surprise(chosen: Chosen, scores: Scores) -> None:
    truth = _grammar_bits(chosen)
    loss, perplexity, other = st.columns(3)
    loss.metric(_("Loss (nats per token)"), f"{scores.loss:.4f}", help=_("The mean of −ln P over the actual tokens."))
    perplexity.metric(_("Perplexity"), f"{scores.perplexity:.3f}", help="exp(loss)")
    if truth is not None and np.isfinite(truth).all():
        other.metric(
            _("Perplexity in the grammar"),
            f"{2 ** truth.mean():.3f}",
            help=_(
                "The perplexity of this text under the true distribution. Over many texts, no model does better on "
                "average."
            ),
        )
    elif truth is not None:
        other.caption(_("The grammar cannot generate this text: its probability is 0 and its perplexity infinite."))
    page.figure(
        figures.surprisal(
            chosen.labels[1:],
            scores.bits.numpy(),
            truth,
            (_("Model"), _("True (grammar)")),
            (_("Actual token"), _("Surprisal (bits)")),
        ),
        "surprisal",
        _("Bars: the surprisal of each actual token, in bits, with the value for the grammar where it is known."),
    )
    page.equation(
        rf"\begin{{gathered}}\mathrm{{loss}} = \frac{{1}}{{{len(scores.nats)}}}\sum_{{i=1}}^{{{len(scores.nats)}}} "
        r"-\ln P(t_i \mid t_0 \ldots t_{i-1}) = "
        rf"{scores.loss:.4f}\\ \mathrm{{perplexity}} = e^{{\mathrm{{loss}}}} = {scores.perplexity:.3f}\end{{gathered}}"
    )


def table(chosen: Chosen, count: int) -> None:
    """Show every position: what came, how it was foreseen, and the most probable tokens."""
    ids = chosen.found.ids
    nothing = [math.nan]
    columns: dict[str, object] = {
        _("Position"): range(len(ids)),
        _("Token"): [visible(token) for token in chosen.found.tokens],
        "id": ids,
        _("Actual next"): [*map(visible, chosen.found.tokens[1:]), ""],
        _("Next id"): pd.array([*ids[1:], None], dtype="Int64"),
    }
    scores = chosen.scores
    if scores is not None:
        columns |= {
            _("Rank"): pd.array([*scores.ranks.tolist(), None], dtype="Int64"),
            "P": [*scores.probs.tolist(), *nothing],
            _("bits"): [*scores.bits.tolist(), *nothing],
            _("nats"): [*scores.nats.tolist(), *nothing],
        }
        truth = _grammar_bits(chosen)
        if truth is not None:
            columns[_("bits in the grammar")] = [*truth.tolist(), *nothing]
    best = top_tokens(chosen.logits, count, chosen.normaliser)
    for n, (tokens, probs) in enumerate(zip(best.ids.T.tolist(), best.probs.T, strict=True), start=1):
        columns[_("Top {n}").format(n=n)] = [chosen.name(token) for token in tokens]
        columns[f"P {n}"] = probs.numpy()
    formats = {name: "probability" for name in columns if name == "P" or name.startswith("P ")}
    bits = {_("bits"), _("nats"), _("bits in the grammar")} & columns.keys()
    st.subheader(_("Every position"), anchor=False)
    page.numbers_table(pd.DataFrame(columns), "positions", {**formats, **dict.fromkeys(bits, "logit")})


def _grammar_bits(chosen: Chosen) -> np.ndarray | None:
    truth = grammar(chosen.lm)
    return None if truth is None else -truth.log_prob(chosen.found.ids) / math.log(2)


def snippet(chosen: Chosen) -> str:
    """Return the code for this section."""
    if len(chosen.found.ids) < 2:
        return chosen.snippet("print(lmcore.distribution.softmax(logits))", imports="")
    return chosen.snippet(
        "scores = lmcore.analysis.score(logits, ids)\n"
        "print(scores.ranks, scores.probs, scores.bits)\n"
        "print(scores.loss, scores.perplexity)",
    )
