"""The sampling page in front of a model that runs elsewhere: the ordinary lab when its server tells the whole
vocabulary; otherwise what is exact as exact, and what depends on the tokens it does not tell as bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from lmcore.distribution.partial import Interval, PartialDistribution
from lmcore.engines.capabilities import Capabilities
from lmcore.engines.engine import Engine, Prompt
from lmcore.engines.partial_sampling import PartialReshaped, reshape_partial
from lmcore.engines.top_tokens import TopTokens
from lmcore.sampling import History
from pages.common import engine_facts, engines, link, page, widgets
from pages.common.text import _
from pages.figures.sampling.partial import bounds
from pages.figures.theme import fmt_probability
from pages.stages.logits.engine import UNKNOWN, candidate_labels, named
from pages.stages.sampling.sources import Source
from pages.stages.sampling.tables import MAX_ROWS
from pages.stages.tokenization.common import MAX_DRAWN, require_text

DRAWN = 20  # of the tokens told are drawn as bars; the table has all
LARGEST_VOCABULARY = 2**20
"""What a vocabulary is taken to be at most when a server does not tell: the bounds hold for every smaller one."""

CODE = """
from lmcore.engines.config import configured
from lmcore.engines.engine import Engine
from lmcore.engines.partial_sampling import reshape_partial

engine = Engine(next(config for config in configured() if config.name == {name!r}))
known = engine.next({prompt}, {n}).partial(vocab_size={size})
found = reshape_partial(known, temperature={temperature:g}, top_k={top_k}, top_p={top_p:g}, min_p={min_p:g})
print(found.kept, found.rest, found.removed, found.entropy_bits)
print(found.low, found.high)
engine.close()
"""


@dataclass(frozen=True)
class Beginning:
    """What stands before the token looked at: as it is sent, and as Python."""

    prompt: Prompt
    code: str


def choose(engine: Engine) -> Source:
    """Return the logits after a token of the prompt when the server tells them all; else show what it tells, and stop
    the page."""
    text = require_text()
    facts = engine_facts.of(engine, log_probs=True)
    place = _place(engine, facts, text)
    if facts.whole_vocabulary:
        return _whole(engine, facts, place)
    _partial(engine, facts, place)
    link.stop()


def _place(engine: Engine, facts: Capabilities, text: str) -> Beginning:
    """Let the reader choose a token of the prompt, where the server tells its tokens; the last one to begin with."""
    if facts.tokenizer is None:
        return Beginning(text, repr(text))
    found = engines.ask(engine, ("tokens", text), lambda: engine.tokenize(text))
    if len(found.ids) > MAX_DRAWN:
        return Beginning(engine.prompt(text), f"engine.prompt({text!r})")
    labels = [label or UNKNOWN for label in found.labels]
    count = widgets.token_picker(labels, found.ids, label=_("Choose a token: the distribution after it is shown")) + 1
    prompt = engines.ask(engine, ("beginning", text, count), lambda: engine.beginning(text, count))
    if prompt is None:
        st.info(
            _(
                "{name} takes only text, and the text up to this token ends inside a character or would be "
                "tokenized in another way. Choose another token."
            ).format(name=f"**{engine.name}**")
        )
        link.stop()
    return Beginning(prompt, f"engine.beginning({text!r}, {count})")


def _whole(engine: Engine, facts: Capabilities, place: Beginning) -> Source:
    prompt = place.prompt

    def ask() -> np.ndarray:
        logits = engine.next(prompt, -1).by_id(facts.vocab_size).numpy()
        first = np.argsort(-logits)[:MAX_ROWS].tolist()
        engine.texts([*first, *(prompt if not isinstance(prompt, str) else ())])  # in one go, not one by one
        return logits

    logits = engines.ask(engine, ("whole", prompt), ask)
    st.caption(
        _("{name} returns all {n} log-probabilities, so everything below is the same as for a local model.").format(
            name=f"**{engine.name}**", n=f"{len(logits):,}"
        )
    )
    ids = tuple(prompt) if not isinstance(prompt, str) else ()
    code = (
        "from lmcore.engines.config import configured\n"
        "from lmcore.engines.engine import Engine\n\n"
        f"engine = Engine(next(config for config in configured() if config.name == {engine.name!r}))\n"
        f"ids = {place.code}\n"
        f"logits = engine.next(ids, -1).by_id({facts.vocab_size})\n"
        "engine.close()"
    )
    return Source(
        logits,
        lambda token_id: engine.texts([token_id])[0],
        lambda some: engine.tokenize(some).ids,
        History(prompt=ids),
        code,
        "lmcore.History(prompt=ids)",
    )


def _partial(engine: Engine, facts: Capabilities, place: Beginning) -> None:
    prompt = place.prompt
    page.equation(
        r"p_i(T) = \frac{p_i^{1/T}}{\sum_{j \le N} p_j^{1/T} + \sum_{j > N} p_j^{1/T}}, \qquad "
        r"\sum_{j > N} p_j = 1 - \sum_{j \le N} p_j, \qquad p_j \le p_N"
    )
    controls, picture = page.workbench()
    with controls:
        most = min(facts.max_log_probs, 1000)
        n = widgets.slider("engine.n", _("Log-probabilities requested"), 1, most, min(50, most))
        size = facts.vocab_size or LARGEST_VOCABULARY
        temperature = widgets.slider("temperature", _("Temperature"), 0.0, 2.0, 1.0, step=0.05, help=_("0 is greedy."))
        top_k = widgets.slider("top_k", "top-k", 0, min(size, 200), 0, help=_("0 is off."))
        top_p = widgets.slider("top_p", "top-p", 0.0, 1.0, 1.0, step=0.01, help=_("1 is off; 0 keeps one token."))
        min_p = widgets.slider("min_p", "min-p", 0.0, 1.0, 0.0, step=0.01, help=_("0 is off."))
    found = engines.ask(engine, ("next", prompt, n), lambda: engine.next(prompt, n))
    labels = candidate_labels(engine, found)
    known = found.partial(size)
    result = reshape_partial(known, temperature, top_k, top_p, min_p)
    with picture:
        _say_what_is_known(engine, facts, known, found, n)
        _measures(result)
        _bars(named(labels, found), known, result)
    st.subheader(_("The numbers"), anchor=False)
    page.numbers_table(*table(labels, found, result))
    page.snippet(
        CODE.format(
            name=engine.name,
            prompt=place.code,
            n=n,
            size=size,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
        )
    )
    page.try_next(
        page.Suggestion(_("top-k 20: the rest is removed, and all is exact"), "sampling", {"top_k": 20}),
        page.Suggestion(
            _("T 1.5: how wide are the bounds, and how many more log-probabilities narrow them?"),
            "sampling",
            {"temperature": 1.5, "top_k": 0, "top_p": 1.0},
        ),
        page.Suggestion(_("Let the server draw under these settings"), "generation"),
    )


def _say_what_is_known(
    engine: Engine, facts: Capabilities, known: PartialDistribution, found: TopTokens, asked: int
) -> None:
    name = f"**{engine.name}**"
    sentence = _("{name} returns the {n} most probable of {size} tokens; at T = 1 the others share {rest}.")
    size = f"{known.vocab_size:,}" if facts.vocab_size else _("at most {n:,}").format(n=known.vocab_size)
    st.markdown(
        sentence.format(name=name, n=len(known.log_probs), size=size, rest=fmt_probability(known.tail_mass))
        + " "
        + _("None of them is more probable than the last one returned; this bounds their effect.")
    )
    if len(found) + found.impossible < asked:
        st.caption(
            _(
                "Of {asked} requested, only the first {n} can be told apart: {name} identifies tokens by their "
                "text, and parts of characters have the same text."
            ).format(asked=asked, n=len(found), name=name)
        )
    if facts.processed:
        st.warning(
            _("This server's log-probabilities depend on the temperature it is sent. They are requested at T = 1.")
        )


def _measures(result: PartialReshaped) -> None:
    kept = f"{result.kept.low:,}"
    if result.kept.low != result.kept.high:
        kept += f" – {result.kept.high:,}"
    values = {
        _("Tokens kept"): kept,
        _("Removed"): between(result.removed, fmt_probability),
        _("Not returned"): between(result.rest, fmt_probability),
        _("Entropy (bits)"): between(result.entropy_bits, lambda bits: f"{bits:.3f}"),
    }
    columns = st.columns(2)  # bounds are long: four in a row have no room
    for number, (name, value) in enumerate(values.items()):
        columns[number % 2].metric(name, value)
    if result.exact:
        st.caption("✓ " + _("All of this is exact: it does not depend on the tokens that were not returned."))
    else:
        st.caption(
            _("A pale bar and a “–” are bounds: the true value lies between them, however the rest is distributed.")
        )


def between(value: Interval, formatted: Callable[[float], str]) -> str:
    """Return a number, or its two bounds where they differ."""
    low, high = formatted(value.low), formatted(value.high)
    return low if low == high else f"{low} – {high}"


def _bars(labels: list[str], known: PartialDistribution, result: PartialReshaped) -> None:
    shown = min(DRAWN, len(labels))
    low, high = result.low.numpy(), result.high.numpy()
    others_low = result.rest.low + low[shown:].sum()
    others_high = min(result.rest.high + high[shown:].sum(), 1.0)
    name = _("all {n:,} others").format(n=known.vocab_size - shown)
    page.figure(
        bounds(
            [*labels[:shown], name],
            [*low[:shown], others_low],
            [*high[:shown], max(others_high, others_low)],
            [bool(value == 0) for value in high[:shown]] + [others_high == 0],
            _("possible, depending on the tokens not returned"),
        ),
        "engine-sampling",
        _("Bars: the probability of the most probable tokens under these settings, and its bounds where not exact."),
    )


def table(labels: list[str], found: TopTokens, result: PartialReshaped) -> tuple[pd.DataFrame, str, dict[str, str]]:
    """Return one row per token told, the file's name, and the columns' formats."""
    low, high = result.low.tolist(), result.high.tolist()
    frame = pd.DataFrame(
        {
            _("Rank"): [each.rank for each in found.best],
            _("Token"): labels,
            "id": pd.array([each.token_id for each in found.best], dtype="Int64"),
            "ln P": [each.log_prob for each in found.best],
            "T = 1": [math.exp(each.log_prob) for each in found.best],
            _("at least"): low,
            _("at most"): high,
            _("exact"): [b - a <= 1e-12 for a, b in zip(low, high, strict=True)],
        }
    )
    formats = dict.fromkeys(("T = 1", _("at least"), _("at most")), "probability")
    return engines.without_empty_ids(frame), "engine-sampling", {"ln P": "logit", **formats}
