"""Compute of a generated token and of a prompt, in MACs and FLOPs; memory of weights and cache."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.parameters import BYTES_PER_NUMBER, PublishedConfig, compute, count, kv_cache_bytes, kv_cache_rows
from lmcore.parameters.per_block import mlp_compute
from pages.common import link, page, widgets
from pages.common.text import _
from pages.figures.theme import fmt_count
from pages.figures.tying import parameters as figures
from pages.stages.tying.subject import config_code, facts, group_names, mebibytes, sources, subject_picker

_N_LENGTHS = 33

CODE = """
import lmcore
from lmcore.parameters import PRESETS, compute, kv_cache_bytes

config = {config}
decode = compute(config, past_tokens={past})
prefill = compute(config, new_tokens={new}, last_logits_only={last})
for row in decode.rows:
    print(row.name, row.formula, row.macs, "MACs", row.flops, "FLOPs")
print(decode.macs, decode.flops, prefill.macs, prefill.flops)
print(kv_cache_bytes(config, {past} + 1, {dtype!r}))
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    with controls:
        config = subject_picker(lm)
        if isinstance(config, PublishedConfig) and config.architecture != "decoder":
            st.info(
                _(
                    "{title} does not generate text token by token, so its compute is not counted here. Its "
                    "parameters are."
                ).format(title=config.title)
            )
            link.stop()
        last = config.context_length - 1
        past = widgets.slider("past", _("Tokens before the generated one"), 0, last, min(99, last))
        new = widgets.slider("prompt_tokens", _("Tokens of the prompt"), 1, config.context_length, min(100, last))
        last_only = widgets.toggle(
            "last_logits",
            _("Logits of the last position only"),
            help=_("For a prompt, generation needs only the logits of the last position."),
        )
        dtypes = list(BYTES_PER_NUMBER)
        dtype = widgets.select("dtype", _("dtype"), dtypes, "float16")
    decode, prefill = compute(config, past), compute(config, 0, new, last_logits_only=last_only)
    mlp = mlp_compute(config)
    cache = kv_cache_bytes(config, past + 1, dtype)
    weights = count(config).memory_bytes(dtype)
    names = group_names()
    with picture:
        page.figure(
            figures.stacked(
                {
                    _("one generated token"): decode.group_macs,
                    _("prompt, mean of a token"): {group: macs / new for group, macs in prefill.group_macs.items()},
                },
                group_names=names,
                value_title=_("MACs per token"),
            ),
            "tying-compute",
            _("Multiply-accumulates by group, for one generated token and for one token of the prompt."),
        )
        facts(
            ["", "MACs", "FLOPs = 2 × MACs"],
            [
                [name, fmt_count(macs), fmt_count(2 * macs)]
                for name, macs in {
                    _("one generated token, after {n} others").format(n=fmt_count(past)): decode.macs,
                    _("a prompt of {n} tokens").format(n=fmt_count(new)): prefill.macs,
                    _("the head, for one token"): decode.group_macs["head"],
                    _("the MLP of one layer, for one token"): sum(row.macs for row in mlp),
                }.items()
            ],
        )
        facts(
            [_("memory in {dtype}").format(dtype=dtype), _("bytes"), "MiB"],
            [
                [name, fmt_count(n_bytes), mebibytes(n_bytes)]
                for name, n_bytes in {
                    _("KV cache of one sequence of {n} tokens").format(n=fmt_count(past + 1)): cache,
                    _("weights"): weights,
                }.items()
            ],
        )
        lengths = sorted({1 + last * step // (_N_LENGTHS - 1) for step in range(_N_LENGTHS)})
        page.figure(
            figures.memory(
                lengths,
                {
                    _("KV cache of one sequence"): [
                        kv_cache_bytes(config, length, dtype) / 2**20 for length in lengths
                    ],
                    _("weights"): [weights / 2**20] * len(lengths),
                },
                x_title=_("tokens in the cache"),
                y_title=_("MiB in {dtype}").format(dtype=dtype),
            ),
            "tying-cache",
            _("Memory of the KV cache against its length, compared with the memory of the weights."),
        )
    page.numbers_table(
        pd.DataFrame(
            [
                {
                    _("product"): row.name,
                    _("formula"): row.symbols,
                    _("with numbers"): row.formula,
                    "MACs": row.macs,
                    "FLOPs = 2 × MACs": row.flops,
                }
                for row in decode.rows
            ]
        ),
        "tying-decode",
        {"MACs": "count", "FLOPs = 2 × MACs": "count"},
    )
    st.caption(
        _(
            "The upper table counts the matrix products for one generated token, as is usual. The lower table gives "
            "the bytes of its KV cache."
        )
    )
    page.numbers_table(
        pd.DataFrame(
            [
                {
                    _("cached"): row.name,
                    _("formula"): row.symbols,
                    _("with numbers"): row.formula,
                    _("bytes"): row.bytes,
                }
                for row in kv_cache_rows(config, past + 1, dtype)
            ]
        ),
        "tying-kv-cache",
        {_("bytes"): "count"},
    )
    sources(config)
    page.snippet(CODE.format(config=config_code(lm, config), past=past, new=new, last=last_only, dtype=dtype))
