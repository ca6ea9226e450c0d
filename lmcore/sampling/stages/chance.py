"""XTC, "exclude top choices": by a coin, the most probable of several likely tokens are taken away."""

from __future__ import annotations

import torch

from lmcore.distribution import largest
from lmcore.sampling.candidates import Candidates
from lmcore.sampling.stage import Branch, Context, Field, Note, Range, Stage, span

__all__ = ["XTC"]

TOO_FEW = "fewer than two tokens reach the threshold, so nothing happens"
ACTS = "with probability {probability:g} the {count} most probable go; else nothing happens"


def xtc(tokens: Candidates, context: Context) -> list[Branch]:
    """With a probability, take away all tokens that reach a threshold but the least probable of them."""
    settings = context.settings
    reached = tokens.probs >= settings.xtc_threshold * (1 - context.tolerance)
    count = int(reached.sum()) - 1
    if count < 1:
        return [Branch(1.0, tokens, Note(TOO_FEW))]
    note = Note(ACTS, probability=settings.xtc_probability, count=count)
    stays = torch.ones(len(tokens), dtype=torch.bool)
    stays[largest(tokens.logits, count)] = False
    acts = Branch(settings.xtc_probability, tokens.keep_where(stays), note)
    if acts.weight == 1:
        return [acts]
    return [acts, Branch(1 - acts.weight, tokens, note)]


XTC = Stage(
    name="xtc",
    title="XTC",
    help="With a probability, takes away the most probable tokens but the last of those that reach a threshold.",
    kind="filter",
    formula="with probability c: of those with p >= t, all but the least probable go",
    source="p-e-w 2024; llama.cpp, llama_sampler_xtc",
    fields=(
        Field(name="xtc_probability", range=Range(0, 1), on=0.5, stops=lambda vocab_size: span(0, 1, 0.01)),
        Field(
            name="xtc_threshold",
            title="Threshold",
            off=0.1,
            range=Range(0, 1),
            stops=lambda vocab_size: span(0, 0.5, 0.005),
        ),
    ),
    run=xtc,
    by_chance=True,
    notes=(TOO_FEW, ACTS),
)
