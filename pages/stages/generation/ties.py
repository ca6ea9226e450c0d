"""Temperature 0 and ties, at each step of the generation in view."""

from __future__ import annotations

import streamlit as st

from lmcore import LanguageModel
from lmcore.generation.run import GenerationRun
from pages.common import page
from pages.common.text import _
from pages.stages.generation.buttons import nothing_yet
from pages.stages.sampling import ties


def show(lm: LanguageModel, run: GenerationRun) -> None:
    """Draw the view."""
    first = len(run.tree.prompt_ids) - 1  # the token after this position was the first to be drawn
    most = ties.longest(lm)
    ids = tuple(run.tree.ids(run.node))[:-1][:most]  # nothing was chosen after the last token yet
    if run.node.parent is None:
        return nothing_yet()
    if len(ids) <= first:
        st.info(_("The prompt is longer than the {n:,} tokens that are run here.").format(n=most))
        return
    controls, picture = page.workbench()
    with controls:
        ties.controls(lm, ids, first)
        st.caption(ties.why())
        if run.node.depth > len(ids) - first:
            st.caption(_("The first {n:,} of {of:,} steps.").format(n=len(ids) - first, of=run.node.depth))
    with picture:
        ties.picture(lm, ids, first)
    page.snippet(ties.code(lm, ids, first))
