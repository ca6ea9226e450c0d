"""Generation through a model that runs elsewhere: its server draws; step, run, stop, and branch from any candidate."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
import streamlit as st

from lmcore.engines.capabilities import Capabilities
from lmcore.engines.drawing import Sampler
from lmcore.engines.engine import Engine
from lmcore.generation.engine_run import EngineRun, ServedNode
from pages.common import engine_facts, engines, link, page, widgets
from pages.common.text import _
from pages.stages.generation import branches, constraints, engine_line, runs, stages, turn
from pages.stages.generation.buttons import buttons
from pages.stages.generation.controls import MAX_SEED, PRESETS
from pages.stages.tokenization.common import require_text

_RUNS = "generation.engine.runs"  # (engine, its generation, prompt) -> run, the latest last
CODE = """
from lmcore.engines.config import configured
from lmcore.engines.engine import Engine
from lmcore.engines.drawing import Sampler
from lmcore.generation.engine_run import EngineRun

engine = Engine(next(config for config in configured() if config.name == {name!r}))
run = EngineRun(engine, {prompt!r})
run.sampler = Sampler(temperature={temperature:g}, top_k={top_k}, top_p={top_p:g}, seed={seed})
run.max_new_tokens = {n}
run.start()
run.wait(60)
print(run.text(run.node))
for step in run.node.path():
    print(step.drawn.token_id, repr(step.drawn.text), step.drawn.log_prob, step.drawn.rank)
engine.close()
"""


def show(engine: Engine) -> None:
    """Draw the page."""
    page.header(
        _("Generation"),
        _(
            "The server draws one token after another. What each was drawn from is kept, and you can choose "
            "another token."
        ),
    )
    text = require_text()
    constraints.say_free()
    facts = engine_facts.of(engine, log_probs=True, check=False)  # a run checks: what was drawn is shown without
    page.equation(r"t_{n+1} \sim \mathrm{reshape}\big(P(\cdot \mid t_1, \dots, t_n)\big)")
    run = current(engine, text)
    left, right = page.workbench()
    with left:
        _controls(run, facts)
    with right:
        turn.is_sent()  # and the page is already about the new prompt
        _buttons(run, facts)
        engine_line.live(run)
    turn.messages()
    branches.show(run, len(run.prompt) if run.by_ids else None)
    if (node := run.node).parent is not None:
        st.subheader(_("The numbers"), anchor=False)
        page.numbers_table(
            engines.without_empty_ids(_table(node)), "engine-generation", {"P": "probability", "ln P": "logit"}
        )
    sampler = run.sampler
    page.snippet(
        CODE.format(
            name=engine.name,
            prompt=text,
            temperature=sampler.temperature,
            top_k=sampler.top_k,
            top_p=sampler.top_p,
            seed=sampler.seed,
            n=run.max_new_tokens,
        )
    )
    page.try_next(
        page.Suggestion(_("Greedy: does it fall into a loop?"), "generation", {"temperature": 0.0}),
        page.Suggestion(_("The usual pairing: temperature 0.8 and top-p 0.9"), "generation", PRESETS["usual"]),
        page.Suggestion(_("What is known about the distribution of the first token"), "sampling"),
    )


def _table(node: ServedNode) -> pd.DataFrame:
    """Return one row per token of the text up to a node."""
    path = node.path()
    samplers = [step.settings for step in path]
    return pd.DataFrame(
        {
            _("token after the prompt"): range(1, len(path) + 1),
            "id": pd.array([step.token_id for step in path], dtype="Int64"),
            _("token"): [branches.label(step) for step in path],
            "P": [math.nan if step.log_prob is None else math.exp(step.log_prob) for step in path],
            "ln P": [math.nan if step.log_prob is None else step.log_prob for step in path],
            _("rank"): pd.array([step.rank for step in path], dtype="Int64"),
            _("by hand"): [step.by_hand for step in path],
            "temperature": [None if sampler is None else sampler.temperature for sampler in samplers],
            "top_k": pd.array([None if sampler is None else sampler.top_k for sampler in samplers], dtype="Int64"),
            "top_p": [None if sampler is None else sampler.top_p for sampler in samplers],
            "seed": pd.array([None if sampler is None else sampler.seed for sampler in samplers], dtype="Int64"),
        }
    )


def current(engine: Engine, text: str) -> EngineRun:
    """Return the run of this prompt and engine: a new one, or the one the reader left."""
    known: dict[tuple[str, int, str], EngineRun] = st.session_state.setdefault(_RUNS, {})
    key = (engine.name, engine.generation, text)
    for other, run in known.items():
        if other != key:
            run.stop()

    def make() -> EngineRun:
        return engines.ask(engine, ("run", text, id(known)), lambda: EngineRun(engine, text))

    return runs.latest(_RUNS, key, make)


def _controls(run: EngineRun, facts: Capabilities) -> None:
    size = facts.vocab_size or 1000
    widgets.slider("temperature", _("Temperature"), 0.0, 2.0, 1.0, step=0.05, help=_("0 is greedy."))
    if facts.has("top_k"):
        stages.top_k("top_k", "top-k", size)
    widgets.slider("top_p", "top-p", 0.0, 1.0, 1.0, step=0.01, help=_("1 is off; 0 keeps one token."))
    widgets.number("seed", _("Seed"), 0, MAX_SEED, 0, help=_("The seed of the server's generator."))
    widgets.slider("max_new_tokens", _("New tokens at most"), 1, 200, 50)
    _apply(run, facts)
    st.caption(
        _("The server draws with these settings. Its other sampling steps are turned off.")
        + " "
        + (
            _("It is sent the ids of the tokens drawn so far.")
            if run.by_ids
            else _(
                "It takes text, not ids: one token is requested at a time, and the text is tokenized again each time."
            )
        )
    )


def _apply(run: EngineRun, facts: Capabilities) -> None:
    """Give a run what the reader has set, before its next token."""
    link.take_over("temperature", "top_k", "top_p", "seed", "max_new_tokens")
    state = st.session_state
    top_k = state["top_k"] if facts.has("top_k") else 0
    run.sampler = Sampler(state["temperature"], top_k, state["top_p"], state["seed"])
    run.max_new_tokens = state["max_new_tokens"]


def _buttons(run: EngineRun, facts: Capabilities) -> None:
    """Draw what moves the generation."""

    def act(action: Callable[[], object]) -> None:
        st.session_state[runs.SELECTED] = None
        run.error = None
        _apply(run, facts)
        action()

    if turn.wants_answer():
        act(run.start)
    buttons(
        {"step": run.step, "run": run.start, "stop": run.stop, "restart": lambda: run.go_to(run.tree.root)},
        act,
        key="generation.engine",
        running=run.running,
        can_grow=not run.end,
        at_start=run.node.parent is None,
    )
