"""The merges that turn bytes into tokens, one after another."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.loading.vocabulary_files import scored_vocabularies
from lmcore.tokenizer import MergeStep
from pages.common import link, page, widgets
from pages.common.text import _, visible
from pages.figures.tokenization import merges as figures
from pages.live.merge_replay import Wording, merge_replay
from pages.stages.tokenization import scores, vocabularies
from pages.stages.tokenization.common import require_text

_OWN = "own"
_RUNNERS_UP = 3
MAX_CHARACTERS = 120  # of the text are replayed: more pieces than a reader can follow

CODE = """
import lmcore

tokenizer = lmcore.load({name!r}).tokenizer
steps = tokenizer.replay({text!r})
for step in steps:
    print(step.rank, step.pair, len(step.pieces))
assert not steps or steps[-1].pieces == tokenizer.encode({text!r}).tokens
"""


def show(lm: LanguageModel) -> None:
    """Draw the view of the model's merges, or of a scored vocabulary, which has none."""
    text = require_text()
    others = scored_vocabularies()
    titles = {_OWN: _("{model}: merges").format(model=visible(lm.name))}
    titles |= {name: _("{name}: scores").format(name=vocabularies.title(name)) for name in others}
    chosen = widgets.select("merges.vocabulary", _("Vocabulary"), list(titles), _OWN, format_func=titles.__getitem__)
    if chosen == _OWN:
        _merges(lm, text)
    else:
        scores.show(chosen, text)


def _merges(lm: LanguageModel, text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        st.caption(_("Only the first {n} characters of the prompt are replayed.").format(n=MAX_CHARACTERS))
        text = text[:MAX_CHARACTERS]
    first, steps = lm.tokenizer.first_pieces(text), lm.tokenizer.replay(text)
    step = link.remember("merge_step", 0, int)
    if not 0 <= step <= len(steps):
        step = st.session_state["merge_step"] = min(max(step, 0), len(steps))
    merge_replay(
        first,
        steps,
        key="merges.replay",
        step=step,
        on_step=lambda moved: st.session_state.update(merge_step=moved),
        wording=Wording(
            label=_("Merges done"),
            start=_("Before the first merge: {pieces} single bytes.")
            if lm.tokenizer.merges_bytes
            else _("Before the first merge: {pieces} characters."),
            step=_(
                "Merge {step} of {steps}, rank {rank}: {left} + {right} → {joined}. {pieces} pieces. Other "
                "candidates: {others}"
            ),
        ),
        notes=[{"others": _runners_up(each) or _("none")} for each in steps],
    )
    if not steps:
        st.info(_("No adjacent pair is in the list of merges, so the pieces stay as they are."))
    counts = [len(first), *(len(step.pieces) for step in steps)]
    joined = [f"{visible(s.pair[0])} + {visible(s.pair[1])} · {_('rank')} {s.rank}" for s in steps]
    page.figure(
        figures.pieces_left(counts, joined, x_title=_("merges done"), y_title=_("pieces"), step=step),
        "merges.pieces",
        _("The number of pieces after each merge: from {start} down to {end} tokens.").format(
            start=counts[0], end=counts[-1]
        ),
    )
    st.markdown(_how(lm).format(n=len(lm.tokenizer.merges)))
    page.numbers_table(
        pd.DataFrame(
            {
                _("merge"): range(1, len(steps) + 1),
                _("rank"): [s.rank for s in steps],
                _("left"): [visible(s.pair[0]) for s in steps],
                _("right"): [visible(s.pair[1]) for s in steps],
                _("joined"): [visible(b"".join(s.pair)) for s in steps],
                _("joined (hex)"): [b"".join(s.pair).hex(" ") for s in steps],
                _("pieces left"): counts[1:],
                _("other candidates (rank)"): [_runners_up(s) for s in steps],
            }
        ),
        "merges",
    )
    page.snippet(CODE.format(name=lm.name, text=text))


def _how(lm: LanguageModel) -> str:
    """Return what this model's tokenizer does, with a place for the number of its merges."""
    if lm.tokenizer.merges_bytes:
        return _(
            "Training learned {n:,} merges, in order. The text starts as single bytes. Of all adjacent pairs, "
            "the one learned first (the lowest rank) is joined wherever it occurs, until no pair is in the "
            "list. The other candidates are the pairs that could also have been joined at this step."
        )
    return _(
        "This vocabulary lists tokens, not pairs. Two adjacent pieces may be joined if the result is a token, "
        "and the result that comes first in the vocabulary is joined first. This gives {n:,} pairs with a "
        "rank. The text starts as single characters; a character that is not in the vocabulary starts as "
        "bytes. The other candidates are the pairs that could also have been joined at this step."
    )


def _runners_up(step: MergeStep) -> str:
    """Return the next best pairs of a step with their ranks."""
    best = [f"{visible(left)} + {visible(right)} ({rank})" for rank, (left, right) in step.runners_up[:_RUNNERS_UP]]
    return ", ".join(best) + (" …" if len(step.runners_up) > _RUNNERS_UP else "")
