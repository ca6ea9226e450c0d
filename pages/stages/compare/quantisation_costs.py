"""What each kind of quantisation costs over a text, against the size of the file; measured in the background."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lmcore import LanguageModel
from lmcore.analysis.quantisation.costs import (
    Chunk,
    Cost,
    Estimate,
    chunks_of,
    costs,
    extra_truth_kld,
    world_chunks,
)
from lmcore.corpus import Truth
from lmcore.loading import built_in
from lmcore.memory import available_memory
from lmcore.quantisation import KINDS
from pages.common import conversation, page, session, widgets
from pages.common.models import n_bytes
from pages.common.text import _, markdown_literal, visible
from pages.figures.compare import quantisation as figures
from pages.stages.generation import jobs

CODE = """
import lmcore
from lmcore.analysis.quantisation.costs import chunks_of, costs, world_chunks
from lmcore.corpus import Truth

lm = lmcore.load({name!r})
text, truth = {text}
for cost in costs(lm, {variants}, text, truth):         # after each chunk of each
    if len(cost.kld) == sum(len(chunk.came) for chunk in text):
        print(cost.variant, cost.nbytes, cost.perplexity, cost.mean_kld, cost.same_top_share, cost.mean_truth_kld)
"""
VARIANTS = ("float32", "bfloat16", *KINDS, "kv8")
SAMPLE = (
    "The lighthouse stood on a rock at the end of the bay. For sixty years the same family had lived in it, and every "
    "evening one of them climbed the stairs to light the lamp. In winter the waves reached the lower windows, and the "
    "keeper wrote the height of the water into a book. The book was kept because a harbour was planned, and the "
    "engineers in the town wanted to know how strong the wall had to be. When the harbour was finished, the lamp was "
    "turned by a motor, and nobody had to live on the rock any more. The last keeper moved to a house on the hill. "
    "From his kitchen he could still see the light, and he noticed at once when it was a few seconds late. He wrote "
    "letters about it, and in the end the office sent him a key, so that he could go and repair the clock himself. "
    "Children from the school visited him on Fridays. He showed them the book, and they read the numbers aloud: two "
    "metres in a quiet year, five in the storm that took the boats. Then they asked how one measures a wave at night, "
    "and he told them about the rope with knots, the lamp and the patience that it takes."
)
_N_CHUNKS, _N_CTX = 4, 128
_WORLD_CHUNKS = 8


@dataclass(frozen=True)
class CostsSoFar:
    """What is known so far, and how much of the work that is."""

    costs: tuple[Cost, ...]
    done: float


def show(lm: LanguageModel, controls: DeltaGenerator, picture: DeltaGenerator) -> None:
    """Draw the view."""
    with controls:
        text, code = _text(lm)
        measure = widgets.select(
            "quantisation.measure",
            _("Cost"),
            ("kld", "perplexity", "same"),
            "kld",
            format_func={
                "kld": _("KL divergence"),
                "perplexity": _("Perplexity"),
                "same": _("Same top token"),
            }.__getitem__,
        )
        question = (lm.name, code)
        needed, free = int(1.2 * n_bytes(lm)), available_memory()
        if needed > free and jobs.find("quantisation", question) is None:
            st.info(
                _(
                    "A quantised copy of {name} needs {needed} GB of memory for a while, and {free} GB are free. "
                    "Choose a smaller model above."
                ).format(
                    name=markdown_literal(visible(lm.name)), needed=f"{needed / 1e9:.1f}", free=f"{free / 1e9:.1f}"
                )
            )
        else:
            jobs.button(
                "quantisation",
                question,
                _("Measure all kinds"),
                functools.partial(_measure, lm, text),
                at_once=False,
                own_lock=True,
            )
    with picture:
        if jobs.find("quantisation", question) is None:
            st.info(
                _(
                    "Press “Measure all kinds”: the model is quantised in each kind, one after the other, and reads "
                    "{n} tokens of the text each time."
                ).format(n=sum(len(chunk.ids) for chunk in text))
            )
        jobs.show("quantisation", question, lambda found: found.done, functools.partial(_draw, measure))
    job = jobs.find("quantisation", question)
    if job is not None and not job.running and job.latest is not None:
        page.numbers_table(_table(job.latest.costs), "quantisation-costs", {_("same top p"): "probability"})
    st.caption(
        _(
            "The definitions are those of llama.cpp's perplexity tool: the text is cut into chunks of {n_ctx} tokens, "
            "and only the tokens of the second half of each are scored. Points are means, bars their standard error. "
            "llama.cpp also rounds what it multiplies quantised weights with to 8 bits; here the weights alone are "
            "rounded."
        ).format(n_ctx=len(text[0].ids) + 1)
    )
    page.snippet(CODE.format(name=lm.name, text=code, variants=list(VARIANTS)))


def _text(lm: LanguageModel) -> tuple[list[Chunk], str]:
    """Let the reader choose the text; return its chunks, and the Python that gives chunks and truth."""
    prompt = "" if conversation.is_on() else session.prompt()  # a template may refuse to write it
    titles = {
        **({"world": _("held-out texts of the small world")} if built_in(lm.name) else {}),
        "sample": _("a short story, in English"),
        **({"prompt": _("the prompt")} if len(session.encoding(prompt[: session.MAX_CHARACTERS]).ids) >= 8 else {}),
    }
    source = widgets.select(
        "quantisation.text", _("Text"), tuple(titles), next(iter(titles)), format_func=titles.__getitem__
    )
    if source == "world":
        return world_chunks(lm, _WORLD_CHUNKS), f"world_chunks(lm, {_WORLD_CHUNKS}), Truth(lm.tokenizer)"
    text = SAMPLE if source == "sample" else str.__str__(prompt[: session.MAX_CHARACTERS])
    return (
        chunks_of(lm, text, _N_CTX)[:_N_CHUNKS],
        f"chunks_of(lm, {text!r}, {_N_CTX})[:{_N_CHUNKS}], None",
    )


def _measure(lm: LanguageModel, text: Sequence[Chunk]) -> Iterator[CostsSoFar]:
    truth = Truth(lm.tokenizer) if built_in(lm.name) else None
    found: dict[str, Cost] = {}
    steps = costs(lm, VARIANTS, text, truth, session.forward_lock())
    for step, cost in enumerate(steps, 1):
        found[cost.variant] = cost
        yield CostsSoFar(tuple(found.values()), step / (len(VARIANTS) * len(text)))


def _draw(measure: str, found: CostsSoFar, everything: bool) -> None:
    rows = found.costs
    base, compared = rows[0], [row for row in rows if row.variant != "float32"] or list(rows)
    estimate = {
        "kld": lambda row: row.mean_kld,
        "perplexity": lambda row: row.perplexity,
        "same": lambda row: row.same_top_share,
    }[measure]
    extra = [extra_truth_kld(row, base) for row in compared]
    values: list[Estimate] = [estimate(row) for row in compared]
    true = measure == "kld" and all(each is not None for each in extra)
    if true:  # bars say whether a point differs from the line
        values = [
            Estimate(row.mean_truth_kld.value, more.error)
            for row, more in zip(compared, extra, strict=True)
            if more and row.mean_truth_kld
        ]
    level = None
    if true and base.mean_truth_kld is not None:
        level = (base.mean_truth_kld.value, "float32")
    elif measure == "perplexity":
        level = (base.perplexity.value, "float32")
    titles = {
        "kld": _("KL(grammar ‖ model), nats") if true else _("mean KLD from float32, nats"),
        "perplexity": _("perplexity"),
        "same": _("share of positions with the same most probable token"),
    }
    page.figure(
        figures.against_size(
            [row.nbytes / 1e6 for row in compared],
            [each.value for each in values],
            [each.error for each in values],
            [row.variant for row in compared],
            x_title=_("size of the weights, MB"),
            y_title=titles[measure],
            logarithmic=measure == "kld",
            level=level,
        ),
        "quantisation.cost",
        _(
            "How far each kind is from the grammar itself. The bars are the standard errors of the differences from "
            "float32: where a bar meets the line, quantisation costs nothing that this text can show."
        )
        if true
        else _("What each kind costs over the text, against its size in a file."),
    )


def _table(rows: Sequence[Cost]) -> pd.DataFrame:
    table: dict[str, list[object]] = {
        _("variant"): [row.variant for row in rows],
        _("bits per weight"): [row.bits_per_weight for row in rows],
        _("bytes"): [row.nbytes for row in rows],
    }
    for name, estimates in (
        (_("perplexity"), [row.perplexity for row in rows]),
        (_("mean KLD (nats)"), [row.mean_kld for row in rows]),
        (_("same top p"), [row.same_top_share for row in rows]),
        (_("KL from the grammar (nats)"), [row.mean_truth_kld for row in rows]),
        (_("more than float32 (nats)"), [extra_truth_kld(row, rows[0]) for row in rows]),
    ):
        known = [each for each in estimates if each is not None]
        if len(known) == len(rows):
            table[name] = [each.value for each in known]
            table[f"± {name}"] = [each.error for each in known]
    return pd.DataFrame(table)
