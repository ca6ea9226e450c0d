"""Checks of tying: who ties, the bias beside a tied matrix, and the two gradients of one matrix."""

from __future__ import annotations

from dataclasses import replace

import torch

from lmcore import LanguageModel, Model
from lmcore.analysis.training.embedding_gradient import split_embedding_gradient
from lmcore.parameters import PRESETS, count
from pages.common import page, session, widgets
from pages.common.text import _, visible
from pages.figures.theme import fmt_count
from pages.figures.tying import parameters as figures
from pages.stages.tying.checks.card import Check
from pages.stages.tying.checks.reading import measured_model

SENTENCE = "患者服用华法林后出现黑便"


def who_ties(lm: LanguageModel) -> Check:
    """Check who ties; what cannot be computed offline carries its source."""
    name = widgets.select(
        "checks.ties", _("Model"), list(PRESETS), "bert-base", format_func=lambda name: PRESETS[name].title
    )
    shown = dict.fromkeys([name, "gpt2", "llama-7b", "llama-2-7b", "bert-base"])
    return Check(
        _("LLaMA ties its embedding like GPT-2. BERT does not tie its output."),
        _("LLaMA tied, BERT not"),
        f"{PRESETS[name].title}: {_('tied') if PRESETS[name].tie_embeddings else _('untied')}",
        "\n".join(
            f"{config.title}: {_('tied') if config.tie_embeddings else _('untied')}\n    {config.tie_source}"
            for config in map(PRESETS.__getitem__, shown)
        ),
        _("LLaMA 1 and 2 do **not** tie. The output of BERT's masked language model **is** tied."),
        page.Suggestion(_("All models, with their sources"), "tying", {"tying.view": "models"}),
    )


def bias(lm: LanguageModel) -> Check:
    """Check that tying leaves room for a bias."""
    with_bias = widgets.toggle("checks.bias", "head_bias", True)
    config = replace(lm.config, tie_embeddings=True, head_bias=with_bias)
    with torch.device("meta"):  # shapes and identity without any numbers
        model = Model(config)
    plain, counted = count(replace(config, head_bias=False)).total, count(config).total
    beside = "None" if model.head.bias is None else fmt_count(model.head.bias.numel())
    return Check(
        _("Tying requires an output without a bias."),
        _("no bias"),
        _("tied, bias {n}").format(n=fmt_count(counted - plain)),
        f"tie_embeddings=True, head_bias={with_bias}\n"
        f"head.weight is token_embedding.weight: {model.head.weight is model.token_embedding.weight}\n"
        f"head.bias: {beside}\n"
        f"{fmt_count(counted)} - {fmt_count(plain)} = {fmt_count(counted - plain)}\n"
        f"{PRESETS['bert-base'].title}: {PRESETS['bert-base'].tie_source}",
        _("The matrix is tied, and there is a separate bias of {n} numbers, as in BERT.").format(
            n=fmt_count(config.vocab_size)
        ),
        page.Suggestion(
            _("A tied matrix may have a bias: see it in torch"),
            "tying",
            {"tying.view": "operations", "tying.operation": "bias"},
        ),
    )


def direction(lm: LanguageModel) -> Check:
    """Check the angle between the two gradients of a tied matrix."""
    chosen = measured_model(lm)
    options = [SENTENCE, "今天天气不错", "The weather today is nice", "I like cats"]
    text = widgets.select("checks.sentence", _("Sentence"), options, SENTENCE)
    ids = chosen.tokenizer.encode(text).ids
    with session.forward_lock():
        parts = split_embedding_gradient(chosen.model, torch.tensor(ids))
    rows = list(dict.fromkeys(ids[:-1]))
    cosines = parts.cosines[rows]
    first, second = parts.input_side.norm().item(), parts.output_side.norm().item()
    together = parts.total.norm().item()
    return Check(
        _("The two gradients of a tied matrix have the same direction."),
        "cos = 1",
        f"{parts.cosine:+.4f}",
        f"{chosen.name} · {text}\n"
        f"|input| = {first:.5f}, |output| = {second:.5f}, |sum| = {together:.5f}\n"
        f"cos = ({together:.5f}² - {first:.5f}² - {second:.5f}²) / (2 x {first:.5f} x {second:.5f}) "
        f"= {parts.cosine:+.4f}",
        _(
            "The two gradients are added, and they need not point the same way: here their cosine is "
            "**{cosine}** for the whole matrices, and {low} to {high} for the rows of this sentence. These "
            "values are measured."
        ).format(
            cosine=f"{parts.cosine:+.4f}", low=f"{cosines.min().item():+.3f}", high=f"{cosines.max().item():+.3f}"
        ),
        page.Suggestion(_("Every row, and how it changes during training"), "training", {"training.view": "sides"}),
        figures.cosines(
            [visible(chosen.tokenizer.token_bytes(row)) for row in rows],
            cosines.tolist(),
            value_title=_("cosine of the row's two parts"),
        ),
        _("The cosine between the two parts of each row's gradient, from -1 to 1."),
    )
