"""The lab's settings at every position of the prompt, beside those that are pinned."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import streamlit as st
import torch

from lmcore import SamplingSettings
from lmcore.analysis.sampling.through import LOOSE, ScoredThrough, TextLogits
from lmcore.language_model import LanguageModel
from pages.common import page, session, widgets
from pages.common.text import _, visible
from pages.figures.sampling.through import kept_against_entropy
from pages.figures.theme import fmt_probability
from pages.live.generated_text import TextToken, generated_text
from pages.stages.sampling import knobs

MAX_NUMBERS = 128 * 49_152  # logits gone through at each change of a setting
_TEXT, _FOUND = "through.text", "through.found"

CODE = """
import lmcore, pandas
from lmcore.analysis.sampling.through import ScoredThrough, TextLogits

lm = lmcore.load({name!r})
ids = lm.tokenizer.encode({prompt!r}).ids
text = TextLogits.of(lm(ids), ids)
found = ScoredThrough.of(text, {call})
pandas.DataFrame(found.columns()).to_csv("scored-through.csv")
"""


def show(settings: SamplingSettings, call: str) -> None:
    """Offer to go through the prompt; show what the settings, and those pinned in the lab, do at each position.

    Args:
        settings: The lab's.
        call: Python that gives them.
    """
    st.subheader(_("The settings at every position"), anchor=False)
    if not widgets.toggle("through", _("Apply these settings at every position of the prompt")):
        st.caption(
            _("What is kept at each position, and whether the token that really came could have been drawn there.")
        )
        return
    lm, ids = session.language_model(), tuple(session.encoding().ids)
    if len(ids) < 2:
        st.info(_("Nothing predicts the first token. Type more above."))
        return
    most = max(MAX_NUMBERS // lm.config.vocab_size, 2)
    if len(ids) > most:
        st.caption(_("The first {n:,} of {of:,} tokens.").format(n=most, of=len(ids)))
        ids = ids[:most]
    here = _through(lm, ids, settings)
    kept = knobs.pinned_settings(lm.config.vocab_size)
    beside = None if kept is None else _through(lm, ids, kept)
    if here is None:
        return  # said above: these settings leave no token
    st.table(_summary(here, beside))
    names = [lm.tokenizer.token_bytes(token) for token in ids]
    _text(names, here)
    labels = [visible(name) for name in names[1:]]
    page.figure(
        kept_against_entropy(
            labels,
            here.text.entropy_bits,
            here.candidates,
            here.possible,
            titles=(_("Entropy at T = 1 (bits)"), _("Candidates")),
            names=(_("could be drawn"), _("was removed"), _("effective candidates at T = 1")),
        ),
        "through-chart",
        _("Points: the entropy at each position and how many tokens can be drawn there."),
    )
    _extremes(labels, here)
    page.numbers_table(_table(labels, here, beside), "scored-through", _formats(here, beside))
    st.code(
        CODE.format(name=lm.name, prompt=session.prompt(), call=call).strip("\n"), language="python", wrap_lines=True
    )


def _through(lm: LanguageModel, ids: tuple[int, ...], settings: SamplingSettings) -> ScoredThrough | None:
    """Go through a text once for each settings; the last few are kept in the session, the logits' measures too."""
    text = st.session_state.get(_TEXT)
    if text is None or text[0] != (lm.name, ids):
        grammar = session.grammar(lm)
        places = range(len(ids) - 1)
        truth = None if grammar is None else [grammar.next_token_probs(ids[: place + 1]) for place in places]
        if truth is not None and not any(row is not None for row in truth):
            truth = None
        measured = TextLogits.of(session.logits()[: len(ids)], ids)
        text = st.session_state[_TEXT] = ((lm.name, ids), measured, truth)
        st.session_state[_FOUND] = {}
    found = st.session_state[_FOUND]
    if settings not in found:
        try:
            found[settings] = ScoredThrough.of(text[1], settings, text[2])
        except ValueError:
            found[settings] = None
        for old in list(found)[:-4]:
            del found[old]
    kept: ScoredThrough | None = found[settings]
    return kept


def _summary(here: ScoredThrough, beside: ScoredThrough | None) -> pd.DataFrame:
    rows = {_("these settings"): here, **({} if beside is None else {_("pinned"): beside})}
    return pd.DataFrame({name: _measures(found) for name, found in rows.items()}).T.rename_axis(_("Setting"))


def _measures(found: ScoredThrough) -> dict[str, str]:
    n, could = len(found.text), int(found.possible.sum())
    bits = found.bits[found.possible]
    told = {
        _("Could be drawn"): _("{n} of {of}").format(n=f"{could:,}", of=f"{n:,}"),
        _("Removed (mean)"): fmt_probability(float(found.removed_mass.mean())),
        _("Candidates (median)"): f"{int(found.candidates.median()):,}",
        _("Surprisal at T = 1, after"): f"{float(found.text.bits.mean()):.3f} → {_mean(bits)}",
    }
    if found.truth_before is not None and found.truth_after is not None:
        distances = found.truth_before.nanmean(), found.truth_after.nanmean()
        told[_("Distance to the grammar")] = " → ".join(f"{float(distance):.4f}" for distance in distances)
    return told


def _mean(bits: torch.Tensor) -> str:
    return f"{float(bits.mean()):.3f}" if len(bits) else "–"


def _text(names: Sequence[bytes], here: ScoredThrough) -> None:
    """Show the text; a token is the stronger, the more surprising it is after the settings."""
    most = max(float(here.text.bits.max()), 1e-9)
    tokens = [TextToken(names[0], kind="prompt")]
    for place, name in enumerate(names[1:]):
        bits, before = float(here.bits[place]), float(here.text.bits[place])
        could = bits < math.inf
        hint = _("{kept} candidates; {before} bits at T = 1, {after}").format(
            kept=f"{int(here.candidates[place]):,}",
            before=f"{before:.3f}",
            after=_("{bits} after").format(bits=f"{bits:.3f}") if could else _("removed"),
        )
        caption = f"{bits:.1f}" if could else "✗"
        tokens.append(TextToken(name, caption, min(bits / most, 1.0) if could else 1.0, hint))
    generated_text(tokens, key="through-text", label=_("The text: surprisal of each token after the settings, in bits"))
    st.caption(_("Below each token: its surprisal in bits after the settings; ✗: it was removed."))


def _extremes(labels: Sequence[str], here: ScoredThrough) -> None:
    hard, loose = here.too_hard[:10], here.too_loose[:10]
    if hard:
        shown = "  ".join(
            f"{labels[place]} ({fmt_probability(2.0 ** -float(here.text.bits[place]))})" for place in hard
        )
        st.text(_("Removed although probable, most probable first: {tokens}").format(tokens=shown))
    if loose:
        shown = "  ".join(f"{labels[place]} ({int(here.candidates[place]):,})" for place in loose)
        sentence = _("Too many kept, more than {n} candidates for each effective one: {tokens}")
        st.text(sentence.format(n=f"{LOOSE:g}", tokens=shown))


def _table(labels: Sequence[str], here: ScoredThrough, beside: ScoredThrough | None) -> pd.DataFrame:
    columns = here.columns()
    frame = pd.DataFrame({_("position"): range(1, len(labels) + 1), _("Token"): labels, "id": columns["token_id"]})
    frame[_("Entropy at T = 1 (bits)")] = columns["entropy_bits_before"]
    frame[_("T = 1 (bits)")] = columns["bits_before"]
    for suffix, found in (("", here), (" · " + _("pinned"), beside)):
        if found is not None:
            frame[_("Candidates") + suffix] = found.candidates.tolist()
            frame[_("Removed") + suffix] = found.removed_mass.tolist()
            frame[_("after (bits)") + suffix] = found.bits.tolist()
    return frame


def _formats(here: ScoredThrough, beside: ScoredThrough | None) -> dict[str, str]:
    names = [_("Removed"), *([] if beside is None else [_("Removed") + " · " + _("pinned")])]
    return dict.fromkeys(names, "probability")
