"""What a server was found to do, on the page: what it can, what it cannot, and what the explorer makes of it."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore.engines.capabilities import Capabilities
from lmcore.engines.engine import Engine
from pages.common import engines, link
from pages.common.text import _, visible


def of(engine: Engine, log_probs: bool = False, check: bool = True) -> Capabilities:
    """Return what an engine can do, and show it: asked when it was not yet, and that it serves the model it did.

    Args:
        engine: which one.
        log_probs: the page is about log-probabilities; where there are none, say so and stop it.
        check: ask now and then whether it still serves that model; not where the page has something to show without.
    """

    def ask() -> Capabilities:
        if check:
            engine.check()
        return engine.capabilities

    found = engines.ask(engine, "capabilities", ask)
    with st.expander(_("What this server supports")):
        st.table(pd.DataFrame(_rows(engine, found), columns=[_("question"), _("found")]).set_index(_("question")))
        st.caption(
            _("Found with a few requests of one token each, when {name} was first opened.").format(
                name=f"**{engine.name}**"
            )
        )
    if log_probs and found.names == "none":
        st.info(_("{name} returns no log-probabilities.").format(name=f"**{engine.name}**"))
        link.stop()
    return found


def _rows(engine: Engine, found: Capabilities) -> list[tuple[str, str]]:
    unknown = _("not returned by the server")
    names = {
        "id": _("by id"),
        "text": _("by text: tokens with the same text cannot be told apart"),
        "none": _("it returns none"),
    }
    scores = {
        "by id": _("yes, by id, with the rank of every token"),
        "by text": _("yes, by text, among the most probable ones"),
        "by text, one place late": _("yes, by text and one position late; corrected here"),
        "none": _("no"),
    }
    processed = {
        True: _("processed: they depend on the temperature"),
        False: _("raw: the unmodified model, at T = 1"),
        None: _("not found"),
    }
    most = f"{found.max_log_probs:,}"
    if found.whole_vocabulary:
        most = _("the whole vocabulary")
    defaults = ", ".join(f"{name} {value:g}" for name, value in found.defaults.items() if value is not None)
    return [
        (_("model"), visible(engine.config.model)),
        (_("context length"), f"{found.context_length:,}" if found.context_length else unknown),
        (_("vocabulary size"), f"{found.vocab_size:,}" if found.vocab_size else unknown),
        (_("prompt as token ids"), _("yes") if found.takes_ids else _("no: it takes text and tokenizes it itself")),
        (_("tokenizer to ask"), _("yes") if found.tokenizer else _("no")),
        (_("log-probabilities"), names[found.names]),
        (_("at most"), most),
        (_("raw or processed"), processed[found.processed]),
        (_("scores of the prompt's tokens"), scores[found.prompt_scores]),
        (_("the server's default sampling settings"), defaults or unknown),
    ]
