"""The logits page in front of a model that runs elsewhere: what its server says of every token of the prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from lmcore.engines.capabilities import Capabilities
from lmcore.engines.engine import Engine, Prompt
from lmcore.engines.prompt_scores import PromptToken
from lmcore.engines.tokens import is_part
from lmcore.engines.top_tokens import TopTokens
from pages.common import engine_facts, engines, link, page, widgets
from pages.common.text import _, in_bits, visible
from pages.figures.logits import positions as figures
from pages.figures.theme import fmt_probability
from pages.live.generated_text import TextToken, generated_text
from pages.stages.logits import engine_same_weights
from pages.stages.tokenization.common import require_text

FULL_COLOUR_BITS = 16.0
UNKNOWN = "⟨…⟩"  # stands for a part of a character whose bytes are not told
ASKED = 20  # most probable tokens at each position: a server that names tokens by text scores no others
CODE = """
from lmcore.engines.config import configured
from lmcore.engines.engine import Engine

engine = Engine(next(config for config in configured() if config.name == {name!r}))
tokens, following = engine.prompt_scores(engine.prompt({prompt!r}), {n})
for token in tokens:
    print(token.token_id, repr(token.text), token.log_prob, token.rank)
print(following.best)
engine.close()
"""


@dataclass(frozen=True)
class Asked:
    """A prompt's scores, and a label for each of its tokens: "" for a part of a character whose bytes are not told."""

    tokens: tuple[PromptToken, ...]
    following: TopTokens
    labels: list[bytes | str]


def show(engine: Engine) -> None:
    """Draw the page."""
    page.header(
        _("LM head and logits"),
        _(
            "What the server returns about scores: the probability of each token of the prompt, and the most "
            "probable next tokens."
        ),
    )
    text = require_text()
    facts = engine_facts.of(engine)
    size, told = f"{facts.vocab_size}" if facts.vocab_size else "V", _("returned for")
    page.equation(
        r"\ln P(t \mid t_0 \ldots t_{i-1}) = z_t - \ln \sum_{j=1}^{" + size + r"} e^{z_j}, \qquad "
        rf"\text{{{told}}}\ N \le {facts.max_log_probs}"
    )
    st.caption(_("A server returns log-probabilities, not logits. At each position the two differ by a constant."))
    titles = {"text": _("Every position"), "next": _("Next token")}
    if engine.config.weights:
        titles["same"] = _("Same weights, two places")
    view = widgets.choice("logits.engine", _("Look at"), list(titles), "text", format_func=titles.__getitem__)
    if view == "same":
        engine_same_weights.show(engine, text)
    else:
        n = widgets.slider("logits.n", _("Tokens shown"), 3, 30, 8) if view == "next" else ASKED
        asked = scores(engine, facts, text, min(n, facts.max_log_probs))
        if view == "next":
            _next(engine, asked, n)
        else:
            _every(engine, asked)
        page.snippet(CODE.format(name=engine.name, prompt=text, n=min(n, facts.max_log_probs)))
    page.try_next(
        page.Suggestion(_("Reshape this distribution with temperature, top-k and top-p."), "sampling"),
        page.Suggestion(_("Let the server continue from here: generation with branches"), "generation"),
    )


def scores(engine: Engine, facts: Capabilities, text: str, n: int) -> Asked:
    """Return how the prompt's tokens were foreseen, or say why nobody tells, and stop the page."""
    if facts.prompt_scores == "none":
        st.info(_("{name} does not score the tokens of a prompt.").format(name=f"**{engine.name}**"))
        link.stop()

    def ask() -> Asked:
        prompt: Prompt = engine.prompt(text)
        tokens, following = engine.prompt_scores(prompt, n)
        labels: list[bytes | str] = [each.text for each in tokens]
        if facts.tokenizer is not None:
            found = engine.tokenize(text)
            if len(found.ids) == len(tokens):
                labels = list(found.labels)
                tokens = tuple(replace(each, token_id=i) for each, i in zip(tokens, found.ids, strict=True))
        return Asked(tokens, following, labels)

    return engines.ask(engine, ("logits page", text, n), ask)


def shown(label: bytes | str, token_id: int | None = None) -> str:
    """Return a token's label to be read; of a part of a character whose bytes are not told its id, or an ellipsis."""
    if isinstance(label, str) and is_part(label):
        return UNKNOWN if token_id is None else f"⟨{token_id}⟩"
    return visible(label)


def candidate_labels(engine: Engine, found: TopTokens) -> list[str]:
    """Return the text of each candidate to be read, asking for what is not known."""
    ids = [token_id for token_id in found.token_ids if token_id is not None]
    told = engines.ask(engine, ("texts", tuple(ids)), lambda: engine.texts(ids)) if ids else []
    texts = dict(zip(ids, told, strict=True))
    return [shown(each.text if each.token_id is None else texts[each.token_id]) for each in found.best]


def named(labels: list[str], found: TopTokens) -> list[str]:
    """Return the labels of candidates with their ids, where there are ids: of a picture that has no column for them."""
    ids = found.token_ids
    return [label if i is None else f"{label} · {i}" for label, i in zip(labels, ids, strict=True)]


def _next(engine: Engine, asked: Asked, n: int) -> None:
    found = asked.following
    labels = candidate_labels(engine, found)
    probs = [math.exp(log_prob) for log_prob in found.log_probs]
    page.figure(
        figures.next_tokens(named(labels, found), probs, None, ("", ""), None),
        "next-tokens",
        _("Bars: the probability of the most probable next tokens."),
    )
    st.caption(
        _("The others share {rest}. These probabilities are exact: the server returned them.").format(
            rest=fmt_probability(max(0.0, 1 - sum(probs)))
        )
    )
    if len(found) < n:
        _say_merged(engine)
    frame = pd.DataFrame(
        {
            _("Rank"): range(1, len(found) + 1),
            _("Token"): labels,
            "id": pd.array(found.token_ids, dtype="Int64"),
            "ln P": found.log_probs,
            "P": probs,
        }
    )
    page.numbers_table(engines.without_empty_ids(frame), "next-tokens", {"P": "probability", "ln P": "logit"})


def _say_merged(engine: Engine) -> None:
    st.caption(
        _(
            "{name} identifies tokens by their text, so tokens with the same text, such as parts of "
            "characters, cannot be told apart. Only the tokens before the first such case are used."
        ).format(name=f"**{engine.name}**")
    )


def _every(engine: Engine, asked: Asked) -> None:
    told = [each.log_prob for each in asked.tokens[1:]]
    known = [value for value in told if value is not None]
    if len(asked.tokens) < 2:
        st.info(_("A single token has no surprisal, because nothing predicts the first token. Type more above."))
    else:
        _coloured(asked)
    if known and len(known) == len(told):
        loss = -math.fsum(known) / len(known)
        left, right, _rest = st.columns(3)
        left.metric(_("Loss (nats per token)"), f"{loss:.4f}", help=_("The mean of −ln P over the actual tokens."))
        right.metric(_("Perplexity"), f"{math.exp(loss):.3f}", help="exp(loss)")
        page.figure(
            figures.surprisal(
                [shown(label) for label in asked.labels[1:]],
                [-value / math.log(2) for value in known],
                None,
                ("", ""),
                (_("Actual token"), _("Surprisal (bits)")),
            ),
            "surprisal",
            _("Bars: the surprisal of each actual token, in bits."),
        )
    elif told:
        st.caption(
            _(
                "{name} returns the probability of {known} of the {n} tokens: the others were not among the "
                "most probable ones, or are not whole characters. Loss and perplexity need all of them."
            ).format(name=f"**{engine.name}**", known=len(known), n=len(told))
        )
    st.subheader(_("Every position"), anchor=False)
    frame, filename, formats = table(asked)
    page.numbers_table(engines.without_empty_ids(frame), filename, formats)


def _coloured(asked: Asked) -> None:
    hint, unknown = _("P {p}, rank {rank}, {bits}"), _("not returned")
    first, *labels = [label if isinstance(label, bytes) else shown(label).encode() for label in asked.labels]
    text = [TextToken(first, kind="prompt")]
    for token, label in zip(asked.tokens[1:], labels, strict=True):
        if token.log_prob is None:
            text.append(TextToken(label, "?", 0.0, unknown))
            continue
        bits = -token.log_prob / math.log(2)
        beyond = "?" if token.foreseen is None else f"> {len(token.foreseen):,}"  # it was not among those told
        rank = f"{token.rank:,}" if token.rank else beyond
        told = hint.format(p=fmt_probability(math.exp(token.log_prob)), rank=rank, bits=in_bits(bits))
        text.append(TextToken(label, f"{bits:.1f}", min(bits / FULL_COLOUR_BITS, 1.0), told))
    generated_text(text, key="engine.coloured", label=_("The coloured text"))
    st.caption(
        _("The darker the colour, the larger the surprisal. The darkest is {n:g} bits.").format(n=FULL_COLOUR_BITS)
    )


def table(asked: Asked) -> tuple[pd.DataFrame, str, dict[str, str]]:
    """Return one row per position, the file's name, and the columns' formats."""
    columns: dict[str, Sequence[object]] = {
        _("Position"): range(len(asked.tokens)),
        _("Token"): [shown(label) for label in asked.labels],
        "id": pd.array([each.token_id for each in asked.tokens], dtype="Int64"),
        _("Rank"): pd.array([each.rank for each in asked.tokens], dtype="Int64"),
        "P": [math.nan if each.log_prob is None else math.exp(each.log_prob) for each in asked.tokens],
        "ln P": [math.nan if each.log_prob is None else each.log_prob for each in asked.tokens],
    }
    for n in range(3):
        best = [
            each.foreseen.best[n] if each.foreseen is not None and n < len(each.foreseen) else None
            for each in asked.tokens
        ]
        columns[_("Predicted {n}").format(n=n + 1)] = [
            "" if each is None else shown(each.text, each.token_id) for each in best
        ]
        columns[f"P {n + 1}"] = [math.nan if each is None else math.exp(each.log_prob) for each in best]
    formats = {name: "probability" for name in columns if name == "P" or name.startswith("P ")}
    return pd.DataFrame(columns), "positions", {**formats, "ln P": "logit"}
