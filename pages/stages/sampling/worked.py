"""The worked example that lessons share, its table, and figures in circulation that are wrong."""

from __future__ import annotations

import pandas as pd
import streamlit as st

import lmcore
from lmcore import SamplingSettings
from pages.common import page
from pages.common.text import _
from pages.figures.theme import fmt_probability

PROMPT = "今天天气"
LOGITS = {"很": 2.3, "好": 1.5, "不错": 3.8, "真": 0.5, "差": 1.2}
ROWS = {
    "T = 1": SamplingSettings(),
    "T = 0.5": SamplingSettings(temperature=0.5),
    "T = 1.5": SamplingSettings(temperature=1.5),
    "top-k 3": SamplingSettings(top_k=3),
    "top-p 0.9": SamplingSettings(top_p=0.9),
}
# What some lessons print, in percent, for the same logits; computed beside it.
CLAIMED = {"T = 0.5": (3.8, 0.8, 94.2, 0.1, 0.5), "T = 1.5": (21.2, 12.6, 58.1, 6.4, 10.3)}


def table() -> pd.DataFrame:
    """Return the probabilities of the five tokens under each setting of `ROWS`, computed by lmcore."""
    rows = [lmcore.reshape(list(LOGITS.values()), settings).probs.tolist() for settings in ROWS.values()]
    return pd.DataFrame(rows, index=list(ROWS), columns=list(LOGITS))


def mass_kept_by_top_p() -> float:
    """Return what the tokens kept by top-p 0.9 weigh before they are renormalised."""
    (step,) = lmcore.reshape(list(LOGITS.values()), ROWS["top-p 0.9"]).steps
    return 1 - step.removed_mass


def show() -> None:
    """Show the table, then the wrong figures beside the right ones."""
    st.subheader(_("The worked example"), anchor=False)
    st.caption(_("Five candidates after 今天天气. Each row applies one setting; a removed token has 0."))
    probs = table()
    frame = probs.rename_axis(_("Setting")).reset_index()
    page.numbers_table(frame, "worked-example", dict.fromkeys(LOGITS, "probability"))
    st.subheader(_("Errors in tutorials, checked"), anchor=False)
    st.table(_checks(probs))


def _checks(probs: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for setting, claimed in CLAIMED.items():
        rows.append(
            {
                _("Claim"): f"{setting}: {' / '.join(map(str, claimed))} % (Σ {sum(claimed):.1f} %)",
                _("Computed"): " / ".join(f"{100 * p:.2f}" for p in probs.loc[setting]) + " % (Σ 100 %)",
            }
        )
    kept = fmt_probability(mass_kept_by_top_p())
    rows.append(
        {
            _("Claim"): _("After top-p 0.9, the kept words sum to 90 %"),
            _("Computed"): _("{kept} before renormalising: the token that crosses the threshold is kept").format(
                kept=kept
            ),
        }
    )
    return pd.DataFrame(rows).set_index(_("Claim"))
