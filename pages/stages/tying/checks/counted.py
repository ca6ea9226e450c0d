"""Checks of counts: a product, a share, a difference, and MACs beside FLOPs."""

from __future__ import annotations

from dataclasses import replace

from lmcore import LanguageModel
from lmcore.parameters import PRESETS, compute, count
from lmcore.parameters.per_block import mlp_compute
from pages.common import page, widgets
from pages.common.text import _
from pages.figures.theme import fmt_count
from pages.stages.tying.checks.card import Check


def product(lm: LanguageModel) -> Check:
    """Check GPT-3's embedding."""
    config, claimed = PRESETS["gpt3-175b"], 617_155_776
    width = widgets.number("checks.width", "d_model", 1, 100_000, config.d_model)
    rows = widgets.number("checks.rows", "vocab_size", 1, 1_000_000, config.vocab_size)
    size = next(
        row for row in count(replace(config, d_model=width, d_head=2, vocab_size=rows)).rows if row.group == "embedding"
    )
    return Check(
        _("GPT-3's embedding, 12,288 × 50,257, has 617,155,776 numbers."),
        fmt_count(claimed),
        fmt_count(size.size),
        f"{size.symbols} = {size.formula} = {fmt_count(size.size)}\n"
        f"{fmt_count(size.size)} - {fmt_count(claimed)} = {fmt_count(size.size - claimed)}\n"
        f"{fmt_count(claimed)} mod {fmt_count(width)} = {fmt_count(claimed % width)}",
        _("It has **{n}**. The claimed number cannot be right: it is not a multiple of 12,288.").format(
            n=fmt_count(config.vocab_size * config.d_model)
        ),
        page.Suggestion(
            _("Every tensor of GPT-3"), "tying", {"tying.view": "parameters", "tying.subject": "gpt3-175b"}
        ),
    )


def head_share(lm: LanguageModel) -> Check:
    """Check the share of GPT-2's head."""
    names = ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"]
    name = widgets.select("checks.gpt2", _("Model"), names, "gpt2", format_func=lambda name: PRESETS[name].title)
    tied, untied = count(PRESETS[name]), count(PRESETS[name], tie_embeddings=False)
    return Check(
        _("The head is 26 % of GPT-2's parameters."),
        "26 %",
        f"{100 * tied.head_share:.1f} %",
        f"{fmt_count(tied.head_size)} / {fmt_count(tied.total)} = {100 * tied.head_share:.1f} % ({_('tied')})\n"
        f"{fmt_count(untied.head_size)} / {fmt_count(untied.total)} = {100 * untied.head_share:.1f} % ({_('untied')})",
        _("It is **{share}** of {title} as released (tied). Counted untied, it would be {other}.").format(
            share=f"{100 * tied.head_share:.1f} %",
            title=PRESETS[name].title,
            other=f"{100 * untied.head_share:.1f} %",
        ),
        page.Suggestion(
            _("Count it both tied and untied."), "tying", {"tying.view": "parameters", "tying.subject": name}
        ),
    )


def norms(lm: LanguageModel) -> Check:
    """Check the difference of 19,200."""
    start = PRESETS["curriculum-12x768"]
    n_layers = widgets.slider("checks.layers", "n_layers", 1, 48, start.n_layers)
    width = widgets.slider("checks.d_model", "d_model", 64, 2048, start.d_model, step=64)
    rows = [row for row in count(replace(start, n_layers=n_layers, d_model=width)).rows if row.group == "norm"]
    total = sum(row.count for row in rows)
    return Check(
        _("Two counts of a 12-layer model differ by 19,200 parameters because of a floating-point error."),
        _("an error"),
        f"{total // width} × {width}",
        "\n".join(f"{row.name}: {row.formula} = {fmt_count(row.count)}" for row in rows)
        + f"\n{total // width} x {width} = {fmt_count(total)}",
        _(
            "The difference is **{n}** RMSNorm vectors that one count left out: two per layer and one at the "
            "end. Counts are integers, so nothing is rounded."
        ).format(n=total // width),
        page.Suggestion(
            _("Start from this model and change its sizes"),
            "tying",
            {"tying.view": "parameters", "tying.subject": "free", "n_layers": n_layers, "d_model": width},
        ),
    )


def one_scale(lm: LanguageModel) -> Check:
    """Check the MLP of LLaMA against its head."""
    config = PRESETS["llama-7b"]
    matrices = widgets.choice("checks.matrices", _("Matrices of the MLP counted"), [2, 3], 3)
    unit = widgets.choice("checks.unit", _("Count the head in"), ["FLOPs", "MACs"], "FLOPs")
    rows, head = mlp_compute(config), compute(config).rows[-1]
    counted = rows[:matrices]
    macs, head_amount = sum(row.macs for row in counted), head.flops if unit == "FLOPs" else head.macs
    both = f"{2 * macs / 1e6:.1f} / {head_amount / 1e6:.1f} M"
    return Check(
        _("One MLP of LLaMA 7B takes 2 × 4096 × 11008 × 2 = 180 M FLOPs, about as much as its head with 131 M FLOPs."),
        "180 / 131 M",
        both,
        "\n".join(f"{row.name}: {row.formula} = {fmt_count(row.macs)} MACs" for row in counted)
        + f"\nMLP: {fmt_count(macs)} MACs = {fmt_count(2 * macs)} FLOPs"
        + f"\nhead: {head.formula} = {fmt_count(head.macs)} MACs = {fmt_count(head.flops)} FLOPs",
        _(
            "The first number counts the FLOPs of two matrices, but LLaMA has three. The second counts MACs. "
            "In the same unit they are **{mlp}** and **{head}** M FLOPs."
        ).format(mlp=f"{2 * sum(row.macs for row in rows) / 1e6:.1f}", head=f"{head.flops / 1e6:.1f}"),
        page.Suggestion(
            _("All matrix products for one token"), "tying", {"tying.view": "compute", "tying.subject": "llama-7b"}
        ),
    )
