"""Token by token: what moves the generation, the text, its branches and its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
import streamlit as st

from lmcore import Encoding, LanguageModel
from lmcore.generation.run import GenerationRun
from pages.common import page
from pages.common.text import _, visible
from pages.stages.generation import branches, controls, files, line, runs, stops
from pages.stages.generation.buttons import buttons
from pages.stages.sampling import knobs

CODE = """
import lmcore

lm = lmcore.load({name!r})
ids = lm.tokenizer.encode({prompt!r}).ids
settings = lmcore.SamplingSettings({settings})
stop_ids = {stop_ids}
for step in lmcore.generate(lm, ids, settings, max_new_tokens={n}, stop_ids=stop_ids, use_cache={use_cache}):
    print(step.position, step.token_id, step.token, step.prob)
"""


def show(lm: LanguageModel, prompt: Encoding, run: GenerationRun) -> None:
    """Draw the view."""
    left, right = page.workbench()
    with left:
        colour, top_n = controls.show(lm, run)
    with right:
        files.opening()
        _buttons(run)
        line.live(run, prompt, colour, top_n)
    branches.show(run)
    files.show(run, prompt)
    if run.node.parent is not None:
        st.subheader(_("The numbers"), anchor=False)
        page.numbers_table(
            _table(run),
            "generation",
            {
                _("probability"): "probability",
                _("the model's own"): "probability",
                _("surprisal (bits)"): "logit",
                "temperature": "%.2f",
                "top_p": "%.2f",
            },
        )
    asked = [f"{name}={value!r}" for name, value in {**knobs.given(run.settings), "seed": run.settings.seed}.items()]
    own = run.stop_ids == stops.default_ids(lm)
    page.snippet(
        CODE.format(
            name=lm.name,
            prompt=prompt.text,
            settings=", ".join(asked),
            stop_ids="lm.tokenizer.special_tokens.values()" if own else sorted(run.stop_ids),
            n=run.max_new_tokens,
            use_cache=run.use_cache,
        )
    )


def _buttons(run: GenerationRun) -> None:
    """Draw what moves the generation."""

    def act(action: Callable[[], object]) -> None:
        st.session_state[runs.SELECTED] = None
        run.error = ""
        try:
            action()
        except ValueError as error:
            run.error = str(error)

    buttons(
        {
            "step": run.step,
            "run": run.start,
            "stop": run.ask_to_stop,
            "restart": lambda: run.go_to(run.tree.root),
        },
        act,
        key="generation",
        running=run.running,
        can_grow=not run.end,
        at_start=run.node.parent is None,
    )


def _table(run: GenerationRun) -> pd.DataFrame:
    """Return one row a token of the text in view."""
    path = run.tree.path(run.node)
    settings = [step.settings for step in path]
    return pd.DataFrame(
        {
            _("position"): [len(run.tree.prompt_ids) + index for index in range(len(path))],
            "id": [step.token_id for step in path],
            _("token"): [visible(step.token) for step in path],
            _("probability"): [step.prob for step in path],
            _("the model's own"): [math.exp(step.log_prob) for step in path],
            _("rank"): [step.rank for step in path],
            _("surprisal (bits)"): [-step.log_prob / math.log(2) for step in path],
            _("candidates"): [step.candidates for step in path],
            _("by hand"): [step.by_hand for step in path],
            "temperature": [s.temperature for s in settings],
            "top_k": [s.top_k or 0 for s in settings],
            "top_p": [s.top_p for s in settings],
            "seed": [s.seed for s in settings],
        }
    )
