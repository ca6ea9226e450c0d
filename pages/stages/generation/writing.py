"""Token by token: what moves the generation, the text, its branches and its numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import pandas as pd
import streamlit as st

from lmcore import Constraint, Encoding, LanguageModel, SamplingSettings
from lmcore.generation.run import GenerationRun
from lmcore.generation.tree import Node
from pages.common import conversation, page
from pages.common.text import _, markdown_literal, ngettext, visible
from pages.stages.generation import branches, constraints, controls, files, line, runs, stops, turn
from pages.stages.generation.buttons import buttons
from pages.stages.sampling import knobs

SHOWN = ("temperature", "top_k", "top_p")  # settings that have a column of their own in the table
CODE = """
import lmcore

lm = lmcore.load({name!r})
ids = lm.tokenizer.encode({prompt!r}).ids
settings = lmcore.SamplingSettings({settings})
stop_ids = {stop_ids}
for step in lmcore.generate(lm, ids, settings, max_new_tokens={n}, stop_ids=stop_ids{more}):
    print(step.position, step.token_id, step.token, step.prob)
"""

BRANCH_CODE = """
import lmcore
from lmcore.generation.tree import GenerationTree

lm = lmcore.load({name!r})
tree = GenerationTree(lm, lm.tokenizer.encode({prompt!r}).ids)
node = tree.root
{steps}
for step in tree.path(node):
    print(step.token_id, step.token, step.prob)
"""


def show(lm: LanguageModel, prompt: Encoding, run: GenerationRun) -> None:
    """Draw the view."""
    left, right = page.workbench()
    with left:
        constraints.note(run)
        colour, top_n = controls.show(lm, run)
    with right:
        files.opening()
        turn.is_sent()  # and the page is already about the new prompt
        moves(lm, run)
        line.live(run, prompt, colour, top_n)
    turn.messages()
    branches.show(run, len(prompt.ids))
    _earlier()
    files.show(run, prompt)
    numbers(run)
    page.snippet(code(lm, prompt, run))


def numbers(run: GenerationRun) -> None:
    """Show the numbers of the text in view as a table."""
    if run.node.parent is not None:
        st.subheader(_("The numbers"), anchor=False)
        page.numbers_table(
            _table(run),
            "generation",
            {
                _("probability"): "probability",
                _("unmodified model"): "probability",
                _("surprisal (bits)"): "logit",
                **({_("not allowed"): "probability"} if any(s.constraint for s in run.tree.path(run.node)) else {}),
                "temperature": "%.2f",
                "top_p": "%.2f",
            },
        )


def _earlier() -> None:
    """Offer the runs of other prompts."""
    others = runs.earlier()
    if others:
        st.subheader(_("Earlier generations"), anchor=False)
    for number, (key, other) in enumerate(others):
        n = other.tip.depth
        st.button(
            ngettext("{prompt} ({model}): {n} token", "{prompt} ({model}): {n} tokens", n).format(
                prompt=markdown_literal(conversation.title(key[1])[:40]), model=key[0], n=n
            ),
            key=f"generation.earlier.{number}",
            icon=":material/undo:",
            help=_("Restore"),
            on_click=runs.bring_back,
            args=(key,),
        )


def code(lm: LanguageModel, prompt: Encoding, run: GenerationRun) -> str:
    """Return the Python that draws the text in view, or without one yet the text that would be drawn."""
    path = run.tree.path(run.node)
    values = {"name": lm.name, "prompt": prompt.text}
    now = (run.settings, run.use_cache, run.constraint)
    if any(step.by_hand or (step.settings, step.used_cache, step.constraint) != now for step in path):
        return BRANCH_CODE.format(**values, steps="\n".join(_steps(path)))
    own = run.stop_ids == stops.default_ids(lm)
    return CODE.format(
        **values,
        settings=arguments(run.settings),
        stop_ids="lm.end_tokens" if own else sorted(run.stop_ids),
        n=len(path) or run.max_new_tokens,
        more=_more(run.use_cache, run.constraint),
    )


def _steps(path: list[Node]) -> Iterator[str]:
    """Yield the lines that draw or take the tokens of a branch, those drawn alike in one loop."""
    settings = None
    for (asked, by_hand, used_cache, constraint), group in itertools.groupby(
        path, key=lambda step: (step.settings, step.by_hand, step.used_cache, step.constraint)
    ):
        if asked != settings and asked is not None:
            settings = asked
            yield f"settings = lmcore.SamplingSettings({arguments(asked)})"
        more = _more(used_cache, constraint)
        steps = list(group)
        if by_hand:
            yield from (f"node = tree.take(node, {step.token_id}, settings{more})" for step in steps)
        else:
            yield f"for _ in range({len(steps)}):\n    node = tree.draw(node, settings{more})"


def _more(use_cache: bool, constraint: Constraint | None) -> str:
    """Return the arguments of a draw that are not as when nobody gives them, as Python."""
    more = "" if use_cache else ", use_cache=False"
    return more if constraint is None else more + f", constraint=lmcore.{constraint!r}"


def arguments(settings: SamplingSettings) -> str:
    """Return the arguments that make some settings, as Python."""
    return ", ".join(f"{name}={value!r}" for name, value in {**knobs.given(settings), "seed": settings.seed}.items())


def moves(lm: LanguageModel, run: GenerationRun) -> None:
    """Draw the buttons that move the generation; a message that was just sent is answered first."""
    if turn.wants_answer():
        _act(lm, run, run.start)
    buttons(
        {
            "step": run.step,
            "run": run.start,
            "stop": run.ask_to_stop,
            "restart": lambda: run.go_to(run.tree.root),
        },
        lambda action: _act(lm, run, action),
        key="generation",
        running=run.running,
        can_grow=not run.end,
        at_start=run.node.parent is None,
    )


def _act(lm: LanguageModel, run: GenerationRun, action: Callable[[], object]) -> None:
    st.session_state[runs.SELECTED] = None
    run.error = None
    controls.apply(lm, run)
    try:
        action()
    except ValueError as error:
        run.error = error


def _table(run: GenerationRun) -> pd.DataFrame:
    """Return one row a token of the text in view."""
    path = run.tree.path(run.node)
    settings = [step.settings for step in path if step.settings is not None]
    given = [knobs.given(each) for each in settings]
    others = [", ".join(f"{name} {value}" for name, value in each.items() if name not in SHOWN) for each in given]
    return pd.DataFrame(
        {
            _("position"): [len(run.tree.prompt_ids) + index for index in range(len(path))],
            "id": [step.token_id for step in path],
            _("token"): [visible(step.token) for step in path],
            _("probability"): [step.prob for step in path],
            _("unmodified model"): [math.exp(step.log_prob) for step in path],
            _("rank"): [step.rank for step in path],
            _("surprisal (bits)"): [-step.log_prob / math.log(2) for step in path],
            _("candidates"): [step.candidates for step in path],
            _("by hand"): [step.by_hand for step in path],
            "temperature": [s.temperature for s in settings],
            "top_k": [s.top_k or 0 for s in settings],
            "top_p": [s.top_p for s in settings],
            **({_("other settings"): others} if any(others) else {}),
            **({_("not allowed"): [step.forbidden for step in path]} if any(step.constraint for step in path) else {}),
            "seed": [s.seed for s in settings],
        }
    )
