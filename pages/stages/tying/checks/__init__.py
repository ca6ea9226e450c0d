"""Figures in circulation that are wrong, each beside the computation of the right one."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from pages.common import page, widgets
from pages.common.text import _
from pages.stages.tying.checks import counted, reading, sampled, tied
from pages.stages.tying.checks.card import Check

CODE = """
import torch
import lmcore
from lmcore.analysis import read_out
from lmcore.analysis.training.embedding_gradient import split_embedding_gradient
from lmcore.parameters import PRESETS, compute, count
from lmcore.parameters.per_block import mlp_compute

logits = [2.3, 1.5, 3.8, 0.5, 1.2]  # 1, 2 and 12
for settings in {{"temperature": 0.5}}, {{"temperature": 1.5}}, {{"top_p": 0.9}}:
    result = lmcore.reshape(logits, lmcore.SamplingSettings(**settings))
    print(settings, (100 * result.probs).tolist(), 1 - result.removed_mass)
gpt3, gpt2, llama = (PRESETS[name] for name in ("gpt3-175b", "gpt2", "llama-7b"))
print(gpt3.vocab_size * gpt3.d_model)  # 3
print(count(gpt2).head_size, count(gpt2).total, count(gpt2).head_share)  # 4
norms = [row for row in count(PRESETS["curriculum-12x768"]).rows if row.group == "norm"]
print([(row.name, row.formula) for row in norms], sum(row.count for row in norms))  # 5
mlp, head = mlp_compute(llama), compute(llama).rows[-1]
print(sum(row.macs for row in mlp), sum(row.flops for row in mlp), head.macs, head.flops)  # 6
print(llama.tie_embeddings, PRESETS["bert-base"].tie_embeddings, PRESETS["bert-base"].tie_source)  # 7 and 8
lm = lmcore.load({name!r})
print(split_embedding_gradient(lm.model, torch.tensor(lm.tokenizer.encode({sentence!r}).ids)).cosine)  # 9
trace = lmcore.Trace()
lm(lm.tokenizer.encode({text!r}).ids, trace=trace)  # 10
for hidden in trace["hidden_state"]:
    out = read_out(hidden, lm.model.head.weight, lm.model.head.bias)
    print(int(out.logits.argmax()), int(out.cosines.argmax()))
print(lm.tokenizer.encode("今天天气").ids)  # 11
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    topics = {
        "all": (_("All twelve claims"), range(1, 13)),
        "sampling": (_("Sampling"), (1, 2, 12)),
        "counting": (_("Parameters counted"), (3, 4, 5, 6)),
        "tying": (_("Tying"), (7, 8, 9)),
        "reading": (_("Logits and tokens"), (10, 11)),
    }
    with st.columns([1, 3])[0]:
        titles = {name: title for name, (title, _numbers) in topics.items()}
        topic = widgets.select(
            "checks.topic", _("Checks"), list(topics), "all", format_func=titles.__getitem__, with_label=False
        )
    found = {}
    for number, build in CHECKS.items():
        if number in topics[topic][1]:
            with st.container(border=True):
                found[number] = _card(number, build, lm)
    st.markdown(
        _(
            "Some widely copied tutorials contain wrong figures. Each is computed again here: change the "
            "values it depends on, or follow the link to the page where you can experiment."
        )
    )
    page.numbers_table(
        pd.DataFrame(
            {"": number, _("claim"): check.claim, _("claimed"): check.claimed, _("computed"): check.computed}
            for number, check in found.items()
        ),
        "tying-checks",
    )
    page.snippet(CODE.format(name=reading.measured_model(lm).name, sentence=tied.SENTENCE, text=reading.TEXT))


CHECKS = {
    1: sampled.half_temperature,
    2: sampled.high_temperature,
    3: counted.product,
    4: counted.head_share,
    5: counted.norms,
    6: counted.one_scale,
    7: tied.who_ties,
    8: tied.bias,
    9: tied.direction,
    10: reading.similarity,
    11: reading.whose_ids,
    12: sampled.kept_mass,
}


def _card(number: int, build, lm: LanguageModel) -> Check:  # noqa: ANN001 - each of CHECKS: LanguageModel -> Check
    """Draw one check: the claim, what can be moved on the left, the computation on the right."""
    said = st.container()
    controls, picture = page.workbench(f"workbench-check-{number}", (2, 3))
    with controls:
        check = build(lm)
        st.markdown(f"#### ~~{check.claimed}~~ → {check.computed}")
    said.markdown(f"**{number}** · {check.claim}")
    with picture:
        if check.chart is not None:
            page.figure(check.chart, f"check-{number}", check.alt)
        st.code(check.computation, language=None, wrap_lines=True)
        st.markdown(check.right)
        page.follow(check.move)
    return check
