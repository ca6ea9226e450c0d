"""The text that a server draws, and what the chosen token was drawn from: redrawn while it runs."""

from __future__ import annotations

import math
import time
import weakref

import streamlit as st

from lmcore.engines.errors import EngineError
from lmcore.engines.top_tokens import TopToken, TopTokens
from lmcore.generation.engine_run import EngineRun, ServedNode
from pages.common import engines
from pages.common.text import _, in_bits, markdown_literal, readable
from pages.figures.theme import fmt_probability
from pages.live.generated_text import Kind, TextToken, generated_text
from pages.stages.generation import turn
from pages.stages.generation.branches import label
from pages.stages.generation.line import FULL_COLOUR_BITS, REFRESH, selected_in, status
from pages.stages.generation.runs import SELECTED

SHOWN = 10  # candidates that can be taken
LOOKS_PER_SECOND = 20  # at most, of all sessions together
_PRESENT = 60.0  # seconds since its page was drawn in which a run counts as looked at
_looked_at: weakref.WeakKeyDictionary[EngineRun, float] = weakref.WeakKeyDictionary()  # of all sessions


def live(run: EngineRun) -> None:
    """Draw the text and the candidates, again and again while it runs."""
    running = run.running
    st.fragment(_draw, run_every=_pause(run) if running else None)(run, running)


def _pause(run: EngineRun) -> float:
    """Seconds between two looks at a run: all sessions share one server, and each look takes it some milliseconds."""
    now = time.monotonic()
    _looked_at[run] = now
    present = sum(now - looked < _PRESENT for looked in list(_looked_at.values()))
    return max(REFRESH, present / LOOKS_PER_SECOND)


def _draw(run: EngineRun, was_running: bool) -> None:
    if turn.is_sent():
        st.rerun()  # the prompt is another one
    running = run.running
    _looked_at[run] = time.monotonic()
    node = run.node  # read first: a run moves on, and the branch in view goes at least as far
    path = run.tip.path()
    tokens = [TextToken(run.prompt_text.encode("utf-8", "surrogatepass"), _("prompt"), kind="prompt")]
    hint = _("P {p}, rank {rank}, {bits}")
    tokens += [_token(step, step.depth > node.depth, hint) for step in path]
    selected = selected_in(run, path, may_be_next=False)
    generated_text(
        tokens,
        key="generation.engine.text",
        label=_("The text so far; choose a token"),
        selected=None if selected is None else selected.depth,
        on_select=lambda index: st.session_state.update({SELECTED: path[index - 1] if index else None}),
    )
    status(run, running)
    if isinstance(run.error, EngineError):
        engines.say(run.engine, run.error)
    st.code(readable(run.prompt_text + run.text(node)), language=None, wrap_lines=True)
    if was_running and not running:
        st.rerun()  # the buttons and the branches have to know
    turn.show(run)
    if selected is not None and not running:
        _candidates(run, selected)


def _token(step: ServedNode, ahead: bool, hint: str) -> TextToken:
    kind: Kind = "ahead" if ahead else "taken" if step.by_hand else "drawn"
    shown = label(step).encode()
    if step.log_prob is None:
        return TextToken(shown, "?", 0.0, _("its probability is not returned"), kind)
    bits = -step.log_prob / math.log(2)
    found = step.rank
    rank = f"{found:,}" if found else _("rank above {n}").format(n=len(step.among))
    told = hint.format(p=fmt_probability(math.exp(step.log_prob)), rank=rank, bits=in_bits(bits))
    return TextToken(shown, f"{bits:.1f}", min(max(bits / FULL_COLOUR_BITS, 0.0), 1.0), told, kind)


def _candidates(run: EngineRun, selected: ServedNode) -> None:
    """Show what the chosen token was drawn from, each to be taken instead."""
    among, parent = selected.among, selected.parent
    best = among.best[:SHOWN]
    texts = _texts(run, best)
    st.markdown(
        _(
            "**Instead of** {token}: choose another token and continue from there. The probabilities are those "
            "of the unmodified model, at T = 1."
        ).format(token=markdown_literal(label(selected)))
    )
    with st.container(horizontal=True):
        for number, (each, text) in enumerate(zip(best, texts, strict=True)):
            came = each.name == (selected.text if selected.token_id is None else selected.token_id)
            shown = markdown_literal(text) if text and "\ufffd" not in text else f"⟨{each.token_id or '…'}⟩"
            st.button(
                f"{shown} {fmt_probability(math.exp(each.log_prob))}",
                key=f"generation.engine.take.{number}",
                icon=":material/check:" if came else None,
                disabled=not run.can_take(each),
                on_click=_take,
                args=(run, parent, each, among),
            )
    if among.merged:
        st.caption(
            _("{n} of the {asked} requested have the same text as others.").format(n=among.merged, asked=among.asked)
        )


def _take(run: EngineRun, parent: ServedNode, candidate: TopToken, among: TopTokens) -> None:
    try:
        run.take(parent, candidate, among)
    except EngineError as error:
        run.error = error
    st.session_state[SELECTED] = None


def _texts(run: EngineRun, best: tuple[TopToken, ...]) -> list[str]:
    ids = [each.token_id for each in best if each.token_id is not None]
    try:
        known = dict(zip(ids, run.engine.texts(ids), strict=True))
    except EngineError:  # the ids are enough to go on with
        known = {}
    return [known.get(each.token_id, "") if each.token_id is not None else each.text for each in best]
