"""The lab's settings at every position of the prompt or of many texts, beside those that are pinned."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import pandas as pd
import streamlit as st
from torch import Tensor

from lmcore import SamplingSettings
from lmcore.analysis.sampling.through import LOOSE, ScoredThrough, TextLogits
from lmcore.corpus.truth import Truth
from pages.common import page, session, widgets
from pages.common.shared import shared
from pages.common.text import _, visible
from pages.figures.sampling.through import kept_against_entropy
from pages.figures.theme import fmt_probability
from pages.live.generated_text import TextToken, generated_text
from pages.stages.sampling import knobs, through_texts

MAX_NUMBERS = 512 * 49_152  # logits gone through at each change of a setting
_KEPT = 6  # settings whose numbers are kept with a text

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
    lm = session.language_model()
    kept = knobs.pinned_settings(lm.config.vocab_size)
    of = {"prompt": _("The prompt"), "texts": _("Several texts")}
    if widgets.choice("through_of", _("Which text"), list(of), "prompt", format_func=of.__getitem__) == "texts":
        through_texts.show(lm, settings, kept)
        return
    ids = tuple(session.encoding().ids)
    if len(ids) < 2:
        st.info(_("Nothing predicts the first token. Type more above."))
        return
    most = max(MAX_NUMBERS // lm.config.vocab_size, 2)
    if len(ids) > most:
        st.caption(_("The first {n:,} of {of:,} tokens.").format(n=most, of=len(ids)))
        ids = ids[:most]
    text = _text_of(lm.name, ids, session.logits(), session.grammar(lm))
    here = text.under(settings)
    beside = None if kept is None else text.under(kept)
    if here is None:
        st.info(_("At some position these settings leave no token. Use smaller penalties and biases."))
        return
    columns = [found.columns() for found in (here, beside) if found is not None]
    st.table(through_texts.summary([[each] for each in columns]))
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


class _Text:
    """A text's logits, and what the latest settings made of them; for all sessions that look at it."""

    def __init__(self, logits: Tensor, ids: tuple[int, ...], truth: Truth | None) -> None:
        self._text = TextLogits.of(logits[: len(ids)], ids)
        known = None if truth is None else [truth.next_token_probs(ids[:end]) for end in range(1, len(ids))]
        self._truth = known if known is not None and any(row is not None for row in known) else None
        self._found: dict[SamplingSettings, ScoredThrough | None] = {}
        self._lock = threading.Lock()

    def under(self, settings: SamplingSettings) -> ScoredThrough | None:
        """Go through it; None where these settings leave no token somewhere."""
        with self._lock:
            if settings not in self._found:
                try:
                    self._found[settings] = ScoredThrough.of(self._text, settings, self._truth)
                except ValueError:
                    self._found[settings] = None
                for old in list(self._found)[:-_KEPT]:
                    del self._found[old]
            return self._found[settings]


@shared(entries=3)
def _text_of(name: str, ids: tuple[int, ...], _logits: Tensor, _truth: Truth | None) -> _Text:
    return _Text(_logits, ids, _truth)


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
        st.text(_("Tokens that came and were removed, the most probable first: {tokens}").format(tokens=shown))
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
