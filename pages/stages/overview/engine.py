"""The way in front of a model that runs elsewhere: what its server tells, and plainly what it does not."""

from __future__ import annotations

import numpy as np
import streamlit as st

from lmcore.engines.engine import Engine
from pages.common import engine_facts, engines, page
from pages.common.text import _
from pages.figures import theme
from pages.live.token_strip import token_strip
from pages.stages.logits.engine import UNKNOWN, candidate_labels, named
from pages.stages.tokenization.common import MAX_DRAWN, require_text

ASKED = 15  # most probable next tokens, as bars
CODE = """
from lmcore.engines.config import configured
from lmcore.engines.engine import Engine

engine = Engine(next(config for config in configured() if config.name == {name!r}))
prompt = engine.prompt({prompt!r})
print(engine.next(prompt, {n}).best)
engine.close()
"""


def show(engine: Engine) -> None:
    """Show the tokens and the next token's probabilities, where they are told, and name what is not."""
    text = require_text()
    facts = engine_facts.of(engine, log_probs=True)
    name = f"**{engine.name}**"
    tokens, inside, following = st.columns([2, 2, 3], gap="large")
    with tokens:
        st.subheader(_("Tokens"), anchor=False)
        if facts.tokenizer is None:
            st.markdown(_("{name} does not say how it cuts the text.").format(name=name))
        else:
            found = engines.ask(engine, ("tokens", text), lambda: engine.tokenize(text))
            labels = [label or UNKNOWN for label in found.labels[:MAX_DRAWN]]
            token_strip(labels, found.ids[:MAX_DRAWN], key="overview.tokens", label=_("Tokens"))
        _lead("tokenization", _("Its tokens, one by one"))
    with inside:
        st.subheader(_("Inside the model"), anchor=False)
        st.markdown(
            _(
                "Embedding, position, blocks, what each block would say, hidden state: {name} returns none of these. "
                "They stay in its server. Choose a local model above to see them for the same text."
            ).format(name=name)
        )
    with following:
        st.subheader(_("The next token"), anchor=False)
        n = min(ASKED, facts.max_log_probs) if not facts.whole_vocabulary else ASKED
        prompt = engine.prompt(text)
        best = engines.ask(engine, ("next", prompt, n), lambda: engine.next(prompt, n))
        probs = np.exp([each.log_prob for each in best.best])
        rest = max(1 - float(probs.sum()), 0.0)
        page.figure(
            theme.bars(
                [*probs, rest],
                [*named(candidate_labels(engine, best), best), _("all others")],
                kind="probability",
                value_title=_("Probability"),
            ),
            "overview-engine",
            _("Bars: the probabilities of the most probable next tokens, as returned by the server, and of the rest."),
        )
        _lead("logits", _("What it says at each position"))
        _lead("sampling", _("What temperature, top-k and top-p do to them"))
        _lead("generation", _("Let the server draw: token by token"))
    page.snippet(CODE.format(name=engine.name, prompt=text, n=n))


def _lead(stage: str, sentence: str) -> None:
    page.follow(page.Suggestion(sentence, stage))
