"""The logit lens: what the model would say if it stopped after each step."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import Trace
from lmcore.analysis import LensLayer, logit_lens
from pages.common import page, session, widgets
from pages.common.text import _
from pages.figures.logits import lens as figures
from pages.stages.blocks.chosen import block_of
from pages.stages.logits.chosen import Chosen

MAX_POSITIONS, MIN_POSITIONS = 128, 8
_MAX_MULTIPLICATIONS = 25e9  # of the head, over all states and positions: about a second
_KEPT = "lens.layers"  # what was computed last: (model, ids, token, first position) and its layers


def quantity_picker() -> str:
    """Let the reader choose what the cells show."""
    names = {
        "top": _("Top token"),
        "probability": _("Probability of the followed token"),
        "rank": _("Rank of the followed token"),
    }
    return widgets.select("lens", _("Cells show"), list(names), "top", format_func=names.__getitem__)


def within_picker(chosen: Chosen) -> bool:
    """Let the reader choose whether the states between attention and MLP are shown; with many blocks, not at first."""
    return widgets.toggle(
        "lens.within",
        _("Show states within blocks"),
        chosen.config.n_layers <= 8,
        help=_("Also show the states after the attention of each block, before its MLP."),
    )


def window(chosen: Chosen, within: bool) -> slice:
    """Return the positions to read: all of a short text, else the last ones up to the chosen one."""
    config, length = chosen.config, len(chosen.found.ids)
    for_one = ((2 if within else 1) * config.n_layers + 1) * config.vocab_size * config.d_model
    most = max(MIN_POSITIONS, min(MAX_POSITIONS, int(_MAX_MULTIPLICATIONS // for_one)))
    first = max(0, min(chosen.position - most + 1, length - most))
    return slice(first, min(first + most, length))


def layers_of(chosen: Chosen, trace: Trace, within: bool) -> list[LensLayer]:
    """Return the lens of every state at the positions of the window."""
    part = window(chosen, within)
    key = (chosen.lm.name, tuple(chosen.found.ids), chosen.target, part.start, within)
    if st.session_state.get(_KEPT, (None,))[0] != key:
        with st.spinner(_("Reading every state of the stream")), session.forward_lock():
            layers = list(logit_lens(chosen.lm.model, trace, chosen.target, part, within))
        st.session_state[_KEPT] = (key, layers)
    return st.session_state[_KEPT][1]


def show(chosen: Chosen, layers: list[LensLayer], part: slice, quantity: str) -> None:
    """Show the lens as a picture: one row per state, one column per position."""
    first, tokens = part.start, chosen.labels[part]
    states = [layer.state for layer in layers]
    if len(chosen.labels) > len(tokens):
        st.caption(_("Positions {first} to {last} are drawn.").format(first=first, last=first + len(tokens) - 1))
    if quantity == "top":
        figure = figures.lens_tokens(
            [layer.top_probs.tolist() for layer in layers],
            [[chosen.name(i) for i in layer.top_ids.tolist()] for layer in layers],
            states,
            tokens,
            (_("Position"), _("Probability")),
        )
    elif quantity == "probability":
        probs = [layer.target_probs.tolist() for layer in layers]
        figure = figures.lens_target(probs, states, tokens, (_("Position"), _("Probability")))
    else:
        places = [layer.target_ranks.tolist() for layer in layers]
        figure = figures.lens_ranks(places, chosen.config.vocab_size, states, tokens, (_("Position"), _("Rank")))
    page.figure(
        figure,
        "lens-map",
        _(
            "Heat map: a row for each state of the residual stream, the model's own output last; a column for "
            "each position."
        ),
        chooses=lambda cell: {"position": first + cell.column, **block_of(states[cell.row])},
    )
    st.caption(
        _(
            "Every state goes through the final norm and the head. resid_mid is the state after attention, "
            "resid_post the state after the MLP."
        )
    )


def table(chosen: Chosen, layers: list[LensLayer], part: slice) -> None:
    """Show the chosen position's column."""
    at = chosen.position - part.start
    st.subheader(_("The chosen position, state by state"), anchor=False)
    frame = pd.DataFrame(
        {
            _("State"): [layer.state for layer in layers],
            _("Top token"): [chosen.name(int(layer.top_ids[at])) for layer in layers],
            "P": [layer.top_probs[at].item() for layer in layers],
            _("P of the followed token"): [layer.target_probs[at].item() for layer in layers],
            _("Its rank"): [int(layer.target_ranks[at]) for layer in layers],
        }
    )
    page.numbers_table(frame, "lens", {"P": "probability", _("P of the followed token"): "probability"})


def snippet(chosen: Chosen) -> str:
    """Return the code for this section."""
    return chosen.snippet(
        f"at = slice({chosen.position}, {chosen.position + 1})    # the positions to read\n"
        f"for layer in lmcore.analysis.logit_lens(lm.model, trace, target_id={chosen.target}, positions=at):\n"
        "    print(layer.state, layer.top_ids[0].item(), layer.target_probs[0].item(), layer.target_ranks[0].item())",
    )
