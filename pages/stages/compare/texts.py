"""What A and B write: where the two texts part, and what each would have gone on with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import streamlit as st

from lmcore.compare import Drawn, Served
from lmcore.compare.alignment import first_difference
from lmcore.compare.side import LocalRun
from pages.common import engines, page, widgets
from pages.common.text import _, markdown_literal, plotly_literal, visible
from pages.figures.logits import positions as bars
from pages.live.generated_text import TextToken, generated_text
from pages.stages.compare.positions import N_BARS
from pages.stages.compare.sides import Pair, choose, name_of
from pages.stages.generation import jobs

_NAME = "compare.texts"
_LONGEST = 200  # new tokens
_ANSWER = 24

Texts = tuple[tuple[Drawn, ...], tuple[Drawn, ...]]


def show() -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    with controls:
        pair = choose()
        longest = max(min(_LONGEST, *(_room(side) for side in (pair.a, pair.b))), 1)
        n = widgets.slider("compare.new", _("New tokens"), 1, longest, min(_ANSWER, longest))
        question = (pair.key, n)
        known = _told(pair, n)
        small = pair.local is not None and all(lm.config.d_model <= 256 for lm in pair.local)
        jobs.button(_NAME, question, _("Write both texts"), lambda: _written(pair, n, known), at_once=small)
    with picture:
        if jobs.find(_NAME, question) is None:
            st.info(_("Both sides go on from what they read, each with its own sampler and seed. Press the button."))
        jobs.show(_NAME, question, lambda texts: sum(map(len, texts)) / (2 * n), lambda texts, _all: _draw(pair, texts))


def _room(side: object) -> int:
    """Return how many tokens fit after a side's prompt."""
    model, ids = getattr(side, "model", None), getattr(side, "ids", None)
    return model.config.context_length - len(ids) if model is not None and ids is not None else _LONGEST


def _told(pair: Pair, n: int) -> list[tuple[Drawn, ...] | None]:
    """Return what was written elsewhere; None for a side that writes here."""
    comparison = pair.comparison(n)
    found: list[tuple[Drawn, ...] | None] = []
    for side, run in ((pair.a, comparison.a), (pair.b, comparison.b)):
        if isinstance(side, Served):
            found.append(engines.ask(side.engine, ("compare.drawn", pair.key, n), partial(getattr, run, "drawn")))
        else:
            found.append(None if isinstance(run, LocalRun) else comparison.drawn[run is comparison.b])
    return found


def _written(pair: Pair, n: int, known: list[tuple[Drawn, ...] | None]) -> Iterator[Texts]:
    """Yield both texts as they become longer, A's first."""
    comparison = pair.comparison(n)
    texts = [list(known[0] or ()), list(known[1] or ())]
    for text, told, run in zip(texts, known, (comparison.a, comparison.b), strict=True):
        if told is None and isinstance(run, LocalRun):
            for each in run.draws():
                text.append(each)
                yield tuple(texts[0]), tuple(texts[1])
    yield tuple(texts[0]), tuple(texts[1])


def _draw(pair: Pair, texts: Texts) -> None:
    place = first_difference(*([each.token for each in text] for text in texts))
    written = min(map(len, texts))
    if place is None:
        st.markdown(_("**The same {n} tokens came.**").format(n=written))
    elif place < written:
        st.markdown(_("**The texts part at new token {place}.**").format(place=place))
    for letter, side, text in zip("AB", (pair.a, pair.b), texts, strict=True):
        st.caption(f"{letter}: {markdown_literal(name_of(side))}")
        if text:
            generated_text(
                [_shown(each, place, index) for index, each in enumerate(text)],
                key=f"compare.text.{letter}",
                label=_("The text of {side}").format(side=letter),
                selected=place if place is not None and place < len(text) else None,
            )
    if place is not None and place < written:
        _beside(pair, texts[0][place], texts[1][place])


def _shown(each: Drawn, place: int | None, index: int) -> TextToken:
    prob = None if each.log_prob is None else math.exp(each.log_prob)
    caption = "" if prob is None else f"{100 * prob:.0f} %"
    return TextToken(each.token, caption, prob or 0.0, kind="ahead" if place is not None and index > place else "drawn")


def _beside(pair: Pair, a: Drawn, b: Drawn) -> None:
    """Draw what both held most probable where the texts part."""
    sides = [{each.text: math.exp(each.log_prob) for each in drawn.among} for drawn in (a, b)]
    for side, drawn in zip(sides, (a, b), strict=True):
        if drawn.log_prob is not None:
            side.setdefault(drawn.token.decode("utf-8", "replace"), math.exp(drawn.log_prob))
    wanted = [drawn.token.decode("utf-8", "replace") for drawn in (a, b)]
    others = sorted({*sides[0], *sides[1]} - {*wanted}, key=lambda text: -max(side.get(text, 0.0) for side in sides))
    names = [*dict.fromkeys(wanted), *others][:N_BARS]
    page.figure(
        bars.next_tokens(
            [visible(name) for name in names],
            [sides[0].get(name, 0.0) for name in names],
            [sides[1].get(name, 0.0) for name in names],
            (f"A: {plotly_literal(name_of(pair.a))}", f"B: {plotly_literal(name_of(pair.b))}"),
            None,
        ),
        "compare.parting",
        _(
            "Bars: where the texts part, the probability of what A drew, of what B drew, and of the most probable "
            "others, before the sampler."
        ),
    )
