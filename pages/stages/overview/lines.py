"""The same in Python: the lines that give what the overview shows."""

from __future__ import annotations

import streamlit as st

from lmcore import LanguageModel
from lmcore.generation.run import GenerationRun
from pages.common import session
from pages.stages.sampling import knobs
from pages.stages.sampling.tables import call_of


def lines(lm: LanguageModel, run: GenerationRun, ids: list[int], position: int) -> str:
    """Return the Python that follows the way in view.

    Args:
        lm: the model.
        run: whose prompt and drawn tokens are followed.
        ids: all of them.
        position: the one that is followed.
    """
    n_prompt, is_last = len(run.tree.prompt_ids), position == len(ids) - 1
    text = f"lm.tokenizer.encode({session.prompt()!r}).ids"
    if position >= n_prompt:
        text += f" + {ids[n_prompt : position + 1]}"  # what was drawn
    elif position < n_prompt - 1:
        text += f"[:{position + 1}]"
    code = f"""
import lmcore
from lmcore.analysis import logit_lens
lm = lmcore.load({lm.name!r})
ids = {text}
trace = lmcore.Trace()
logits = lm(ids, trace=trace)[-1]                        # [{lm.config.vocab_size}]
trace["token_embedding"]                                 # [{position + 1}, {lm.config.d_model}]
trace["blocks.0.attn.pattern"][:, -1]                    # [head, key]: where the last token looks
[int(step.top_ids[-1]) for step in logit_lens(lm.model, trace, 0, within_blocks=False)]
history = lmcore.History(prompt=ids[:{n_prompt}], generated=ids[{n_prompt}:])
result = lmcore.reshape(logits, {call_of(knobs.settings(lm.config.vocab_size))}, history)
"""
    if not is_last:
        return code
    generator, n = f"lmcore.sampling.new_generator({st.session_state['seed']})", run.node.depth + 1
    if n == 1:
        return code + f"lmcore.draw(result, {generator})"
    return code + f"lmcore.sampling.draw_many(result, {n}, {generator})[-1].item()  # by the seed's number {n}"
