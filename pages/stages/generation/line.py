"""The text so far, token by token, and the distribution behind the chosen one: redrawn while it runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import streamlit as st

from lmcore import Encoding, TextStream
from lmcore.generation.repetition import repeated_tail
from lmcore.generation.run import GenerationRun
from lmcore.generation.text_run import TextRun
from lmcore.generation.tree import Node
from pages.common import page
from pages.common.text import _, in_bits, markdown_literal, readable
from pages.figures.theme import fmt_probability
from pages.live.generated_text import Kind, TextToken, generated_text
from pages.stages.generation import chosen, constraints, turn
from pages.stages.generation.runs import SELECTED

REFRESH = 0.25  # seconds between two looks at a generation that runs
FULL_COLOUR_BITS = 10.0
Picture = Callable[[GenerationRun, Node | None, int], None]


def live(run: GenerationRun, prompt: Encoding, colour: str, top_n: int, picture: Picture = chosen.show) -> None:
    """Draw the text and the chosen token, again and again while the generation runs.

    Args:
        run, prompt: what is written, and after what.
        colour: what the tokens' colour means: "probability", "rank", "surprisal" or "forbidden".
        top_n: how many tokens are drawn as bars.
        picture: draws the distribution of a node, or with None of the token that comes next.
    """
    running = run.running
    st.fragment(_draw, run_every=REFRESH if running else None)(run, prompt, colour, top_n, picture, running)


def _draw(run: GenerationRun, prompt: Encoding, colour: str, top_n: int, picture: Picture, was_running: bool) -> None:
    if turn.is_sent():
        st.rerun()  # the prompt is another one
    running = run.running
    node = run.node  # read first: a generation that runs moves on, and the branch in view goes at least as far
    path = run.tree.path(run.tip)
    drawn = path[: node.depth]
    tokens = [
        TextToken(token, str(token_id), kind="prompt")
        for token, token_id in zip(prompt.tokens, prompt.ids, strict=True)
    ]
    tokens += [_token(step, index >= len(drawn), colour, len(prompt.ids) + index) for index, step in enumerate(path)]
    can_grow = not run.end and not running
    at_end = len(prompt.ids) + len(path)
    if can_grow and node is run.tip:
        tokens.append(TextToken(b"", _("next"), hint=_("not drawn yet: look at its distribution"), kind="next"))
    selected = selected_in(run, path)
    generated_text(
        tokens,
        key="generation.text",
        label=_("The text so far; choose a token"),
        selected=at_end if selected is None else len(prompt.ids) + selected.depth - 1,
        on_select=lambda index: st.session_state.update(
            {SELECTED: "next" if index >= at_end else path[index - len(prompt.ids)]}
        ),
    )
    if run.error is not None:
        st.error(_("The generation could not continue. The text so far is kept."))
        page.failure(run.error)
    if was_running and not running:
        st.rerun()  # the buttons, the branches and the table have to know
    turn.show(run)
    picture(run, selected, top_n)
    status(run, running)
    _plain_text(run, prompt, drawn)
    _repetition(drawn)


def selected_in(run: TextRun[Any], path: list[Any], may_be_next: bool = True) -> Any:
    """Return the node whose distribution is shown; None for the token that comes next, or where there is none."""
    wanted = st.session_state.get(SELECTED)
    if wanted in path:
        return wanted
    if may_be_next and wanted == "next" and not run.end and not run.running and run.node is run.tip:
        return None
    return run.node if run.node.parent is not None else path[0] if path else None


def _token(step: Node, ahead: bool, colour: str, position: int) -> TextToken:
    bits = -step.log_prob / math.log(2)
    caption, strength = {
        "probability": (fmt_probability(step.prob), step.prob),
        "rank": (f"#{step.rank}", 1 / step.rank),
        "surprisal": (f"{bits:.2f}", bits / FULL_COLOUR_BITS),
        "forbidden": (fmt_probability(step.forbidden), step.forbidden),
    }[colour]
    hint = _("position {position}, id {token_id}: {probability}, rank {rank}, {bits}").format(
        position=position,
        token_id=step.token_id,
        probability=fmt_probability(step.prob),
        rank=step.rank,
        bits=in_bits(bits),
    )
    kind: Kind = "ahead" if ahead else "taken" if step.by_hand else "drawn"
    return TextToken(step.token, caption, min(max(strength, 0.0), 1.0), hint, kind)


def status(run: TextRun[Any], running: bool) -> None:
    """Say how far the text is, and why it ends."""
    count = _("{n} of at most {limit} new tokens.").format(n=run.node.depth, limit=run.max_new_tokens)
    if run.tip is not run.node and not running:
        st.caption(count + " " + _("What follows the current position is kept, in grey."))
    else:
        st.caption(count + " " + (_("Running …") if running and not run.end else _why(run)))


def _why(run: TextRun[Any]) -> str:
    """Return why the text ends, in a sentence; "" where it does not."""
    match run.end:
        case "stop token":
            return _("The text has ended: {token} was drawn.").format(token=markdown_literal(run.node.token))
        case "stop string":
            stop = run.stop_match.text if isinstance(run, GenerationRun) and run.stop_match else ""
            return _("The text has ended at the stop string {text}. It is kept.").format(text=markdown_literal(stop))
        case "context full":
            size = run.tree.lm.config.context_length if isinstance(run, GenerationRun) else 0
            return _("The context is full: the model cannot see more than {n} tokens.").format(n=size)
        case "text ended":
            return _("The server ended the text here.")
        case "constraint":
            return constraints.why(run.refusal) if isinstance(run, GenerationRun) else ""
        case "max_new_tokens":
            return _("The limit of new tokens is reached. Raise it to continue.")
    return ""


def _plain_text(run: GenerationRun, prompt: Encoding, drawn: list[Node]) -> None:
    generated = b"".join(step.token for step in drawn if not _is_end(run, step))
    match = run.stop_match
    stream = TextStream()
    text = prompt.text + stream.push(generated if match is None else generated[: match.start])
    st.code(readable(text), language=None, wrap_lines=True)
    if stream.pending:
        st.caption(_("Hidden until the character is complete: {bytes}").format(bytes=markdown_literal(stream.pending)))


def _is_end(run: GenerationRun, step: Node) -> bool:
    """Whether this is the control token that ended the text: it is no part of it."""
    return step is run.node and run.end == "stop token"


def _repetition(drawn: list[Node]) -> None:
    period = repeated_tail([step.token_id for step in drawn])
    if not period:
        return
    what = markdown_literal(b"".join(step.token for step in drawn[-period:]))
    sentence = _("The text repeats {text} over and over.").format(text=what)
    if drawn[-1].candidates == 1:
        sentence += " " + _(
            "With one candidate at each step, there is no way out of the loop: this is the repetition trap of "
            "greedy decoding. Go back some tokens and raise the temperature."
        )
    st.info(sentence)
