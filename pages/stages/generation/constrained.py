"""The view of constraints: the text of the run, and what the mask took from each of its tokens."""

from __future__ import annotations

import streamlit as st

from lmcore import Encoding, LanguageModel
from lmcore.generation.run import GenerationRun
from pages.common import page
from pages.common.text import _
from pages.stages.generation import constraints, controls, line, writing

CODE = """
import lmcore
from lmcore.constraints import Masks, compare

lm = lmcore.load({name!r})
ids = lm.tokenizer.encode({prompt!r}).ids
constraint = lmcore.Constraint({kind!r}, {text!r}{retries})
settings = lmcore.SamplingSettings({settings})
masks = Masks(constraint, lm.tokenizer, lm.end_tokens)
drawn = []
for step in lmcore.generate(lm, ids, settings, max_new_tokens={n}, stop_ids=lm.end_tokens, constraint=constraint):
    history = lmcore.History(ids, drawn)
    found = compare(step.logits, masks.allowed(drawn), settings, history, step.result.state)
    print(step.token, step.prob, found.removed_mass{variation})
    drawn.append(step.token_id)
"""
EQUATION = (
    r"P_{\text{mask first}}(x) = \mathrm{reshape}(z + m)_x, \quad m_x = 0 \text{ or } {-\infty}; \qquad "
    r"P_{\text{try again}}(x) = [x \in A]\, \mathrm{reshape}(z)_x + "
    r"\Big(1 - \sum_{y \in A} \mathrm{reshape}(z)_y\Big)\, \mathrm{reshape}(z + m)_x"
)
"""Of logits z, with A the set of tokens allowed."""


def show(lm: LanguageModel, prompt: Encoding, run: GenerationRun) -> None:
    """Draw the view."""
    left, right = page.workbench()
    with left:
        constraints.controls(lm, prompt, run)
        _colour, top_n = controls.show(lm, run)
    with right:
        writing.moves(lm, run)
        line.live(run, prompt, "forbidden", top_n, constraints.picture)
    page.equation(EQUATION)
    writing.numbers(run)
    if run.constraint is not None:
        page.snippet(_code(lm, prompt, run))
    else:
        st.caption(_("The number under a token is the probability that the constraint took from it."))


def _code(lm: LanguageModel, prompt: Encoding, run: GenerationRun) -> str:
    assert run.constraint is not None
    return CODE.format(
        name=lm.name,
        prompt=str(prompt.text),
        kind=run.constraint.kind,
        text=run.constraint.text,
        retries=", retries=True" if run.constraint.retries else "",
        settings=writing.arguments(run.settings),
        n=run.node.depth or run.max_new_tokens,
        variation="" if constraints.stateful(run.settings) else ", found.total_variation",
    )
