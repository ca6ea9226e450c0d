"""Several texts scored one after another, from a pasted list or a file."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.analysis.logits.texts import Line, ScoredText, score_texts
from lmcore.worker import Worker, each_of
from pages.common import page, session, texts
from pages.common.text import _, visible
from pages.figures.logits import positions as figures

_DRAWN = 30
_REFRESH = 1.0  # seconds between two looks at the reading
_READING = "several.reading"  # (model, lines) and the reading under way or done


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    with controls:
        lines = texts.choose()
        buttons = st.container()
    key = (lm.name, tuple(lines))
    kept, reading = st.session_state.get(_READING, (None, None))
    if kept != key and reading is not None:
        reading.stop()
        del st.session_state[_READING]
        reading = None
    if reading is None and texts.are_examples():
        reading = _read(lm, lines)  # three short texts: a first picture costs nobody a press
    with buttons:
        if reading is not None and reading.running:
            st.button(_("Stop"), key="several.stop", on_click=reading.stop, width="stretch")
        else:
            st.button(
                _("Score the texts"),
                key="several.start",
                type="primary",
                on_click=_start,
                args=(lm, lines),
                disabled=not lines,
                width="stretch",
            )
    with picture:
        if reading is None:
            st.info(_("Paste texts, one per line, or choose a file. Then press the button."))
        else:
            st.fragment(_watch, run_every=_REFRESH if reading.running else None)(lm, reading, reading.running)
    page.snippet(_snippet(lm, lines))


def _start(lm: LanguageModel, lines: list[Line]) -> None:
    _read(lm, lines)


def _read(lm: LanguageModel, lines: list[Line]) -> Worker[ScoredText]:
    reading = Worker(each_of(lambda: score_texts(lm, lines), session.forward_lock()), total=len(lines))
    reading.join(0.5)  # a few short texts are done before anyone would read a progress bar
    st.session_state[_READING] = ((lm.name, tuple(lines)), reading)
    return reading


def _watch(lm: LanguageModel, reading: Worker[ScoredText], was_running: bool) -> None:
    """Draw what there is so far; runs by itself again and again until the reading has ended."""
    running, found = reading.running, reading.items
    if running or len(found) < reading.total:
        st.progress(len(found) / reading.total, f"{len(found):,} / {reading.total:,}")
    page.failure(reading.error)
    texts.say_problems(lm, [(text.line, text.problem) for text in found if text.problem])
    scored = [text for text in found if text.scores is not None]
    if scored:
        _summary(scored)
        _table(scored)
    if was_running and not running:
        st.rerun()  # the whole page, once: the button changes


def _summary(scored: list[ScoredText]) -> None:
    nats = np.concatenate([text.scores.nats.numpy() for text in scored if text.scores])
    tokens, loss, perplexity = st.columns(3)
    tokens.metric(_("Tokens predicted"), f"{len(nats):,}")
    loss.metric(_("Loss (nats per token)"), f"{nats.mean():.4f}")
    perplexity.metric(_("Perplexity"), f"{math.exp(nats.mean()):.3f}")
    worst = sorted(scored, key=lambda text: -text.scores.loss if text.scores else 0.0)[:_DRAWN]
    page.figure(
        figures.losses(
            [text.scores.bits.mean().item() for text in worst if text.scores],
            [f"{text.line.number}: {visible(text.line.text)}" for text in worst],
            _("Bits per token"),
        ),
        "several-bars",
        _("Bars: mean surprisal per token of each text, in bits. The most surprising text is at the top."),
    )
    if len(scored) > len(worst):
        st.caption(_("The {n} texts with the largest loss are drawn; the table lists all.").format(n=len(worst)))


def _table(scored: list[ScoredText]) -> None:
    rows = [(text, text.scores) for text in scored if text.scores is not None]
    frame = pd.DataFrame(
        {
            _("Line"): [text.line.number for text, _scores in rows],
            _("Text"): [visible(text.line.text) for text, _scores in rows],
            _("Tokens"): [text.n_tokens for text, _scores in rows],
            _("Loss (nats per token)"): [scores.loss for _text, scores in rows],
            _("Perplexity"): [scores.perplexity for _text, scores in rows],
            _("Surprisal (bits)"): [scores.bits.sum().item() for _text, scores in rows],
            _("Largest surprisal (bits)"): [scores.bits.max().item() for _text, scores in rows],
        }
    )
    page.numbers_table(frame, "texts", dict.fromkeys(frame.columns[3:], "number"))


def _snippet(lm: LanguageModel, lines: list[Line]) -> str:
    shown = [line.text for line in lines[:3]]
    return (
        "import lmcore\n"
        "from lmcore.analysis.logits.texts import read_texts, score_texts\n"
        f"lm = lmcore.load({lm.name!r})\n"
        f"lines = read_texts({chr(10).join(shown)!r}.encode())    # or the bytes of a file\n"
        "for found in score_texts(lm, lines):\n"
        "    print(found.line.number, found.problem or (found.scores.loss, found.scores.perplexity))"
    )
