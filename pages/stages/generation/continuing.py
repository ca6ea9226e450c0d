"""N continuations of the prompt side by side, under two settings: how alike, how probable, how repetitive."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from lmcore import Encoding, LanguageModel, SamplingSettings
from lmcore.analysis.generation.diversity import distinct, self_bleu
from lmcore.generation.continuations import Continuation, Continuations, continuations
from pages.common import page, widgets
from pages.common.text import _, markdown_literal, visible
from pages.figures.generation.curves import measures
from pages.stages.generation import chosen, jobs, stages, stops
from pages.stages.sampling import knobs

CODE = """
import lmcore
from lmcore.analysis.generation.diversity import distinct, self_bleu
from lmcore.generation.continuations import continuations

lm = lmcore.load({name!r})
ids = lm.tokenizer.encode({prompt!r}).ids
stop_ids = lm.end_tokens
for settings in (
    lmcore.SamplingSettings({first}),
    lmcore.SamplingSettings({second}),
):
    *_, last = continuations(lm, ids, settings, {n}, {n_tokens}, stop_ids)
    texts = [text.ids for text in last.texts]
    print([distinct(texts, n) for n in (1, 2, 3)], self_bleu(texts))
    for text in last.texts:
        print(text.seed, lm.tokenizer.decode(text.ids))
"""
MAX_SHOWN = 16


@dataclass(frozen=True)
class Both:
    """The texts under the first and the second settings; None before they are begun."""

    first: Continuations
    second: Continuations | None = None

    def share(self) -> float:
        """How much is drawn, from 0 to 1."""
        done = [each.step / each.n_tokens for each in (self.first, self.second) if each is not None]
        return sum(done) / 2


def show(lm: LanguageModel, prompt: Encoding) -> None:
    """Draw the view."""
    room = lm.config.context_length - len(prompt.ids)
    if room < 1:
        st.info(_("The prompt fills the context: shorten it to continue it."))
        return
    small = lm.config.vocab_size <= 5_000
    left, right = page.workbench()
    with left:
        button = st.container()
        first, second = _settings(lm)
        n = widgets.slider("many.texts", _("Texts per setting"), 2, MAX_SHOWN, 8)
        n_tokens = widgets.slider("many.tokens", _("New tokens at most"), 1, min(60, room), min(20, room))
        question = (lm.name, tuple(prompt.ids), first, second, n, n_tokens)
        with button:
            jobs.button(
                "many",
                question,
                _("Draw both"),
                lambda: _both(lm, prompt.ids, first, second, n, n_tokens),
                at_once=small and n * n_tokens <= 200,
            )
    with right:
        if jobs.find("many", question) is None:
            st.info(_("Press Draw both. Every text is drawn with its own seed, all in one batch."))
        jobs.show("many", question, Both.share, lambda found, all_: _draw(lm, (first, second), found, all_))
    asked = [", ".join(f"{k}={v!r}" for k, v in {**knobs.given(s), "seed": s.seed}.items()) for s in (first, second)]
    page.snippet(CODE.format(name=lm.name, prompt=prompt.text, first=asked[0], second=asked[1], n=n, n_tokens=n_tokens))


def _settings(lm: LanguageModel) -> tuple[SamplingSettings, SamplingSettings]:
    size = lm.config.vocab_size
    knobs.remember()
    st.markdown(_("**First settings**"))
    stages.common(size)
    stages.others(size)
    stages.rules(size)
    st.markdown(_("**Second settings**"))
    temperature = widgets.slider("many.temperature", _("Temperature") + " 2", 0.0, 2.0, 0.5, step=0.05)
    top_k = stages.top_k("many.top_k", "top-k 2", size)
    top_p = widgets.slider("many.top_p", "top-p 2", 0.0, 1.0, 1.0, step=0.01)
    seed = widgets.number(
        "seed", _("Seed"), 0, 2**32 - 1, 0, help=_("The seed of the first text. Each further text uses the next seed.")
    )
    first = replace(knobs.settings(size), seed=seed)
    changed: dict[str, Any] = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    return first, replace(first, **changed)


def _both(
    lm: LanguageModel, ids: Sequence[int], first: SamplingSettings, second: SamplingSettings, n: int, n_tokens: int
) -> Iterator[Both]:
    stop_ids = stops.default_ids(lm)
    found = None
    for step in continuations(lm, ids, first, n, n_tokens, stop_ids):
        found = Both(step)
        yield found
    assert found is not None
    for step in continuations(lm, ids, second, n, n_tokens, stop_ids):
        yield Both(found.first, step)


def _draw(
    lm: LanguageModel, settings: tuple[SamplingSettings, SamplingSettings], found: Both, everything: bool
) -> None:
    sides = [each for each in (found.first, found.second) if each is not None]
    names = [_("first: T {t}").format(t=f"{settings[0].temperature:g}")]
    names.append(_("second: T {t}").format(t=f"{settings[1].temperature:g}"))
    names = names[: len(sides)]
    texts = [[text.ids for text in side.texts] for side in sides]
    rows: dict[str, list[float | None]] = {
        **{f"distinct-{n}": [distinct(each, n) for each in texts] for n in (1, 2, 3)},
        "self-BLEU": [self_bleu(each) for each in texts],
    }
    page.figure(
        measures(rows, names, y_title=_("from 0 to 1")),
        "generation.many",
        _("distinct-1, -2, -3 and self-BLEU of the texts under each settings."),
    )
    st.caption(
        _(
            "distinct-n: the share of different sequences of n tokens; 1 if none occurs twice. self-BLEU: how "
            "many sequences of 1 to 3 tokens of a text also occur in the other texts; 1 if all texts are the "
            "same. Mean ln P: under the unmodified model (T = 1); nearer to 0 is more probable."
        )
    )
    for column, side, chosen_settings, name in zip(st.columns(2), sides, settings, names, strict=False):
        with column:
            _side(lm, side, chosen_settings, name)
    if everything and len(sides) == 2:
        _table(lm, sides, names)


def _side(lm: LanguageModel, side: Continuations, settings: SamplingSettings, name: str) -> None:
    st.markdown(f"**{name}** · {chosen.settings_in_words(settings)}")
    different = len({text.ids for text in side.texts})
    st.markdown(
        _("Mean ln P {mean}; {n} different texts of {of}.").format(
            mean=f"{_mean([p for text in side.texts for p in text.log_probs]):.3f}".replace("-", "−"),
            n=different,
            of=len(side.texts),
        )
    )
    st.markdown("\n".join(f"{i}. {markdown_literal(_bytes(lm, text))}" for i, text in enumerate(side.texts, start=1)))


def _table(lm: LanguageModel, sides: list[Continuations], names: list[str]) -> None:
    st.subheader(_("The numbers"), anchor=False)
    rows = [(name, text) for side, name in zip(sides, names, strict=True) for text in side.texts]
    page.numbers_table(
        pd.DataFrame(
            {
                _("settings"): [name for name, _text in rows],
                _("seed"): [str(text.seed) for _name, text in rows],
                _("text"): [visible(_bytes(lm, text)) for _name, text in rows],
                _("tokens"): [len(text.ids) for _name, text in rows],
                _("mean of ln P"): [_mean(text.log_probs) for _name, text in rows],
                **{f"distinct-{n}": [distinct([text.ids], n) for _name, text in rows] for n in (1, 2, 3)},
            }
        ),
        "generation-many",
        {_("mean of ln P"): "logit", **{f"distinct-{n}": "logit" for n in (1, 2, 3)}},
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _bytes(lm: LanguageModel, text: Continuation) -> bytes:
    return b"".join(lm.tokenizer.token_bytes(token_id) for token_id in text.ids)
