"""Figures in circulation that are wrong, each beside the computation of the right one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pandas as pd
import streamlit as st
import torch

from lmcore import LanguageModel, Model
from lmcore.parameters import PRESETS, compute, count
from lmcore.parameters.per_block import mlp_compute
from pages.common import page
from pages.common.text import _
from pages.figures.theme import fmt_count

CODE = """
from lmcore.parameters import PRESETS, compute, count
from lmcore.parameters.per_block import mlp_compute

gpt3, gpt2, llama = (PRESETS[name] for name in ("gpt3-175b", "gpt2", "llama-7b"))
print(gpt3.vocab_size * gpt3.d_model)
print(count(gpt2).head_size, count(gpt2).total, count(gpt2).head_share)
norms = [row for row in count(PRESETS["curriculum-12x768"]).rows if row.group == "norm"]
print([(row.name, row.formula) for row in norms], sum(row.count for row in norms))
mlp, head = mlp_compute(llama), compute(llama).rows[-1]
print(sum(row.macs for row in mlp), sum(row.flops for row in mlp), head.macs, head.flops)
print(llama.tie_embeddings, PRESETS["bert-base"].tie_embeddings)
"""


@dataclass(frozen=True)
class Check:
    """A claim in our words, the computation with its numbers, the right value, and where it can be moved."""

    claim: str
    computation: str
    right: str
    state: dict[str, object] = field(default_factory=dict)


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    st.markdown(_("Widely copied lessons hold figures that do not add up. Each is computed here, from the config."))
    found = list(checks(lm))
    for number, check in enumerate(found, start=1):
        with st.container(border=True):
            claim, computed = st.columns([1, 2], gap="large")
            claim.markdown(f"**{number}.** {check.claim}")
            with computed:
                st.code(check.computation, language=None, wrap_lines=True)
                st.markdown(check.right)
                if check.state:
                    st.page_link(
                        "pages/stages/tying.py",
                        label=_("Move it in the calculator"),
                        icon=":material/arrow_forward:",
                        query_params={**{key: str(value) for key, value in check.state.items()}, "apply": "1"},
                    )
    page.numbers_table(
        pd.DataFrame({_("claim"): check.claim, _("computed"): check.right.replace("**", "")} for check in found),
        "tying-checks",
    )
    page.snippet(CODE)


def checks(lm: LanguageModel) -> Iterator[Check]:
    """Yield the checks that concern parameters, every number computed by lmcore."""
    yield from (_product(), _head_share(), _norms(), _one_scale(), _who_ties(), _bias(lm))


def _product() -> Check:
    config, claimed = PRESETS["gpt3-175b"], 617_155_776
    row = next(row for row in count(config).rows if row.name == "token_embedding")
    return Check(
        _("GPT-3's embedding, 12,288 × 50,257, has 617,155,776 numbers."),
        f"{row.symbols} = {row.formula} = {fmt_count(row.size)}\n"
        f"{fmt_count(row.size)} - {fmt_count(claimed)} = {fmt_count(row.size - claimed)}\n"
        f"{fmt_count(claimed)} mod {fmt_count(config.d_model)} = {fmt_count(claimed % config.d_model)}",
        _("It has **{n}**. The claimed number is no multiple of 12,288 at all.").format(n=fmt_count(row.size)),
        {"tying.view": "parameters", "tying.subject": "gpt3-175b"},
    )


def _head_share() -> Check:
    tied, untied = count(PRESETS["gpt2"]), count(PRESETS["gpt2"], tie_embeddings=False)
    return Check(
        _("The head is 26 % of GPT-2's parameters."),
        f"{fmt_count(tied.head_size)} / {fmt_count(tied.total)} = {100 * tied.head_share:.1f} %\n"
        f"{fmt_count(untied.head_size)} / {fmt_count(untied.total)} = {100 * untied.head_share:.1f} % ({_('untied')})",
        _("It is **{share}** of GPT-2 small as released, tied; counted untied it would be {other}.").format(
            share=f"{100 * tied.head_share:.1f} %", other=f"{100 * untied.head_share:.1f} %"
        ),
        {"tying.view": "parameters", "tying.subject": "gpt2"},
    )


def _norms() -> Check:
    rows = [row for row in count(PRESETS["curriculum-12x768"]).rows if row.group == "norm"]
    total = sum(row.count for row in rows)
    vectors = total // PRESETS["curriculum-12x768"].d_model
    return Check(
        _("Two counts of a 12-layer model differ by 19,200 parameters: a floating-point error."),
        "\n".join(f"{row.name}: {row.formula} = {fmt_count(row.count)}" for row in rows)
        + f"\n{vectors} x {PRESETS['curriculum-12x768'].d_model} = {fmt_count(total)}",
        _(
            "It is the **{n}** RMSNorm vectors that one of them left out. Counts are whole numbers: none is rounded."
        ).format(n=vectors),
        {"tying.view": "parameters", "tying.subject": "curriculum-12x768"},
    )


def _one_scale() -> Check:
    config = PRESETS["llama-7b"]
    rows, head = mlp_compute(config), compute(config).rows[-1]
    macs = sum(row.macs for row in rows)
    return Check(
        _("An MLP of LLaMA 7B takes 2 × 4096 × 11008 × 2 = 180 M FLOPs, about as much as its head with 131 M FLOPs."),
        "\n".join(f"{row.name}: {row.formula} = {fmt_count(row.macs)} MACs" for row in rows)
        + f"\nMLP: {fmt_count(macs)} MACs = {fmt_count(2 * macs)} FLOPs"
        + f"\nhead: {head.formula} = {fmt_count(head.macs)} MACs = {fmt_count(head.flops)} FLOPs",
        _(
            "The first number counts FLOPs of two matrices where LLaMA has three, the second counts MACs. "
            "On one scale it is **{mlp}** against **{head}** M FLOPs."
        ).format(mlp=f"{2 * macs / 1e6:.1f}", head=f"{head.flops / 1e6:.1f}"),
        {"tying.view": "compute", "tying.subject": "llama-7b"},
    )


def _who_ties() -> Check:
    shown = ["gpt2", "llama-7b", "llama-2-7b", "bert-base"]
    return Check(
        _("LLaMA ties its embedding like GPT-2; BERT has no tied output."),
        "\n".join(
            f"{config.title}: {_('tied') if config.tie_embeddings else _('untied')}\n    {config.tie_source}"
            for config in map(PRESETS.__getitem__, shown)
        ),
        _("LLaMA 1 and 2 do **not** tie; the output of BERT's masked language model **is** tied."),
        {"tying.view": "models"},
    )


def _bias(lm: LanguageModel) -> Check:
    config = replace(lm.config, tie_embeddings=True, head_bias=True)
    plain, biased = count(replace(config, head_bias=False)), count(config)
    with torch.device("meta"):  # shapes and identity without any numbers
        model = Model(config)
    return Check(
        _("Tying needs an output without a bias."),
        f"tie_embeddings=True, head_bias=True\n"
        f"head.weight is token_embedding.weight: {model.head.weight is model.token_embedding.weight}\n"
        f"head.bias: {fmt_count(model.head.bias.numel())}\n"
        f"{fmt_count(biased.total)} - {fmt_count(plain.total)} = {fmt_count(biased.total - plain.total)}\n"
        f"{PRESETS['bert-base'].title}: {PRESETS['bert-base'].tie_source}",
        _("The matrix is tied and the bias of {n} numbers stands beside it, as in BERT.").format(
            n=fmt_count(biased.total - plain.total)
        ),
    )
