"""Speculation: a small model drafts, the model checks: which drafts were accepted, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from lmcore import Encoding, LanguageModel, builtin
from lmcore.generation.speculative import MAX_DRAFT, Draft, Round, Speculation, check_pair, speculate
from pages.common import page, session, widgets
from pages.common.text import _, markdown_literal, visible
from pages.figures.generation.side_by_side import side_by_side
from pages.figures.theme import fmt_probability
from pages.live.generated_text import Kind, TextToken, generated_text
from pages.stages.generation import jobs, stages, stops, writing
from pages.stages.sampling import knobs

_SELECTED = "speculation.selected"  # (round, place) of the token whose distributions are shown
_BARS = 4  # tokens drawn as bars
_NAME = "speculation"
_SMALL = "small-world-none"  # drafts for the other small worlds: it knows no positions

CODE = """
import lmcore
from lmcore.generation.speculative import speculate

target, draft = lmcore.load({name!r}), lmcore.load({draft!r})
ids = target.tokenizer.encode({prompt!r}).ids
settings = lmcore.SamplingSettings({settings})
*_, found = speculate(
    target, draft, ids, settings, n_draft={n_draft}, max_new_tokens={n},
    draft_settings={draft_settings}, stop_ids=target.end_tokens,
)
print(found.accepted, found.tested, found.expected_accepted, found.deviation)
print(found.tokens_per_pass, found.expected_tokens_per_pass)
for one in found.rounds:
    print([(draft.token, draft.p, draft.q, draft.fate) for draft in one.drafts], one.token, one.origin)
"""
EQUATION = (
    r"P(\text{accept } x) = \min\!\Big(1, \frac{p(x)}{q(x)}\Big), \quad "
    r"P(\text{accept}) = \sum_x \min(p(x), q(x)) = 1 - \mathrm{TV}(p, q), \quad "
    r"\text{else } x \sim \frac{\max(0, p - q)}{\sum \max(0, p - q)}"
)


class PlaceInRound(NamedTuple):
    """A token of the picture: its round, and its place in it; the last is the one the model drew itself."""

    round: int
    place: int


def show(lm: LanguageModel, prompt: Encoding) -> None:
    """Draw the view."""
    room = lm.config.context_length - len(prompt.ids)
    if room < 1:
        st.info(_("The prompt fills the context: shorten it to continue it."))
        return
    small = lm.config.vocab_size <= 5_000
    knobs.remember()
    left, right = page.workbench()
    with left:
        button = st.container()
        options = _drafts(lm)
        name = widgets.select("speculation.draft", _("Draft model"), options, options[0])
        drafts, tokens = st.columns(2)
        with drafts:
            n_draft = widgets.slider("speculation.n", _("Drafts per round"), 1, MAX_DRAFT, 4)
        with tokens:
            n_tokens = widgets.slider("speculation.tokens", _("New tokens"), 1, min(120, room), min(40, room))
        greedy = widgets.toggle(
            "speculation.greedy",
            _("The draft is greedy"),
            help=_("Takes its most probable token. When off, it is drawn with the same settings as the model's."),
        )
        stages.common(lm.config.vocab_size)
        stages.others(lm.config.vocab_size)
        seed = widgets.number("seed", _("Seed"), 0, 2**32 - 1, 0)
    draft = session.language_model(name)
    try:
        check_pair(lm, draft)
    except ValueError:
        right.info(
            _(
                "{draft} and {model} do not have the same tokens, so one cannot draft for the other. Choose another "
                "draft model."
            ).format(draft=markdown_literal(visible(name)), model=markdown_literal(visible(lm.name)))
        )
        return
    settings = replace(knobs.settings(lm.config.vocab_size), seed=seed)
    at_zero: dict[str, Any] = {"temperature": 0.0}
    drafted = replace(settings, **at_zero) if greedy else None
    question = (lm.name, name, tuple(prompt.ids), n_draft, n_tokens, settings, greedy)
    stop_ids = stops.ids_of_prompt(lm)
    with button:
        jobs.button(
            _NAME,
            question,
            _("Draft and check"),
            lambda: speculate(
                lm,
                draft,
                prompt.ids,
                settings,
                n_draft=n_draft,
                max_new_tokens=n_tokens,
                draft_settings=drafted,
                stop_ids=stop_ids,
            ),
            at_once=small,
        )
    with right:
        if jobs.find(_NAME, question) is None:
            st.info(_("Press Draft and check. Each round, the draft model proposes tokens and the model checks them."))
        jobs.show(
            _NAME,
            question,
            lambda found: len(found.ids) / n_tokens,
            lambda found, all_: _draw(lm, draft, prompt, found, all_),
        )
    page.equation(EQUATION)
    page.snippet(
        CODE.format(
            name=lm.name,
            draft=name,
            prompt=str(prompt.text),
            settings=writing.arguments(settings),
            n_draft=n_draft,
            n=n_tokens,
            draft_settings=f"lmcore.SamplingSettings({writing.arguments(drafted)})" if drafted else None,
        )
    )


def _drafts(lm: LanguageModel) -> list[str]:
    """Return the models that could draft for this one, the likeliest first; the model itself is the last."""
    own, family = lm.name, lm.name.partition(":")[0]
    built_in = builtin.names()
    if own in built_in:
        return [*sorted((name for name in built_in if name != own), key=lambda name: name != _SMALL), own]
    installed = [name for name, model in session.available_models().items() if model.installed]
    known = [name for name in installed if name not in built_in and name != own]
    return [*sorted(known, key=lambda name: name.partition(":")[0] != family), own]


def _draw(lm: LanguageModel, draft: LanguageModel, prompt: Encoding, found: Speculation, everything: bool) -> None:
    if not found.rounds:
        return
    _summary(found)
    tokens, places = _tokens(prompt, found)
    chosen = st.session_state.get(_SELECTED)
    if chosen not in places:
        chosen = _first(found)
    generated_text(
        tokens,
        key="speculation.text",
        label=_("Drafts and the text they became; choose a token"),
        selected=len(prompt.ids) + places.index(chosen),
        on_select=lambda index: st.session_state.update({_SELECTED: places[index - len(prompt.ids)]}),
    )
    st.caption(
        _(
            "Blue line: accepted. Orange frame, struck out: refused. Dotted: not read after a refusal. Thick orange "
            "line: drawn from the residual. Thick green line: one more token, since all were accepted."
        )
    )
    _chosen(lm, draft, found.rounds[chosen.round], chosen.place)
    if everything:
        st.subheader(_("The numbers"), anchor=False)
        _table(found)


def _summary(found: Speculation) -> None:
    n, passes = len(found.ids), len(found.rounds)
    st.markdown(
        _("**{n} tokens in {passes} passes of the model.**").format(n=n, passes=passes)
        + " "
        + (
            _("{accepted} of {tested} drafts accepted: {rate}; by 1 − TV {expected} ± {deviation} expected.").format(
                accepted=found.accepted,
                tested=found.tested,
                rate=_percent(found.accepted / found.tested),
                expected=_percent(found.expected_accepted / found.tested),
                deviation=_percent(found.deviation / found.tested),
            )
            if found.tested
            else _("No draft was checked.")
        )
        + " "
        + (
            _("A full round gave {mean} tokens; (1 − a^(n+1)) / (1 − a) gives {theory}.").format(
                mean=f"{found.tokens_per_pass:.2f}", theory=f"{found.expected_tokens_per_pass:.2f}"
            )
            if found.tokens_per_pass
            else ""
        )
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _tokens(prompt: Encoding, found: Speculation) -> tuple[list[TextToken], list[PlaceInRound]]:
    """Return the tokens of the picture, and the place of each after the prompt's."""
    tokens = [TextToken(token, str(i), kind="prompt") for token, i in zip(prompt.tokens, prompt.ids, strict=True)]
    places: list[PlaceInRound] = []
    kinds: dict[str, Kind] = {"accepted": "drawn", "refused": "refused", "unread": "unread"}
    for number, one in enumerate(found.rounds):
        for place, each in enumerate(one.drafts):
            ratio = min(each.p / each.q, 1.0)
            hint = _("round {round}: p = {p}, q = {q}").format(
                round=number + 1, p=fmt_probability(each.p), q=fmt_probability(each.q)
            )
            caption, kind = f"{round(100 * ratio)} %", kinds[each.fate]
            tokens.append(TextToken(each.token, caption, ratio * 0.6, hint, kind, starts=place == 0))
            places.append(PlaceInRound(number, place))
        if one.token_id is not None:
            hint = _("round {round}: drawn by the model itself, probability {p}").format(
                round=number + 1, p=fmt_probability(one.prob)
            )
            own: Kind = "bonus" if one.origin == "bonus" else "residual"
            tokens.append(TextToken(one.token, "+1" if own == "bonus" else "p − q", 0.0, hint, own, not one.drafts))
            places.append(PlaceInRound(number, len(one.drafts)))
    return tokens, places


def _first(found: Speculation) -> PlaceInRound:
    """Return the token to begin with: the first that was refused, or the first of all."""
    for number, one in enumerate(found.rounds):
        for place, each in enumerate(one.drafts):
            if each.fate == "refused":
                return PlaceInRound(number, place)
    return PlaceInRound(0, 0)


def _chosen(lm: LanguageModel, draft: LanguageModel, one: Round, place: int) -> None:
    """Draw the two distributions of a draft, or say where the model's own token came from."""
    if place >= len(one.drafts):
        if one.origin == "bonus":
            st.markdown(
                _(
                    "**{token}** is the model's own: all drafts were accepted, and the same pass gives one token more."
                ).format(token=markdown_literal(one.token))
                + " "
                + _("It had probability {p}.").format(p=fmt_probability(one.prob))
            )
            return
        place = [each.fate for each in one.drafts].index("refused")
    each = one.drafts[place]
    _figure(lm, draft, each)
    st.markdown(" ".join(_sentences(one, each)))


def _figure(lm: LanguageModel, draft: LanguageModel, each: Draft) -> None:
    pair = each.pair
    kept = list(range(min(_BARS, len(pair.ids))))
    if (own := pair.ids.index(each.token_id)) not in kept:
        kept[-1] = own
    labels = [f"{visible(lm.tokenizer.token_bytes(pair.ids[n]))} · {pair.ids[n]}" for n in kept]
    labels.append(_("the other {n:,} tokens").format(n=lm.config.vocab_size - len(kept)))
    names = [
        _("p: {model}").format(model=visible(lm.name)),
        _("q: {model} (draft)").format(model=visible(draft.name)),
        # Where p is nearly q it is large and hardly ever needed.
        _("residual, needed with probability {p}").format(p=fmt_probability(max(1 - each.acceptance, 0.0))),
    ]
    rows = {}
    for name, probs in zip(names, (pair.p, pair.q, pair.residual), strict=True):
        shown = [probs[n] for n in kept]
        left = 1 - sum(shown)
        rows[name] = [*shown, left if left > 1e-12 else 0.0]  # without the dust of rounding
    page.figure(
        side_by_side(labels, rows, axis=_("probability"), chosen=kept.index(own)),
        "generation.speculation",
        _("Where q is longer than p, a draft may be refused; the residual is what p has more than q."),
    )


def _sentences(one: Round, each: Draft) -> list[str]:
    ratio = min(each.p / each.q, 1.0)
    said = [
        _("The draft proposed **{token}**: p = {p}, q = {q}, accepted with probability min(1, p/q) = {ratio}.").format(
            token=markdown_literal(each.token),
            p=fmt_probability(each.p),
            q=fmt_probability(each.q),
            ratio=fmt_probability(ratio),
        )
    ]
    if each.uniform is None:
        said.append(_("It was not read, because a draft before it was refused."))
    elif each.fate == "accepted":
        said.append(_("u = {u} is below it: accepted.").format(u=f"{each.uniform:.4f}"))
    else:
        said.append(
            _("u = {u} is not below it: refused. From the residual came **{token}**, with probability {p}.").format(
                u=f"{each.uniform:.4f}", token=markdown_literal(one.token), p=fmt_probability(one.prob)
            )
        )
    said.append(
        _("Whatever had been drafted here, it would have been accepted with probability 1 − TV = {a}.").format(
            a=fmt_probability(each.acceptance)
        )
    )
    return said


def _table(found: Speculation) -> None:
    fates = {"accepted": _("accepted"), "refused": _("refused"), "unread": _("not read")}
    rows = [
        {
            _("round"): number + 1,
            "id": each.token_id,
            _("token"): visible(each.token),
            "p": each.p,
            "q": each.q,
            "1 − TV": each.acceptance,
            "u": each.uniform,
            _("draft"): fates[each.fate],
        }
        for number, one in enumerate(found.rounds)
        for each in one.drafts
    ]
    if rows:
        page.numbers_table(
            pd.DataFrame(rows), _NAME, {"p": "probability", "q": "probability", "1 − TV": "probability", "u": "number"}
        )
