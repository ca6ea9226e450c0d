"""Is a text restored from its ids? For each vocabulary, with what was lost."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from lmcore.tokenizer.differences import differences
from lmcore.tokenizer.vocabularies import Vocabulary
from pages.common import page
from pages.common.text import _, visible
from pages.stages.tokenization.vocabularies import Examined, title

_SHOWN = 8


def round_trips(
    text: str, start: int, window: int, found: Mapping[str, Vocabulary], examined: Mapping[str, Examined]
) -> None:
    """Draw the table: what each vocabulary adds and loses on a text, and the places where."""
    st.subheader(_("Is the text restored?"), anchor=False)
    st.markdown(
        _(
            "Decoding the ids should restore the text, down to the last byte. Some vocabularies lose a part of "
            "the text for good: those that normalise it (lower case, accents removed, full-width forms "
            "narrowed) and those with an unknown token."
        )
    )
    part = text[start : start + window]
    lines = []
    for name, vocabulary in found.items():
        cuts = examined[name].cuts
        whole = cuts.decoded == text
        read = part if whole else vocabulary.read(part)
        back = part if whole else vocabulary.cut(part).decoded
        lines.append(
            {
                _("vocabulary"): title(name),
                _("restored"): "✓" if whole else "✗ " + _("not the same text"),
                _("added in front"): " ".join(
                    visible(vocabulary.token_bytes(i)) for i in cuts.ids[: cuts.n_added].tolist()
                ),
                _("normalised to"): _("unchanged") if read == part else visible(read),
                _("decoded"): _("the text") if back == part else visible(back),
                _("differences"): "; ".join(
                    f"{visible(before) or '∅'} → {visible(after) or '∅'}"
                    for before, after in differences(part, back)[:_SHOWN]
                ),
            }
        )
    page.numbers_table(pd.DataFrame(lines), "round-trips")
    if "gemma-3-270m" in found:
        st.caption(
            _(
                "Gemma's vocabulary writes a space as ▁ and decoding turns it back, so nothing is lost, unless "
                "the text itself contains a ▁."
            )
        )
