"""The repetition trap: greedy decoding goes round in circles; how probable is each round?"""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

import lmcore
from lmcore import Encoding, LanguageModel
from lmcore.generation.repetition import Circling, watch_circling
from pages.common import page, widgets
from pages.common.text import _, visible
from pages.figures.generation.curves import against_length, along_text
from pages.figures.theme import fmt_probability
from pages.stages.generation import jobs, stops

CODE = """
import lmcore
from lmcore.generation.repetition import watch_circling

lm = lmcore.load({name!r})
ids = lm.tokenizer.encode({prompt!r}).ids
settings = lmcore.SamplingSettings(temperature=0, repetition_penalty={penalty})
steps = lmcore.generate(lm, ids, settings, max_new_tokens={n}, stop_ids={stop_ids})
*_, last = watch_circling(steps)
print(last.loop)
print(last.round_probs())
"""


def show(lm: LanguageModel, prompt: Encoding) -> None:
    """Draw the view."""
    small = lm.config.vocab_size <= 5_000
    left, right = page.workbench()
    with left:
        button = st.container()
        most = min(300, lm.config.context_length - len(prompt.ids) + 1)
        n_tokens = widgets.slider("trap.tokens", _("New tokens at most"), 1, most, min(80, most))
        penalty = widgets.slider(
            "trap.penalty",
            _("Repetition penalty"),
            1.0,
            2.0,
            1.0,
            step=0.05,
            help=_("1 is off. Above 1, the logits of tokens already seen are lowered."),
        )
        go_on = widgets.toggle(
            "trap.beyond_end",
            _("Continue past the end"),
            True,
            help=_("Continue after the text has ended. When off, the end token ends the text."),
        )
        stop_ids = frozenset() if go_on else stops.default_ids(lm)
        settings = lmcore.SamplingSettings(temperature=0.0, repetition_penalty=penalty)
        question = (lm.name, tuple(prompt.ids), n_tokens, penalty, go_on)
        with button:
            jobs.button(
                "trap",
                question,
                _("Run greedily"),
                lambda: watch_circling(
                    lmcore.generate(lm, prompt.ids, settings, max_new_tokens=n_tokens, stop_ids=stop_ids)
                ),
                at_once=small,
            )
        st.caption(
            _(
                "At temperature 0, the most probable token is always chosen. As soon as the context looks the "
                "same to the model as before, the same tokens follow again. Many models also give a sentence a "
                "higher probability after they have just read it. Both are measured here."
            )
        )
    with right:
        if jobs.find("trap", question) is None:
            st.info(_("Press Run greedily. The text grows until it repeats itself."))
        jobs.show(
            "trap", question, lambda found: len(found.ids) / n_tokens, lambda found, all_: _draw(prompt, found, all_)
        )
    page.snippet(
        CODE.format(
            name=lm.name,
            prompt=prompt.text,
            penalty=penalty,
            n=n_tokens,
            stop_ids="()" if go_on else "lm.end_tokens",
        )
    )


def _draw(prompt: Encoding, found: Circling, everything: bool) -> None:
    _sentence(found, everything)
    loop, labels = found.loop, [visible(token) for token in found.tokens]
    spans = loop.spans(len(found.ids)) if loop else []
    along, by_round = st.columns([3, 2]) if spans else (st.container(), None)
    with along:
        _along(found, labels, spans)
    rounds = found.round_probs()
    if by_round is not None and loop is not None:
        with by_round:
            page.figure(
                against_length(
                    list(range(1, len(rounds) + 1)),
                    {_("geometric mean"): [100 * p ** (1 / loop.period) for p in rounds]},
                    x_title=_("round"),
                    y_title=_("probability of a token (%)"),
                    unit="%",
                ),
                "generation.rounds",
                _("The geometric mean of the token probabilities of each round."),
            )
    _text(prompt, found)
    if everything:
        _tables(found, labels)


def _along(found: Circling, labels: list[str], spans: list[tuple[int, int]]) -> None:
    page.figure(
        along_text(
            [math.exp(p) for p in found.log_probs],
            [f"{n}: {label}" for n, label in enumerate(labels)],
            spans,
            x_title=_("tokens after the prompt"),
            y_title=_("probability of the token"),
        ),
        "generation.trap",
        _("The probability of each token along the text; the rounds of the loop are shaded."),
    )


def _sentence(found: Circling, everything: bool) -> None:
    loop = found.loop
    if loop is None:
        if everything:
            st.info(_("No loop in {n} tokens: try more tokens, or another prompt.").format(n=len(found.ids)))
        return
    rounds = found.round_probs()
    st.markdown(
        _("**From token {start} on, the text repeats itself**: {period} tokens per round, {n} rounds so far.").format(
            start=loop.start, period=loop.period, n=loop.rounds
        )
        + " "
        + _("The probability of the whole round was {first} the first time and {last} the last time.").format(
            first=fmt_probability(rounds[0]), last=fmt_probability(rounds[-1])
        )
    )


def _text(prompt: Encoding, found: Circling) -> None:
    """Show the text with each round on a line of its own."""
    start = found.loop.start if found.loop else len(found.tokens)
    spans = [(0, start), *(found.loop.spans(len(found.tokens)) if found.loop else [])]
    parts = [b"".join(found.tokens[low:high]) for low, high in spans]
    parts[0] = prompt.text.encode("utf-8", "replace") + parts[0]
    st.code("\n".join(visible(part).replace("␣", " ") for part in parts if part), language=None, wrap_lines=True)


def _tables(found: Circling, labels: list[str]) -> None:
    rounds, loop = found.round_probs(), found.loop
    if loop is not None and rounds:
        st.subheader(_("Round by round"), anchor=False)
        columns = {
            _("round"): list(range(1, len(rounds) + 1)),
            _("probability of the round"): rounds,
            _("mean of ln P"): [math.log(p) / loop.period if p else -math.inf for p in rounds],
            _("least probable token"): [
                min(zip(found.log_probs[a:b], labels[a:b], strict=True))[1]
                for a, b in loop.spans(len(found.ids))[: loop.rounds]
            ],
            _("its probability"): [
                math.exp(min(found.log_probs[a:b])) for a, b in loop.spans(len(found.ids))[: loop.rounds]
            ],
        }
        page.numbers_table(
            pd.DataFrame(columns),
            "generation-rounds",
            {
                _("probability of the round"): "probability",
                _("mean of ln P"): "logit",
                _("its probability"): "probability",
            },
        )
