"""The same weights in two places: the most probable next tokens by lmcore and by an engine, and how far apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.distribution import log_softmax
from lmcore.engines.agreement import Agreement, agreement
from lmcore.engines.engine import Engine, Prompt
from lmcore.engines.served_text import ServedText
from pages.common import conversation, engines, link, page, session
from pages.common.text import _, markdown_literal, visible
from pages.figures.logits import positions as figures
from pages.figures.theme import fmt_probability

N = 20
LEAST_SEEN = 0.001  # a smaller difference of ln P is hardly one of the percentages shown
CODE = """
import lmcore
from lmcore.distribution import log_softmax
from lmcore.engines.agreement import agreement
from lmcore.engines.config import configured
from lmcore.engines.engine import Engine

lm = lmcore.load({weights!r})
engine = Engine(next(config for config in configured() if config.name == {name!r}))
ids = lm.tokenizer.encode({prompt!r}).ids
found = agreement(engine.next({asked}, {n}), log_softmax(lm(ids)[-1]), lm.tokenizer)
print(found.largest_difference)
engine.close()
"""


def show(engine: Engine, text: str) -> None:
    """Draw the view."""
    name = engine.config.weights
    st.markdown(
        _("{local} here and {served} elsewhere have the same weights: what each predicts after this prompt.").format(
            local=markdown_literal(name), served=f"**{engine.name}**"
        )
    )
    lm = session.language_model(name)
    here = conversation.RenderedText(text) if isinstance(text, ServedText) else text  # read here as it is there
    ids = session.encoding(here, name).ids
    if not 1 <= len(ids) <= lm.config.context_length:
        st.info(_("{name} cannot read this prompt.").format(name=markdown_literal(name)))
        link.stop()
    prompt = _same_prompt(engine, text, lm, ids)
    n = min(N, engine.capabilities.max_log_probs)
    served = engines.ask(engine, ("next", prompt, n), lambda: engine.next(prompt, n))
    found = agreement(served, log_softmax(session.logits(ids, name)[-1]), lm.tokenizer)
    if not found.rows:
        st.info(_("None of the server's tokens can be identified by its text, so there is nothing to compare."))
        link.stop()
    _picture(found, name, engine)
    asked = f"engine.prompt({text!r})" if prompt == engine.prompt(text) else "tuple(ids)"
    page.snippet(CODE.format(weights=name, name=engine.name, prompt=here, asked=asked, n=n))


def _same_prompt(engine: Engine, text: str, lm: LanguageModel, ids: list[int]) -> Prompt:
    """Return what asks the engine about the very ids that the local model reads; stop where there is none."""
    facts = engine.capabilities
    if facts.tokenizer is None:
        st.caption(_("The server does not say how it splits the prompt, so a difference may come from that."))
        return tuple(ids) if facts.takes_ids else text
    theirs = engines.ask(engine, ("tokens", text), lambda: engine.tokenize(text))
    if list(theirs.ids) == ids:
        st.caption("✓ " + _("Both split the prompt into the same {n} ids.").format(n=len(ids)))
        return engine.prompt(text)
    place = next((n for n, (a, b) in enumerate(zip(ids, theirs.ids, strict=False)) if a != b), None)
    place = min(len(ids), len(theirs.ids)) if place is None else place
    here = [lm.tokenizer.token_bytes(token_id) for token_id in ids]
    st.markdown(
        "✗ "
        + _("The two split the prompt differently, first at position {place}: {here} here, {there} there.").format(
            place=place,
            here=_one_token(here, ids, place),
            there=_one_token(theirs.labels, theirs.ids, place),
        )
    )
    if not facts.takes_ids:
        st.info(_("The server accepts text only, so the two cannot be given the same ids and nothing is compared."))
        link.stop()
    st.caption(_("The server is given the ids of the local model, so both answer the same question."))
    return tuple(ids)


def _one_token(labels: Sequence[bytes | str], ids: Sequence[int], place: int) -> str:
    """Name the token at a position and its id, as Markdown."""
    if place >= len(ids):
        return _("no token")
    return f"{markdown_literal(labels[place])} · {ids[place]}"


def _picture(found: Agreement, name: str, engine: Engine) -> None:
    labels = [f"{visible(row.token)} · {row.token_id}" for row in found.rows]
    page.figure(
        figures.next_tokens(
            labels,
            [math.exp(row.here) for row in found.rows],
            [math.exp(row.there) for row in found.rows],
            (name, engine.name),
            None,
        ),
        "same-weights",
        _("Bars: the probability of each of the most probable next tokens, by the local model and by the engine."),
    )
    left, right, _rest = st.columns(3)
    small = found.largest_difference < LEAST_SEEN
    left.metric(
        _("Largest difference of ln P"),
        f"{found.largest_difference:{'.1e' if small else '.4f'}}",
        help=_("Among the tokens compared; 0.01 is one percent of a probability."),
    )
    right.metric(_("Tokens compared"), f"{len(found.rows)}")
    rounding = _(
        "The difference is only rounding: weights and sums in bfloat16 keep 8 bits, some servers multiply a "
        "quantised file in 8-bit integers, and here it is float32."
    )
    if small:
        worst = _("The two differ by less than one thousandth of any probability here.")
    else:
        worst = _("A difference of {worst} in ln P turns {p} into {q}.").format(
            worst=f"{found.largest_difference:.3f}",
            p=fmt_probability(math.exp(found.worst.here)),
            q=fmt_probability(math.exp(found.worst.there)),
        )
    st.caption(f"{rounding} {worst}")
    frame = pd.DataFrame(
        {
            _("Token"): [visible(row.token) for row in found.rows],
            "id": [row.token_id for row in found.rows],
            _("rank here"): [row.rank_here for row in found.rows],
            _("rank there"): [row.rank_there for row in found.rows],
            _("ln P here"): [row.here for row in found.rows],
            _("ln P there"): [row.there for row in found.rows],
            _("difference"): [row.there - row.here for row in found.rows],
        }
    )
    formats = {
        **dict.fromkeys((_("ln P here"), _("ln P there")), "number"),
        _("difference"): "%.1e" if small else "%.4f",
    }
    page.numbers_table(frame, "same-weights", formats)
