"""The KV cache: the same logits for less work, measured on the text of this page."""

from __future__ import annotations

import streamlit as st

from lmcore import Encoding
from lmcore.analysis.cache_comparison import CacheComparison, cache_bytes, compare_cache
from lmcore.generation.run import GenerationRun
from pages.common import page, session
from pages.common.text import _
from pages.figures import generation as figures

MAX_TOKENS = 128  # the passes without a cache take time in proportion to the square
_MEASURED = "generation.cache"  # (model, ids) and what was measured on them


def show(run: GenerationRun, prompt: Encoding) -> None:
    """Draw what the cache does for the text in view."""
    lm, node = run.tree.lm, run.node
    path = run.tree.path(node)
    st.subheader(_("KV cache"), anchor=False)
    st.markdown(
        _(
            "Keys and values of the tokens already seen do not change, so they are kept, and only the new token runs "
            "through the model. A token takes 2 × {layers} layers × {heads} heads × {d_head} numbers of 4 bytes, the "
            "{n} tokens of this text {bytes:,} bytes."
        ).format(
            bytes=cache_bytes(lm, len(prompt.ids) + len(path)),
            n=len(prompt.ids) + len(path),
            layers=lm.config.n_layers,
            heads=lm.config.n_kv_heads,
            d_head=lm.config.d_head,
        )
    )
    ids = run.tree.ids(node)[: min(lm.config.context_length, MAX_TOKENS)]
    if path:
        _drawn(run, path)
    if st.button(_("Measure both on this text"), key="generation.measure", disabled=run.running):
        with st.spinner(_("Running {n} tokens twice …").format(n=len(ids))), session.forward_lock():
            st.session_state[_MEASURED] = ((lm.name, ids), compare_cache(lm, ids))
    measured_on, found = st.session_state.get(_MEASURED, (None, None))
    if measured_on == (lm.name, ids):
        _comparison(found)


def _drawn(run: GenerationRun, path: list) -> None:
    """Say how long the tokens in view took, and hold their logits against one pass over the whole text."""
    ids = run.tree.ids(path[-1])[:-1]
    whole = session.logits(ids)[-len(path) :]
    difference = max(
        float((run.result(step).start.logits - row).abs().max()) for step, row in zip(path, whole, strict=True)
    )
    columns = st.columns(3)
    for column, used, name in zip(
        columns, (True, False), (_("A token took, with cache"), _("A token took, without")), strict=False
    ):
        seconds = [step.seconds for step in path[1:] if step.used_cache == used]  # the first one ran the prompt
        column.metric(name, f"{1000 * sum(seconds) / len(seconds):.2f} ms" if seconds else "–")
    columns[2].metric(
        _("Largest difference of a logit"),
        f"{difference:.2g}",
        help=_("Between the logits each token was drawn from and those of one pass over the whole text."),
    )


def _comparison(found: CacheComparison) -> None:
    page.figure(
        figures.cache_times(
            found.seconds_with,
            found.seconds_without,
            names=(_("with cache"), _("without")),
            x_title=_("tokens in the text"),
            y_title=_("milliseconds for the next token"),
        ),
        "generation.cache",
        _("Time for the next token against the length of the text, with and without the cache."),
    )
    st.caption(
        _(
            "Over all lengths: the largest difference of a logit is {difference}; {fast} ms with, {slow} ms without."
        ).format(
            difference=f"{max(found.max_difference):.2g}",
            fast=f"{1000 * sum(found.seconds_with):.0f}",
            slow=f"{1000 * sum(found.seconds_without):.0f}",
        )
    )
