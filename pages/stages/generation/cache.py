"""The KV cache: the same logits for less work, measured on the text of this page."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import Encoding, LanguageModel, parameters
from lmcore.analysis.generation.cache_comparison import CacheComparison, cache_bytes, compare_cache
from lmcore.generation.run import GenerationRun
from pages.common import page, widgets
from pages.common.text import _
from pages.figures.generation.curves import against_length
from pages.stages.generation import jobs

MIB = 2**20
CODE = """
import lmcore
from lmcore.analysis.generation.cache_comparison import compare_cache

lm = lmcore.load({name!r})
ids = {ids}
*_, found = compare_cache(lm, ids, {n})
for row in zip(found.lengths, found.seconds_with, found.seconds_without, found.max_difference, found.cache_bytes):
    print(*row)
"""


def show(lm: LanguageModel, prompt: Encoding, run: GenerationRun) -> None:
    """Draw the view."""
    ids = run.tree.ids(run.node)[: lm.config.context_length]
    left, right = page.workbench()
    with left:
        button = st.container()
        most = min(256, lm.config.context_length)
        n_tokens = widgets.slider("cache.tokens", _("Length of the text"), 1, most, 64)
        question = (lm.name, tuple(ids[:n_tokens]), n_tokens)
        with button:
            jobs.button(
                "cache",
                question,
                _("Measure both"),
                lambda: compare_cache(lm, ids[:n_tokens], n_tokens),
                at_once=lm.config.vocab_size <= 5_000,
            )
        st.caption(
            _(
                "The text is the prompt and what was generated, continued greedily to this length. Both ways "
                "compute the logits of the next token; without the cache, the whole text runs again."
            )
        )
    with right:
        if jobs.find("cache", question) is None:
            st.info(_("Press Measure both. This machine runs the text token by token, with the cache and without."))
        jobs.show("cache", question, lambda found: _share(found), lambda found, all_: _draw(lm, found, all_))
        _words(lm, n_tokens)
    _drawn(run)
    shown = ids[:n_tokens]
    page.snippet(CODE.format(name=lm.name, ids=shown, n=n_tokens))


def _share(found: CacheComparison) -> float:
    """Return the share of the work: the plain passes take time with the square of the length."""
    return (found.lengths[-1] / found.n_tokens) ** 2 if found.lengths else 0.0


def _words(lm: LanguageModel, n_tokens: int) -> None:
    config, limit = lm.config, lm.config.context_length
    st.markdown(
        _(
            "The keys and values of earlier tokens do not change, so they are kept, and only the new token "
            "runs through the model. A token takes 2 × {layers} layers × {heads} key/value heads × {d_head} "
            "numbers of {size} bytes = {each:,} bytes; {n} tokens take {some} MiB, the full context of "
            "{limit:,} tokens {full} MiB. The weights take {weights} MiB."
        ).format(
            layers=config.n_layers,
            heads=config.n_kv_heads,
            d_head=config.d_head,
            size=1 if config.int8_cache else lm.model.head.weight.dtype.itemsize,
            each=cache_bytes(lm, 1),
            n=n_tokens,
            some=_mib(cache_bytes(lm, n_tokens)),
            limit=limit,
            full=_mib(cache_bytes(lm, limit)),
            weights=_mib(parameters.count(config).total * lm.model.head.weight.dtype.itemsize),
        )
    )
    if config.int8_cache:
        st.caption(
            _(
                "This cache keeps 8-bit numbers (kv8): each vector of {d_head} of them has a scale of {size} bytes "
                "beside it, which is in the sum."
            ).format(d_head=config.d_head, size=lm.model.head.weight.dtype.itemsize)
        )
    if config.n_kv_heads < config.n_heads:
        st.caption(
            _(
                "{heads} query heads share {kv_heads} key/value heads. With one each, the cache would be "
                "{times} times as large."
            ).format(heads=config.n_heads, kv_heads=config.n_kv_heads, times=config.n_heads // config.n_kv_heads)
        )
    if config.sliding_window is not None and config.local_layers:
        st.caption(
            _(
                "{n} of the {layers} layers see only the last {window} tokens. This cache keeps all tokens; "
                "keeping only what those layers see would take {less} MiB at the full context."
            ).format(
                n=len(config.local_layers),
                layers=config.n_layers,
                window=config.sliding_window,
                less=_mib(parameters.kv_cache_bytes(config, limit)),
            )
        )


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / MIB:,.1f}" if n_bytes >= MIB else f"{n_bytes / MIB:.3f}"


def _drawn(run: GenerationRun) -> None:
    """Say how long the tokens in view took when they were drawn."""
    path = run.tree.path(run.node)
    if len(path) < 2:
        return
    columns = st.columns(2)
    names = (_("Time per token, with cache"), _("Time per token, without cache"))
    for column, used, name in zip(columns, (True, False), names, strict=True):
        seconds = [step.seconds for step in path[1:] if step.used_cache == used and step.seconds]  # the first: prompt
        column.metric(name, f"{1000 * sum(seconds) / len(seconds):.2f} ms" if seconds else "–")


def _draw(lm: LanguageModel, found: CacheComparison, everything: bool) -> None:
    if not found.lengths:
        return
    with_cache, without = _("with cache"), _("without")
    times, memory = st.columns([3, 2])
    with times:
        page.figure(
            against_length(
                found.lengths,
                {
                    with_cache: [1000 * each for each in found.seconds_with],
                    without: [1000 * each for each in found.seconds_without],
                },
                x_title=_("tokens in the text"),
                y_title=_("milliseconds for the next token"),
                unit="ms",
            ),
            "generation.cache",
            _("Time for the next token against the length of the text, with and without the cache."),
        )
    with memory:
        page.figure(
            against_length(
                found.lengths,
                {_("keys and values kept"): [each / MIB for each in found.cache_bytes]},
                x_title=_("tokens in the text"),
                y_title="MiB",
                unit="MiB",
            ),
            "generation.cache_memory",
            _("Memory of the cache against the length of the text: a straight line."),
        )
    last_with, last_without = found.seconds_with[-1], found.seconds_without[-1]
    st.markdown(
        _(
            "At {n} tokens, the next one takes {fast} ms with the cache and {slow} ms without, {times} times "
            "as long. **The logits are the same**: at any length they differ by at most {difference}."
        ).format(
            n=found.lengths[-1],
            fast=f"{1000 * last_with:.2f}",
            slow=f"{1000 * last_without:.2f}",
            times=f"{last_without / last_with:.1f}",
            difference=f"{max(found.max_difference):.2g}",
        )
    )
    if everything:
        st.subheader(_("The numbers"), anchor=False)
        page.numbers_table(
            pd.DataFrame(
                {
                    _("tokens"): found.lengths,
                    _("with cache (ms)"): [1000 * each for each in found.seconds_with],
                    _("without (ms)"): [1000 * each for each in found.seconds_without],
                    _("largest difference of a logit"): found.max_difference,
                    _("bytes in the cache"): found.cache_bytes,
                }
            ),
            "generation-cache",
            {
                _("with cache (ms)"): "logit",
                _("without (ms)"): "logit",
                _("largest difference of a logit"): "%.2e",
                _("bytes in the cache"): "count",
            },
        )
