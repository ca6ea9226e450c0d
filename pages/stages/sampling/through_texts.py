"""The lab's settings, and those that are pinned, at every position of many texts."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from lmcore import SamplingSettings
from lmcore.analysis.logits.texts import Line
from lmcore.analysis.sampling.command import as_arguments
from lmcore.analysis.sampling.texts import Summary, TextThrough, rows, through_texts
from lmcore.language_model import LanguageModel
from lmcore.worker import Worker, each_of
from pages.common import page, session, texts
from pages.common.text import _, visible
from pages.figures.theme import fmt_probability

_READING = "through.reading"  # (model, lines, settings) and the reading under way or done
_REFRESH = 1.0  # seconds between two looks at it


def show(lm: LanguageModel, settings: SamplingSettings, pinned: SamplingSettings | None) -> None:
    """Offer to go through texts; show what has been found so far.

    Args:
        lm: The language model.
        settings: The lab's.
        pinned: Those beside them, if there are any.
    """
    lines = texts.choose()
    both = [settings, *([] if pinned is None else [pinned])]
    key = (lm.name, tuple(lines), tuple(both))
    kept, reading = st.session_state.get(_READING, (None, None))
    if kept != key and reading is not None:
        reading.stop()
        del st.session_state[_READING]
        reading = None
    if reading is None or not reading.running:
        st.button(
            _("Go through the texts"),
            key="through.start",
            type="primary",
            on_click=_start,
            args=(key, lm, lines, both),
            disabled=not lines,
        )
    else:
        st.button(_("Stop"), key="through.stop", on_click=reading.stop)
    if reading is None:
        st.caption(_("Another setting or another list begins anew: press the button again."))
    else:
        st.fragment(_watch, run_every=_REFRESH if reading.running else None)(lm, reading, reading.running)
    if (options := as_arguments(settings)) is not None:
        command = f"python -m lmcore.sampling {shlex.quote(lm.name)} --text texts.txt {options} --out table.csv"
        st.code(command, language="bash", wrap_lines=True)


def summary(settings: Sequence[Sequence[Mapping[str, Any]]]) -> pd.DataFrame:
    """Return a row for the lab's settings, and one for those that are pinned.

    Args:
        settings: For each the columns of one or more texts.
    """
    told = {name: measures(Summary.of(each)) for name, each in zip(titles(), settings, strict=False)}
    return pd.DataFrame(told).T.rename_axis(_("Setting"))


def titles() -> tuple[str, str]:
    """Return what the two settings are called."""
    return _("these settings"), _("pinned")


def measures(found: Summary) -> dict[str, str]:
    """Return a summary in words, for a row."""
    after = "–" if math.isnan(found.bits_after) else f"{found.bits_after:.3f}"
    told = {
        _("Could be drawn"): _("{n} of {of}").format(n=f"{found.possible:,}", of=f"{found.positions:,}"),
        _("Removed (mean)"): fmt_probability(found.removed_mass),
        _("Candidates (median)"): f"{found.candidates:,}",
        _("Surprisal at T = 1, after"): f"{found.bits_before:.3f} → {after}",
    }
    if not math.isnan(found.truth_before):
        told[_("Distance to the grammar")] = f"{found.truth_before:.4f} → {found.truth_after:.4f}"
    return told


def _start(key: tuple[Any, ...], lm: LanguageModel, lines: Sequence[Line], both: Sequence[SamplingSettings]) -> None:
    truth = session.grammar(lm)
    work = each_of(lambda: through_texts(lm, lines, both, truth), session.forward_lock())
    reading = Worker(work, name="through", total=len(lines))
    reading.join(0.5)  # a few short texts are done before anyone would read a progress bar
    st.session_state[_READING] = (key, reading)


def _watch(lm: LanguageModel, reading: Worker[TextThrough], was_running: bool) -> None:
    """Draw what there is so far; runs by itself again and again until the reading has ended."""
    running, found = reading.running, reading.items
    if running or len(found) < reading.total:
        st.progress(len(found) / reading.total, f"{len(found):,} / {reading.total:,}")
    page.failure(reading.error)
    texts.say_problems(lm, [(text.line, text.problem) for text in found if text.problem])
    scored = [text for text in found if text.tables]
    if scored:
        st.table(summary([[text.tables[place] for text in scored] for place in range(len(scored[0].tables))]))
    if scored and not running:
        _tables(lm, scored)
    if was_running and not running:
        st.rerun()  # the whole page, once: the button changes


def _tables(lm: LanguageModel, scored: Sequence[TextThrough]) -> None:
    """Show a row for each text, and offer the table of all positions."""
    names = ["", *titles()[1:]][: len(scored[0].tables)]
    told = []
    for text in scored:
        row: dict[str, Any] = {_("Line"): text.line.number, _("Text"): visible(text.line.text)}
        for name, table in zip(names, text.tables, strict=True):
            found, suffix = Summary.of([table]), f" · {name}" if name else ""
            row[_("Positions")] = found.positions
            row[_("Could be drawn") + suffix] = found.possible
            row[_("Removed (mean)") + suffix] = found.removed_mass
            row[_("Candidates (median)") + suffix] = found.candidates
            row[_("after (bits)") + suffix] = found.bits_after
        told.append(row)
    frame = pd.DataFrame(told)
    page.numbers_table(
        frame, "texts-through", {name: "probability" for name in frame if str(name).startswith(_("Removed (mean)"))}
    )
    st.caption(_("Every position of all texts:"))
    page.downloads(
        "positions-through",
        lambda: pd.DataFrame([{**row, "token": visible(row["token"])} for row in rows(lm, scored, names)]),
    )
