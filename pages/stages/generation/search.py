"""Greedy decoding, beam search and exhaustive search: who finds the most probable sentence?"""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from lmcore import Encoding, LanguageModel
from lmcore.generation.comparison import Searches, compare_searches
from lmcore.generation.hypothesis import Hypothesis
from pages.common import page, widgets
from pages.common.text import _, markdown_literal, visible
from pages.figures import theme
from pages.figures.generation.tree import Path, tree
from pages.figures.theme import fmt_probability
from pages.stages.generation import jobs, stops
from pages.stages.generation.wide import wide

SMALL = 5_000  # tokens in the vocabulary; of such a model every sentence can be accounted for while one waits
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
MAX_DROPPED = 2  # beginnings given up at a step that are drawn

CODE = """
import lmcore
from lmcore.generation.beam import beam_search
from lmcore.generation.exhaustive import exhaustive_search

lm = lmcore.load({name!r})
ids = lm.tokenizer.encode({prompt!r}).ids
stop_ids = lm.end_tokens
*_, greedy = beam_search(lm, ids, 1, {n}, stop_ids)
*_, beam = beam_search(lm, ids, {width}, {n}, stop_ids)
for found in (greedy, beam):
    print(found.width, found.best[0].prob, lm.tokenizer.decode(found.best[0].ids))
"""
EXHAUSTIVE_CODE = """
*_, everything = exhaustive_search(lm, ids, {n}, {n_best}, stop_ids)
for each in everything.found:
    print(each.prob, lm.tokenizer.decode(each.ids))
"""


def show(lm: LanguageModel, prompt: Encoding) -> None:
    """Draw the view."""
    small = lm.config.vocab_size <= SMALL
    left, right = page.workbench()
    with left:
        button = st.container()
        room = lm.config.context_length - len(prompt.ids)
        if room < 1:
            st.info(_("The prompt fills the context: shorten it to search for what follows."))
            return
        n_tokens = widgets.slider("search.tokens", _("Tokens to look ahead"), 1, 10, 2) if room >= 10 else 1
        width = widgets.slider(
            "search.width", _("Beam width"), 1, 8, 3, help=_("The number of prefixes kept at each step; 1 is greedy.")
        )
        exhaustive = widgets.toggle(
            "search.exhaustive",
            _("Exhaustive"),
            small,
            help=_("Considers every sentence of this length. With a large vocabulary this can take minutes."),
        )
        stop_ids = stops.default_ids(lm)
        question = (lm.name, tuple(prompt.ids), n_tokens, width, exhaustive)
        with button:
            jobs.button(
                "search",
                question,
                _("Search"),
                lambda: compare_searches(lm, prompt.ids, width, n_tokens, stop_ids, exhaustive),
                at_once=small,
            )
        st.caption(
            _(
                "Greedy decoding takes the most probable token at each step. The probability of a sentence is "
                "the product over its tokens, so a less probable first token can lead to a more probable "
                "sentence."
            )
        )
    with right:
        if jobs.find("search", question) is None:
            st.info(_("Press Search to compare the three methods on this prompt."))
        jobs.show("search", question, lambda found: found.done, lambda found, all_: _draw(lm, prompt, found, all_))
    code = CODE + (EXHAUSTIVE_CODE if exhaustive else "")
    page.snippet(code.format(name=lm.name, prompt=prompt.text, n=n_tokens, width=width, n_best=max(width, 3)))


def _draw(lm: LanguageModel, prompt: Encoding, found: Searches, everything: bool) -> None:
    if not found.greedy.ids:
        return
    if everything:
        _verdict(lm, found)
    _tree(lm, found)
    if found.exhaustive is not None:
        _proof(lm, found)
    if everything:
        _table(lm, found)


def _verdict(lm: LanguageModel, found: Searches) -> None:
    greedy, best = found.greedy, found.found
    if best.ids == greedy.ids:
        proved = found.exhaustive is not None and found.exhaustive.done
        sentence = (
            _("**Greedy finds the most probable sentence here**: {text}, {p}.")
            if proved
            else _("**Beam search finds nothing more probable than greedy**: {text}, {p}.")
        )
        st.markdown(sentence.format(text=_said(lm, greedy), p=fmt_probability(greedy.prob)))
        return
    st.markdown(
        _(
            "**Greedy misses the more probable sentence.** It gives {greedy}, {p}; {best} is {times} times as "
            "probable: {q}."
        ).format(
            greedy=_said(lm, greedy),
            p=fmt_probability(greedy.prob),
            best=_said(lm, best),
            times=f"{best.prob / greedy.prob:.2f}",
            q=fmt_probability(best.prob),
        )
    )
    part = next(i for i, (one, other) in enumerate(zip(greedy.ids, best.ids, strict=False)) if one != other)
    st.markdown(
        _(
            "They differ from token {n} on: greedy takes {one} with {p}; the other takes {two} with only {q}, "
            "and gains later."
        ).format(
            n=part + 1,
            one=markdown_literal(lm.tokenizer.token_bytes(greedy.ids[part])),
            p=fmt_probability(math.exp(greedy.log_probs[part])),
            two=markdown_literal(lm.tokenizer.token_bytes(best.ids[part])),
            q=fmt_probability(math.exp(best.log_probs[part])),
        )
    )


def _proof(lm: LanguageModel, found: Searches) -> None:
    state = found.exhaustive
    assert state is not None
    sentences = f"{lm.config.vocab_size:,}" + str(found.n_tokens).translate(_SUPERSCRIPT)
    if not state.done:
        st.caption(
            _("Exhaustive search: {n:,} prefixes examined; {waiting:,} of length {length} left.").format(
                n=state.examined, waiting=state.waiting, length=state.length
            )
        )
        return
    st.caption(
        _(
            "Exhaustive search proves it: none of the {sentences} sentences is more probable. {n:,} prefixes "
            "were examined. Every other prefix is already less probable than the sentences found, and "
            "continuing it only lowers its probability."
        ).format(n=state.examined, sentences=sentences)
    )


def _tree(lm: LanguageModel, found: Searches) -> None:
    """Draw the beginnings that were kept, some that were given up, and where each search ended."""
    ends = _ends(found)
    texts = dict.fromkeys(each for each in [*ends, *_dropped(found)] if each.ids)
    nodes: dict[tuple[int, ...], float] = {(): 0.0}  # beginning -> ln P of its last token
    for text in texts:
        for length in range(1, len(text.ids) + 1):
            nodes.setdefault(text.ids[:length], text.log_probs[length - 1])
    order = _depth_first(nodes, found.greedy)
    number = {beginning: index for index, beginning in enumerate(order)}
    names = {text.ids: said for text, said in ends.items()}
    tokens = [visible(lm.tokenizer.token_bytes(each[-1])) if each else _("prompt") for each in order]
    probs = [math.exp(nodes[each]) for each in order]
    whole = {each: math.exp(math.fsum(nodes[each[:length]] for length in range(1, len(each) + 1))) for each in order}
    paths = [Path(_way(number, found.found), _("most probable"), theme.CATEGORICAL[2])]
    paths.append(Path(_way(number, found.greedy), _("greedy"), theme.CATEGORICAL[1]))
    with wide(max(map(len, order))):
        page.figure(
            tree(
                [number[each[:-1]] if each else -1 for each in order],
                [
                    f"{token} {fmt_probability(p)}" if each else token
                    for each, token, p in zip(order, tokens, probs, strict=True)
                ],
                [p if each else 0.0 for each, p in zip(order, probs, strict=True)],
                [
                    _("{token}, id {token_id}: {p} here, {whole} from the prompt on").format(
                        token=token, token_id=each[-1], p=fmt_probability(p), whole=fmt_probability(whole[each])
                    )
                    if each
                    else token
                    for each, token, p in zip(order, tokens, probs, strict=True)
                ],
                paths=paths if found.found.ids != found.greedy.ids else paths[1:],
                ends={
                    number[ids]: f"{fmt_probability(whole[ids])} {said}" for ids, said in names.items() if ids in number
                },
                x_title=_("tokens after the prompt"),
            ),
            "generation.search",
            _("A tree of prefixes, with the probability of each token and, at the ends, of the whole sentence."),
        )


def _ends(found: Searches) -> dict[Hypothesis, str]:
    """Return the whole sentences that were found and who found them."""
    said: dict[tuple[int, ...], list[str]] = {found.greedy.ids: [_("greedy")]}
    known = {found.greedy.ids: found.greedy}
    for place, each in enumerate(found.beam[-1].best if found.beam else (), start=1):
        known.setdefault(each.ids, each)
        said.setdefault(each.ids, []).append(_("beam {n}").format(n=place))
    if found.exhaustive:
        for place, each in enumerate(found.exhaustive.found, start=1):
            known.setdefault(each.ids, each)
            said.setdefault(each.ids, []).append(_("rank {n} of all").format(n=place))
    return {known[ids]: " · ".join(names) for ids, names in said.items()}


def _dropped(found: Searches) -> list[Hypothesis]:
    return [each for step in found.beam for each in step.dropped[:MAX_DROPPED]]


def _depth_first(nodes: dict[tuple[int, ...], float], first: Hypothesis) -> list[tuple[int, ...]]:
    """Order beginnings so that parents come before their children, greedy's way first, then the most probable."""
    children: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for each in nodes:
        if each:
            children.setdefault(each[:-1], []).append(each)
    found: list[tuple[int, ...]] = []
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        found.append(each := waiting.pop())
        waiting += sorted(children.get(each, []), key=lambda ids: (ids == first.ids[: len(ids)], nodes[ids]))
    return found


def _way(number: dict[tuple[int, ...], int], text: Hypothesis) -> set[int]:
    return {number[text.ids[:length]] for length in range(len(text.ids) + 1)}


def _table(lm: LanguageModel, found: Searches) -> None:
    ends = sorted(_ends(found).items(), key=lambda item: -item[0].log_prob)
    st.subheader(_("The numbers"), anchor=False)
    page.numbers_table(
        pd.DataFrame(
            {
                _("sentence"): [visible(_bytes(lm, each)) for each, _said in ends],
                _("probability"): [each.prob for each, _said in ends],
                "ln P": [each.log_prob for each, _said in ends],
                _("found by"): [said for _each, said in ends],
                _("tokens"): [len(each.ids) for each, _said in ends],
                _("each token's probability"): [
                    " × ".join(fmt_probability(math.exp(p)) for p in each.log_probs) for each, _said in ends
                ],
            }
        ),
        "generation-search",
        {_("probability"): "probability", "ln P": "logit"},
    )


def _said(lm: LanguageModel, text: Hypothesis) -> str:
    return markdown_literal(_bytes(lm, text))


def _bytes(lm: LanguageModel, text: Hypothesis) -> bytes:
    return b"".join(lm.tokenizer.token_bytes(token_id) for token_id in text.ids)
